#include "measure/machine_rates.h"

#include <algorithm>
#include <filesystem>

#include "base/affinity.h"
#include "base/counted.h"
#include "base/files.h"
#include "base/task_progress.h"
#include "base/text_files.h"
#include "base/user_directories.h"
#include "base/version.h"
#include "config/config.h"
#include "sim/trace.h"

namespace starling {
namespace {

uint64_t text_hash(const std::string& text) {
  sim::Fnv hash;
  hash.add(std::as_bytes(std::span(text)));
  return hash.value();
}

std::vector<ConfigSection> sections_of(Scenario& scenario) { return {config_section("cluster", "Simulated cluster", scenario)}; }

ComputeModel compute_model(const Calibration& c) {
  ComputeModel model;
  model.forward_gflops = c.forward_gflops;
  model.backward_gflops = c.backward_gflops;
  model.update_gb_s = c.update_gb_s;
  model.memory_gb_s = c.memory_gb_s;
  model.weights_gb_s = c.weights_gb_s;
  model.coding_gb_s = c.coding_gb_s;
  model.alone_speed = c.alone_speed;
  model.exchange_slows = c.exchange_slows;
  return model;
}

}  // namespace

std::string rates_path(const BenchTrainOptions& model, int ranks) {
  const std::string cache = user_directory("XDG_CACHE_HOME", ".cache");
  if (cache.empty()) return "";
  ModelConfig copy = model.model;
  const std::vector<ConfigSection> sections{config_section("model", "Architecture", copy)};
  const std::string text = fmt::format("{} {} {} {} {} {} {}", write_config(sections), model.vocabulary, model.batch_tokens,
                                       model.precision, model.threads, ranks, usable_cores());
  return join_path(cache, fmt::format("rates/{}-{}-{:016x}.yml", this_host(), kVersion, text_hash(text)));
}

BenchTrainOptions calibration_model(const Config& c) {
  BenchTrainOptions o;
  o.model = c.model;
  o.vocabulary = c.vocab.training.size;
  o.batch_tokens = std::min<int64_t>(c.train.batch_tokens, 4000);
  o.precision = c.train.precision;
  o.threads = c.train.threads;
  o.seconds = 3;
  return o;
}

int ranks_of_a_node(const Scenario& scenario) {
  return static_cast<int>(std::clamp<int64_t>(scenario.network.ranks_per_node, 1, scenario.ranks));
}

MachineRates measured_rates(const BenchTrainOptions& model, int ranks, const std::string& frozen, const Say& say) {
  if (!frozen.empty() && std::filesystem::exists(frozen)) {
    Scenario kept;
    const std::vector<ConfigSection> sections = sections_of(kept);
    ConfigDocument(read_config_file(frozen), frozen).read(sections);
    say(fmt::format("computing rates: those of {}", frozen));
    const Calibration rates{.forward_gflops = kept.compute.forward_gflops, .backward_gflops = kept.compute.backward_gflops};
    if (const std::string doubt = doubt_about(rates, 0); !doubt.empty())
      say(fmt::format("warning: {}: {}; remove this file and what was computed with it to have them measured again", frozen, doubt));
    return {kept.compute, kept.jitter, kept.jitter_ms, kept.drift};
  }
  // More at once would say little about the hosts with more cores that will have them.
  const int most = std::max(1, usable_cores() / std::max(model.threads, 1));
  if (ranks > most)
    say(fmt::format("a node has {}, but this host has cores for {} of {}: rates are measured with {}", counted(ranks, "rank"), most,
                    counted(model.threads, "thread"), counted(most, "rank")));
  ranks = std::min(ranks, most);
  const std::string with = fmt::format("with {}{} of this machine", counted(model.threads, "thread"),
                                       ranks > 1 ? fmt::format(" in each of {} ranks at once", ranks) : "");
  say(fmt::format("measuring computing rates {}, about {:.0f} s", with, 2 * model.seconds));
  TaskProgress progress("computing rates", standard_error_screen());
  Calibration c = calibrate(model, ranks, say, [&](double share) {
    if (progress.due()) progress.tell(share, "");
  });
  // A rank's communication thread wants a core, too.
  if (ranks > 1 && ranks * (model.threads + 1) > usable_cores()) c.exchange_slows = 1;
  say(fmt::format(
      "computing rates, measured {}: forward {:.1f} and backward {:.1f} GFLOP/s, update {:.1f} GB/s, memory {:.1f} GB/s, weights {:.1f} "
      "GB/s, coding {:.1f} GB/s; steps vary by {:.1f} %{}{}",
      with, c.forward_gflops, c.backward_gflops, c.update_gb_s, c.memory_gb_s, c.weights_gb_s, c.coding_gb_s, 100 * c.jitter,
      ranks > 1 ? fmt::format("; {:.2f} times as fast alone", c.alone_speed) : "", frozen.empty() ? "" : "; kept in " + frozen));
  return {compute_model(c), c.jitter, c.jitter_ms, c.drift};
}

void keep_rates(const MachineRates& rates, const std::string& frozen) {
  if (frozen.empty() || std::filesystem::exists(frozen)) return;
  Scenario kept, standard;
  kept.compute = rates.compute;
  kept.jitter = rates.jitter;
  kept.jitter_ms = rates.jitter_ms;
  kept.drift = rates.drift;
  const std::vector<ConfigSection> defaults = sections_of(standard);
  const auto files = real_file_system();
  files->make_directories(parent_path(frozen));
  files->replace_file(frozen, write_config(sections_of(kept), {.defaults = defaults}));
}

void write_cluster(const std::string& path, const BenchDistributedResult& r) {
  Scenario scenario, standard;
  scenario.ranks = r.ranks;
  scenario.compute = compute_model(r.rates);
  scenario.jitter = r.rates.jitter;
  scenario.jitter_ms = r.rates.jitter_ms;
  scenario.drift = r.rates.drift;
  scenario.network.ranks_per_node = r.ranks_per_host;
  LinkModel& link = r.ranks_per_host < r.ranks ? scenario.network.inter : scenario.network.intra;
  const double bandwidth = r.step_bandwidth > 0 ? r.step_bandwidth : r.bandwidth;
  link = {0.7e6 * r.latency_s, 8e-9 * bandwidth, 0.3e6 * r.latency_s};  // the sender's part of it is a guess
  const std::vector<ConfigSection> defaults = sections_of(standard);
  real_file_system()->replace_file(path, write_config(sections_of(scenario), {.defaults = defaults}));
}

}  // namespace starling
