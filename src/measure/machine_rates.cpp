#include "measure/machine_rates.h"

#include <algorithm>
#include <filesystem>

#include "base/affinity.h"
#include "base/counted.h"
#include "base/files.h"
#include "base/sha256.h"
#include "base/task_progress.h"
#include "base/text_files.h"
#include "base/this_host.h"
#include "base/user_directories.h"
#include "base/version.h"
#include "config/config.h"

namespace starling {
std::vector<ConfigSection> cluster_sections(Scenario& scenario) { return {config_section("cluster", "Simulated cluster", scenario)}; }

void set_rates(Scenario& scenario, const Calibration& rates) {
  scenario.compute = rates;
  scenario.jitter = rates.jitter;
  scenario.jitter_ms = rates.jitter_ms;
  scenario.drift = rates.drift;
}

namespace {

void write_scenario(const std::string& path, Scenario scenario) {
  Scenario standard;
  const std::vector<ConfigSection> defaults = cluster_sections(standard);
  real_file_system()->replace_file(path, write_config(cluster_sections(scenario), {.defaults = defaults}));
}

}  // namespace

std::string rates_path(const BenchTrainOptions& model, int ranks) {
  const std::string cache = user_directory("XDG_CACHE_HOME", ".cache");
  if (cache.empty()) return "";
  ModelConfig copy = model.model;
  const std::vector<ConfigSection> sections{config_section("model", "Architecture", copy)};
  const std::string text = fmt::format("{} {} {} {} {} {} {}", write_config(sections), model.vocabulary, model.batch_tokens,
                                       model.precision, model.threads, ranks, usable_cores());
  return join_path(cache, fmt::format("rates/{}-{}-{}.yml", this_host(), kVersion, sha256_hex(text).substr(0, 16)));
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

Calibration measured_rates(const BenchTrainOptions& model, int ranks, const std::string& frozen, const Say& say) {
  if (!frozen.empty() && std::filesystem::exists(frozen)) {
    Scenario kept;
    const std::vector<ConfigSection> sections = cluster_sections(kept);
    ConfigDocument(read_config_file(frozen), frozen).read(sections);
    say(fmt::format("computing rates: those of {}", frozen));
    const Calibration rates{kept.compute, kept.jitter, kept.jitter_ms, kept.drift};
    if (const std::string doubt = doubt_about(rates, 0); !doubt.empty())
      say(fmt::format("warning: {}: {}; remove this file and what was computed with it to have them measured again", frozen, doubt));
    return rates;
  }
  // More ranks than cores would measure this host's shortage of cores, which a host that is meant for them does not have.
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
  // Each rank has a communication thread beside those that compute.
  if (ranks > 1 && ranks * (model.threads + 1) > usable_cores()) c.exchange_slows = 1;
  say(fmt::format(
      "computing rates, measured {}: forward {:.1f} and backward {:.1f} GFLOP/s, update {:.1f} GB/s, memory {:.1f} GB/s, weights {:.1f} "
      "GB/s, coding {:.1f} GB/s; steps vary by {:.1f} %{}{}",
      with, c.forward_gflops, c.backward_gflops, c.update_gb_s, c.memory_gb_s, c.weights_gb_s, c.coding_gb_s, 100 * c.jitter,
      ranks > 1 ? fmt::format("; one alone is {:.2f} times as fast", c.alone_speed) : "", frozen.empty() ? "" : "; kept in " + frozen));
  return c;
}

void keep_rates(const Calibration& rates, const std::string& frozen) {
  if (frozen.empty() || std::filesystem::exists(frozen)) return;
  Scenario kept;
  set_rates(kept, rates);
  real_file_system()->make_directories(parent_path(frozen));
  write_scenario(frozen, kept);
}

void write_cluster(const std::string& path, const BenchDistributedResult& r) {
  Scenario scenario;
  scenario.ranks = r.ranks;
  set_rates(scenario, r.rates);
  scenario.network.ranks_per_node = r.ranks_per_host;
  LinkModel& link = r.ranks_per_host < r.ranks ? scenario.network.inter : scenario.network.intra;
  const double bandwidth = r.step_bandwidth > 0 ? r.step_bandwidth : r.bandwidth;
  link = {0.7e6 * r.latency_s, 8e-9 * bandwidth, 0.3e6 * r.latency_s};  // the sender's part of it is a guess
  write_scenario(path, scenario);
}

}  // namespace starling
