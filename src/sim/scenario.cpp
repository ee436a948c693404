// The presets' numbers; docs/simulator.md says where they come from.
#include "sim/scenario.h"

#include <fmt/ranges.h>

#include "base/config.h"
#include "base/error.h"

namespace starling {
namespace {

struct Preset {
  const char* name;
  LinkModel inter;
};
// Latency one way from process to process; bandwidth is what TCP delivers of the nominal rate (94 % after frame and header overhead).
constexpr LinkModel kIntra = {0.5, 40, 0.5};  // shared memory: one core copies about 5 GB/s
constexpr Preset kPresets[] = {
    {"1gbe", {40, 0.94, 5}}, {"10gbe", {25, 9.4, 5}},        {"25gbe", {20, 23.5, 5}},
    {"100gbe", {15, 94, 5}}, {"infiniband", {1.2, 97, 0.3}}, {"loopback", {8, 25, 4}},
};

double given(double value, double otherwise) { return value < 0 ? otherwise : value; }
LinkModel given(const LinkModel& link, const LinkModel& otherwise) {
  return {given(link.latency_us, otherwise.latency_us), given(link.bandwidth_gbit_s, otherwise.bandwidth_gbit_s),
          given(link.message_us, otherwise.message_us)};
}

}  // namespace

NetworkModel network_preset(const std::string& name) {
  std::vector<std::string> names;
  for (const Preset& preset : kPresets) {
    if (name == preset.name) return {.preset = name, .inter = preset.inter, .intra = kIntra};
    names.emplace_back(preset.name);
  }
  throw ConfigError(
      fmt::format("there is no network {}{}; choose one of {}", in_quotes(name), did_you_mean(name, names), fmt::join(names, ", ")));
}

NetworkModel resolved(const NetworkModel& network) {
  const NetworkModel preset = network_preset(network.preset);
  NetworkModel result = network;
  result.inter = given(network.inter, preset.inter);
  result.intra = given(network.intra, preset.intra);
  return result;
}

}  // namespace starling
