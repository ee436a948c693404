#include "laboratory/cluster.h"

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/files.h"
#include "base/text_files.h"
#include "config/config.h"
#include "program/help.h"

namespace starling {
namespace {

constexpr const char* kRates[] = {"forward-gflops", "backward-gflops", "update-gb-s", "memory-gb-s"};

}  // namespace

std::shared_ptr<ClusterArguments> ClusterArguments::add_to(CLI::App& verb) {
  auto a = std::make_shared<ClusterArguments>();
  verb.add_option("--cluster", a->file_, "The simulated cluster, YAML with the section `cluster`; see docs/explanation/simulator.md")
      ->type_name("FILE");
  Scenario scenario;
  const std::vector<ConfigSection> sections = cluster_sections(scenario);
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

void add_measure_again(CLI::App& verb, bool& again) {
  verb.add_flag("--measure-again", again, "measure computing rates that an earlier prediction has kept");
}

Scenario ClusterArguments::load_for_prediction(const BenchTrainOptions& model, bool again,
                                               const std::function<void(const std::string&)>& say, const Scenario& standard) const {
  std::string kept;
  std::optional<Calibration> measured;
  const auto frozen = [&](const Scenario& scenario) {
    kept = rates_path(model, ranks_of_a_node(scenario));
    std::error_code ignored;  // a file that cannot be removed cannot be replaced either, which is said then
    if (again && !kept.empty()) std::filesystem::remove(kept, ignored);
    return kept;
  };
  const Scenario scenario = load(model, frozen, say, measured, standard);
  if (!measured) return scenario;
  try {
    keep_rates(*measured, kept);
  } catch (const std::exception& e) {
    say(fmt::format("the rates are not kept for the next prediction: {}", e.what()));
  }
  return scenario;
}

Scenario ClusterArguments::load(const BenchTrainOptions& model, const std::function<std::string(const Scenario&)>& frozen,
                                const std::function<void(const std::string&)>& say, std::optional<Calibration>& measured,
                                const Scenario& standard) const {
  Scenario scenario = standard;
  const std::vector<ConfigSection> sections = cluster_sections(scenario);
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
    measured = measured_rates(model, ranks_of_a_node(scenario), frozen(scenario), say);
    set_rates(scenario, *measured);
    read();
  }
  return scenario;
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
