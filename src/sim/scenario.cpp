// The presets' numbers; docs/explanation/simulator.md says where they come from.
#include "sim/scenario.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "config/config.h"

namespace starling {
namespace {

struct Preset {
  const char* name;
  LinkModel inter;
};
struct Gpu {
  const char* name;
  double tflops, memory_tb_s;  // of matrix products in bf16 and of copies, as achieved in practice
  double memory_gb;
  LinkModel intra;  // NVLink
};
// Latency is one way from process to process; bandwidth is what TCP delivers of the nominal rate (94 % after frame and header overhead).
constexpr LinkModel kIntra = {0.5, 40, 0.5};  // shared memory: one core copies about 5 GB/s
constexpr Preset kPresets[] = {
    {"1gbe", {40, 0.94, 5}},
    {"10gbe", {25, 9.4, 5}},
    {"25gbe", {20, 23.5, 5}},
    {"100gbe", {15, 94, 5}},
    {"infiniband", {1.2, 97, 0.3}},
    {"infiniband-hdr", {1.2, 194, 0.3}},
    {"infiniband-ndr", {1.2, 388, 0.3}},
    {"loopback", {8, 25, 4}},
};
// NVLink: 0.8 of the nominal rate of one direction.
constexpr Gpu kCards[] = {
    {"a100", 250, 1.8, 80, {2, 1920, 8}},
    {"h100", 790, 3.0, 80, {2, 2880, 8}},
    {"h200", 790, 4.3, 141, {2, 2880, 8}},
};
constexpr double kShareOfProducts = 0.45;  // the share of a pass's time in which the card multiplies at its full rate
constexpr double kShareOfCopies = 0.8;     // the same for copies in an update
constexpr double kEnqueueUs = 8;           // for the kernel of a round of messages between GPUs

const Gpu& gpu_named(const std::string& name) {
  for (const Gpu& gpu : kCards)
    if (name == gpu.name) return gpu;
  throw ConfigError(
      fmt::format("there is no GPU {}{}; choose one of {}", in_quotes(name), did_you_mean(name, kGpus), fmt::join(kGpus, ", ")));
}

double given(double value, double otherwise) { return value < 0 ? otherwise : value; }
LinkModel given(const LinkModel& link, const LinkModel& otherwise) {
  return {given(link.latency_us, otherwise.latency_us), given(link.bandwidth_gbit_s, otherwise.bandwidth_gbit_s),
          given(link.message_us, otherwise.message_us)};
}

}  // namespace

NetworkModel network_preset(const std::string& name) {
  for (const Preset& preset : kPresets)
    if (name == preset.name) return {.preset = name, .inter = preset.inter, .intra = kIntra, .cards_per_node = 1};
  throw ConfigError(fmt::format("there is no network {}{}; choose one of {}", in_quotes(name), did_you_mean(name, kNetworks),
                                fmt::join(kNetworks, ", ")));
}

NetworkModel resolved(const NetworkModel& network) {
  NetworkModel preset = network_preset(network.preset), result = network;
  if (network.gpu != "none") {
    preset.intra = gpu_named(network.gpu).intra;
    preset.inter.message_us = std::max(preset.inter.message_us, kEnqueueUs);
    preset.cards_per_node = network.ranks_per_node;
  }
  result.inter = given(network.inter, preset.inter);
  result.intra = given(network.intra, preset.intra);
  if (result.cards_per_node == 0) result.cards_per_node = preset.cards_per_node;
  return result;
}

ComputeModel gpu_rates(const std::string& name) {
  const Gpu& gpu = gpu_named(name);
  const double flops = kShareOfProducts * 1e3 * gpu.tflops, copies = 1e3 * gpu.memory_tb_s;
  return {.forward_gflops = flops,
          .backward_gflops = flops,
          .update_gb_s = kShareOfCopies * copies,
          .memory_gb_s = copies,
          .piece_us = 5,
          .weights_gb_s = copies};
}

double gpu_memory_gib(const std::string& name) { return gpu_named(name).memory_gb * 1e9 / (1 << 30); }

}  // namespace starling
