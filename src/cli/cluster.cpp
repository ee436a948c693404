#include "cli/cluster.h"

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/files.h"
#include "base/task_progress.h"
#include "base/text_files.h"
#include "cli/help.h"
#include "config/config.h"

namespace starling {
namespace {

constexpr const char* kRates[] = {"forward-gflops", "backward-gflops", "update-gb-s", "memory-gb-s"};

std::vector<ConfigSection> sections_of(Scenario& scenario) { return {config_section("cluster", "Simulated cluster", scenario)}; }

ComputeModel compute_model(const Calibration& c) {
  ComputeModel model;
  model.forward_gflops = c.forward_gflops;
  model.backward_gflops = c.backward_gflops;
  model.update_gb_s = c.update_gb_s;
  model.memory_gb_s = c.memory_gb_s;
  model.weights_gb_s = c.weights_gb_s;
  return model;
}

}  // namespace

std::shared_ptr<ClusterArguments> ClusterArguments::add_to(CLI::App& verb) {
  auto a = std::make_shared<ClusterArguments>();
  verb.add_option("--cluster", a->file_, "The simulated cluster, YAML with the section `cluster`; see docs/explanation/simulator.md")
      ->type_name("FILE");
  Scenario scenario;
  const std::vector<ConfigSection> sections = sections_of(scenario);
  for (const ConfigField& field : sections.front().fields) {
    const char* shorthand = field.key == "ranks" ? ",--workers" : field.key == "network" ? ",--network" : "";
    a->keys_.emplace_back("cluster." + field.key, verb.add_option("--cluster." + field.key + shorthand, field.help)
                                                      ->expected(1)
                                                      ->take_last()
                                                      ->group(*shorthand ? "Options" : kClusterGroup));
  }
  return a;
}

bool ClusterArguments::given() const {
  return !file_.empty() || std::any_of(keys_.begin(), keys_.end(), [](const auto& key) { return key.second->count() > 0; });
}

Scenario ClusterArguments::load(const BenchTrainOptions& model, const std::string& frozen,
                                const std::function<void(const std::string&)>& say, std::optional<ComputeModel>& measured) const {
  Scenario scenario;
  const std::vector<ConfigSection> sections = sections_of(scenario);
  const auto given = [&](const std::string& key, const ConfigDocument* document) {
    if (document && document->has("cluster", key)) return true;
    return std::any_of(keys_.begin(), keys_.end(),
                       [&](const auto& option) { return option.first == "cluster." + key && option.second->count() > 0; });
  };
  std::optional<ConfigDocument> document;
  if (!file_.empty()) document.emplace(read_config_file(file_), file_);
  const auto read = [&] {
    if (document) document->read(sections);
    for (const auto& [name, option] : keys_)
      if (option->count() > 0) apply_override(sections, name, option->results().back());
  };
  read();  // mistakes are reported before anything is measured
  if (const std::string gpu = scenario.network.gpu; gpu != "none") {
    say(fmt::format("computing rates: assumed for the GPU {} (docs/explanation/simulator.md), where none are given", gpu));
    scenario.compute = gpu_rates(gpu);
    read();
    return scenario;
  }
  bool rates = true;
  for (const char* key : kRates) rates = rates && given(key, document ? &*document : nullptr);
  if (!rates) {
    scenario.compute = measured_rates(model, frozen, say);
    measured = scenario.compute;
    read();
  }
  return scenario;
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

ComputeModel measured_rates(const BenchTrainOptions& model, const std::string& frozen, const std::function<void(const std::string&)>& say) {
  Scenario kept;
  if (!frozen.empty() && std::filesystem::exists(frozen)) {
    const std::vector<ConfigSection> sections = sections_of(kept);
    ConfigDocument(read_config_file(frozen), frozen).read(sections);
    say(fmt::format("computing rates: those of {}", frozen));
    const Calibration rates{.forward_gflops = kept.compute.forward_gflops, .backward_gflops = kept.compute.backward_gflops};
    if (const std::string doubt = doubt_about(rates, 0); !doubt.empty())
      say(fmt::format("warning: {}: {}; remove this file and what was computed with it to have them measured again", frozen, doubt));
    return kept.compute;
  }
  say(fmt::format("measuring computing rates with {} thread{} of this machine, about {:.0f} s", model.threads,
                  model.threads == 1 ? "" : "s", 2 * model.seconds));
  TaskProgress progress("computing rates", standard_error_screen());
  const Calibration c = calibrate(model, say, [&](double share) {
    if (progress.due()) progress.tell(share, "");
  });
  kept.compute = compute_model(c);
  say(fmt::format(
      "computing rates, measured with {} thread{} of this machine: forward {:.1f} and backward {:.1f} GFLOP/s, update {:.1f} GB/s, "
      "memory {:.1f} GB/s, weights {:.1f} GB/s{}",
      model.threads, model.threads == 1 ? "" : "s", c.forward_gflops, c.backward_gflops, c.update_gb_s, c.memory_gb_s, c.weights_gb_s,
      frozen.empty() ? "" : "; kept in " + frozen));
  return kept.compute;
}

void keep_rates(const ComputeModel& rates, const std::string& frozen) {
  if (frozen.empty() || std::filesystem::exists(frozen)) return;
  Scenario kept, standard;
  kept.compute = rates;
  const std::vector<ConfigSection> defaults = sections_of(standard);
  const auto files = real_file_system();
  files->make_directories(parent_path(frozen));
  files->replace_file(frozen, write_config(sections_of(kept), {.defaults = defaults}));
}

void write_cluster(const std::string& path, const BenchDistributedResult& r) {
  Scenario scenario, standard;
  scenario.ranks = r.ranks;
  scenario.compute = compute_model(r.rates);
  scenario.network.inter = {0.7e6 * r.latency_s, 8e-9 * r.bandwidth, 0.3e6 * r.latency_s};  // the sender's part of it is a guess
  const std::vector<ConfigSection> defaults = sections_of(standard);
  real_file_system()->replace_file(path, write_config(sections_of(scenario), {.defaults = defaults}));
}

std::string simulation_text(const SimulationResult& result, const Scenario& scenario) {
  const auto seconds = [](int64_t ns) { return 1e-9 * static_cast<double>(ns); };
  std::string text = fmt::format("simulated: {} ranks, network {}, {:.3f} virtual seconds, {} messages\n", scenario.ranks,
                                 scenario.network.preset, seconds(result.virtual_ns), result.messages);
  text += "rank  computing s  waiting s   sent MiB  received MiB\n";
  const size_t shown = std::min<size_t>(result.ranks.size(), 16);
  for (size_t r = 0; r < shown; ++r) {
    const RankReport& rank = result.ranks[r];
    text += fmt::format("{:4} {:12.3f} {:10.3f} {:10.1f} {:13.1f}{}\n", r, seconds(rank.computed_ns), seconds(rank.waited_ns),
                        static_cast<double>(rank.traffic.bytes_sent) / (1 << 20),
                        static_cast<double>(rank.traffic.bytes_received) / (1 << 20), rank.error.empty() ? "" : "  " + rank.error);
  }
  if (shown < result.ranks.size()) text += fmt::format("... and {} more ranks\n", result.ranks.size() - shown);
  return text;
}

}  // namespace starling
