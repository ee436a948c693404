// Computes the virtual times of a race's runs: the scenario of each run, and replays where training did not record the times.
#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/json.h"
#include "base/sha256.h"
#include "base/text_files.h"
#include "experiments/race_runner.h"

namespace starling {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

std::string scenario_text(Scenario scenario) {
  const std::vector<ConfigSection> sections{config_section("cluster", "", scenario)};
  return write_config(sections);
}

// Removes settings that do not affect a result. data.json checks the content of the files, wherever they are, and the tokens that the
// vocabulary produces from them.
Config without_places(Config config) {
  config.train.output = "run";
  config.log = {};
  for (CorpusFiles& corpus : config.data.train) corpus.source = corpus.target = corpus.tsv = "";
  config.vocab.training.normalization = VocabularyOptions().normalization;
  // Races of earlier versions did not record the default distances of their time.
  constexpr int64_t kThen = 1000;
  for (int64_t* every : {&config.valid.every, &config.checkpoint.every})
    if (*every == kThen) *every = 0;
  for (std::string* path : {&config.valid.source, &config.valid.target, &config.vocab.source, &config.vocab.target}) path->clear();
  return config;
}

std::map<int64_t, RaceTimes::At> read_times(const std::string& path) {
  const Json json = parse_json_object(read_text_file(path), path);
  return times_from(json.contains("updates") ? json.at("updates") : Json(), path);
}

}  // namespace

// A single worker is never disturbed, because the others are measured against it. Disturbances of ranks that a run does not have are
// dropped.
Scenario RaceRunner::scenario(const RaceArm& arm, int workers, const std::string& network) const {
  Scenario s = r_.cluster;
  const auto found = std::find_if(r_.networks.begin(), r_.networks.end(), [&](const RaceNetwork& n) { return n.name == network; });
  const RaceNetwork& net = found == r_.networks.end() ? r_.networks.front() : *found;
  const int count = plan_.ranks(arm, workers).count;
  // r refers to a ring of the workers; one worker with its servers gets the network of two.
  s.network = race_network(net, r_.cluster.network, count > 1 ? std::max(2, workers) : 1, gradient_bytes_, step_seconds_);
  std::erase_if(s.stragglers, [&](const Straggler& x) { return workers == 1 || x.rank >= count; });
  std::erase_if(s.link_faults, [&](const LinkFault& x) { return workers == 1 || x.node * s.network.ranks_per_node >= count; });
  return s;
}

std::string RaceRunner::configuration_of(const RaceRun& run, const Config& config, bool with_normalization) const {
  Config counted = without_places(config);
  if (with_normalization) counted.vocab.training.normalization = config.vocab.training.normalization;
  return sha256_hex(config_identity(counted) + fmt::format("{}\n{}\n", run.workers, fmt::join(r_.final_metrics, " ")) +
                    (run.network.empty() ? "" : scenario_text(scenario(run))));
}

RaceRunner::Times RaceRunner::at_validations(const RaceTimes& all, const RaceRecord& record) {
  Times times;
  for (const auto& [step, scores] : record.validations) times[step] = all.at(step);
  return times;
}

// Returns the times of the run's validations on a network, cached in <race>/replays.
RaceRunner::Times RaceRunner::times_of(const RaceRun& run, const std::string& network, const RaceRecord& record) const {
  if (record.validations.empty()) return {};
  if (!run.network.empty()) return record.times;
  const Config config = race_config(r_, run);
  const Scenario cluster = scenario(*run.arm, run.workers, network);
  Times times;
  Config timed = without_places(config);  // only what affects the time
  timed.train.optimizer.learning_rate = 1;
  timed.valid = {};
  timed.checkpoint = {};
  static const std::string program = sha256_file(*files_, "/proc/self/exe");  // another version may charge different times
  const std::string key = sha256_hex(config_identity(timed) + scenario_text(cluster) + std::to_string(run.workers) + program);
  const std::string path = join_path(join_path(r_.output, "replays"), key.substr(0, 24) + ".json");
  if (fs::exists(path)) times = read_times(path);
  if (std::all_of(record.validations.begin(), record.validations.end(), [&](const auto& v) { return times.contains(v.first); }))
    return times;
  say(fmt::format("replaying {}{}", run.name(), network.empty() ? "" : " on " + network));
  times = at_validations(replay_times(config, cluster, *store_, *vocabularies_, run.workers, record.validations.back().first), record);
  const std::lock_guard lock(replays_mutex_);  // runs that differ only in their learning rates share a file
  files_->replace_file(path, Json{{"updates", times_to_json(times)}}.dump() + "\n");
  return times;
}

RaceResult RaceRunner::result(const RaceRun& run, const std::string& network, const RaceRecord& record) const {
  const bool diverged = !std::isfinite(record.loss());
  RaceResult result{run.arm->name, network, run.arm->control, run.workers, 0, run.seed, run.rate, diverged, {}, record.finals, run.second};
  if (!network.empty()) result.bandwidth_gbit_s = resolved(scenario(*run.arm, run.workers, network).network).inter.bandwidth_gbit_s;
  const Times times = times_of(run, network, record);
  for (const auto& [step, scores] : record.validations) {
    const RaceTimes::At& at = times.at(step);
    result.curve.push_back({step, at.tokens, at.bytes, 1e-9 * static_cast<double>(at.ns), scores});
  }
  return result;
}

}  // namespace starling
