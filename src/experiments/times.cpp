#include "experiments/times.h"

#include <algorithm>
#include <deque>
#include <filesystem>
#include <memory>
#include <utility>

#include "backend/meta.h"
#include "base/error.h"
#include "base/json.h"
#include "base/text_files.h"
#include "data/batches.h"
#include "decode/model_directory.h"
#include "experiments/record.h"
#include "replica/r_drop.h"
#include "replica/replica.h"
#include "run/post_update_actions.h"
#include "run/run_setup.h"
#include "run/update_loop.h"
#include "settings/batch_size_schedule.h"
#include "strategies/factory.h"

namespace starling {
namespace {

constexpr int64_t kBreath = 10'000'000'000;  // ns after a pause, within which all networks become idle and all ranks learn when to resume

// The batches of a run, created once for all ranks and kept until the last worker has taken them.
class SharedBatches {
 public:
  SharedBatches(const TokenStore& store, const BatchOptions& options, int takers) : stream_(store, options), takers_(takers) {}

  std::shared_ptr<const Batch> take(int64_t index) {
    const std::lock_guard lock(mutex_);
    while (index >= first_ + static_cast<int64_t>(kept_.size())) kept_.push_back({std::make_shared<const Batch>(stream_.next()), takers_});
    Kept& kept = kept_[static_cast<size_t>(index - first_)];
    --kept.left;
    const auto batch = kept.batch;
    while (!kept_.empty() && kept_.front().left == 0) {
      kept_.pop_front();
      ++first_;
    }
    return batch;
  }

 private:
  struct Kept {
    std::shared_ptr<const Batch> batch;
    int left;
  };
  std::mutex mutex_;
  BatchStream stream_;
  const int takers_;
  std::deque<Kept> kept_;
  int64_t first_ = 0;
};

// The configuration's model on a backend that computes nothing, for timing.
struct MetaModel {
  MetaModel(const Config& config, const ModelVocabulary& vocabulary)
      : model(make_model(config.model, vocabulary, backend, std::nullopt, true)) {}
  MetaBackend backend{DType::f32, DType::f32};
  std::unique_ptr<Model> model;
};

// Runs one rank's part of a replay.
void replay_rank(const Config& config, const ModelVocabulary& vocabulary, SharedBatches& batches, int64_t steps, World& world,
                 RankTimes& times) {
  const MetaModel idle(config, vocabulary);
  const StepOptions options = step_options(config, config.train.optimizer, step_limit(config.train));
  comm_settings(config.strategy, *world.comm);
  Replica replica(*idle.model, options, world);
  CHECK(replica.strategy().replicas() != Replicas::served, "times of {} depend on what is computed", config.strategy.name);
  const int rank = world.comm->rank(), workers = replica.strategy().workers();
  const int64_t global = plan_batch(config.strategy, config.train.batch_tokens, workers).global_tokens;
  const int64_t last = last_update(config.train, global);  // of the whole run; the replay may cover only its beginning
  std::optional<BatchSizeSchedule> growth;
  if (BatchSizeSchedule::asked(config.train)) {
    growth.emplace(config.train, global, last);
    replica.end_schedule_at(last);
  }
  const Distances every = distances(config, last);
  UpdateLoop loop(config, replica, rank, growth ? &*growth : nullptr, text_tokens(config.train.micro_batch_tokens, config.train.r_drop));
  UpdateLoop::Source source;
  int64_t next = 0, tokens = 0;
  source.next = [&](int64_t count) {
    Batch batch;
    if (rank < workers) batch = *batches.take(next);
    for (int64_t i = 1; rank < workers && i < count; ++i) append(batch, *batches.take(next + i));
    next += count;
    return batch;
  };
  for (int64_t step = 0; step < steps; ++step) {
    tokens += loop.make(source).own_tokens;
    if (loop.count(every, {}).any() || step + 1 == steps) idle.model->parameters().wait_for_parameters();
    times.ns.push_back(world.clock->now_ns());
    times.tokens.push_back(tokens);
    times.bytes.push_back(world.comm->traffic().bytes_sent);
  }
}

// Returns the last value at or before a time.
int64_t value_by(const RankTimes& rank, const std::vector<int64_t>& values, int64_t ns) {
  const auto after = std::upper_bound(rank.ns.begin(), rank.ns.end(), ns) - rank.ns.begin();
  return after == 0 ? 0 : values[static_cast<size_t>(after) - 1];
}

}  // namespace

int64_t RaceTimes::steps() const {
  int64_t least = ranks.empty() ? 0 : static_cast<int64_t>(ranks[0].ns.size());
  for (int r = 0; r < (asynchronous ? 1 : workers); ++r)
    least = std::min(least, static_cast<int64_t>(ranks[static_cast<size_t>(r)].ns.size()));
  return least;
}

RaceTimes::At RaceTimes::at(int64_t step) const {
  CHECK(step >= 1 && step <= steps(), "update {} of {}", step, steps());
  At at;
  const auto i = static_cast<size_t>(step) - 1;
  const bool last = step == steps();
  for (int r = 0; r < (asynchronous && !last ? 1 : workers); ++r)
    if (const auto& ns = ranks[static_cast<size_t>(r)].ns; !ns.empty()) at.ns = std::max(at.ns, asynchronous && last ? ns.back() : ns[i]);
  for (const RankTimes& rank : ranks) {
    at.tokens += asynchronous ? value_by(rank, rank.tokens, at.ns) : rank.tokens[i];
    at.bytes += asynchronous ? value_by(rank, rank.bytes, at.ns) : rank.bytes[i];
  }
  at.bytes /= workers;
  return at;
}

RaceRanks ranks_for_workers(const Config& config, const ModelVocabulary& vocabulary, int workers) {
  const MetaModel idle(config, vocabulary);
  std::string problem = "its strategy has no such number of workers";
  for (int ranks = workers; ranks <= 4 * workers; ++ranks) {
    try {
      const auto strategy = make_strategy(config.strategy, idle.model->parameters(), {}, 0, ranks);
      if (strategy->workers() == workers) return {ranks, strategy->replicas() == Replicas::served};
    } catch (const ConfigError& e) {
      problem = e.what();
    }
  }
  throw ConfigError(fmt::format("there is no number of ranks with {} workers: {}", workers, problem));
}

RaceTimes replay_times(const Config& config, Scenario scenario, const TokenStore& store, const Vocabularies& vocabularies, int workers,
                       int64_t steps) {
  const ModelVocabulary vocabulary = vocabularies.sizes();
  scenario.ranks = ranks_for_workers(config, vocabulary, workers).count;
  scenario.timing_only = true;
  RaceTimes times;
  times.workers = workers;
  times.ranks.resize(static_cast<size_t>(scenario.ranks));
  const int64_t tokens = plan_batch(config.strategy, config.train.batch_tokens, workers).global_tokens;
  SharedBatches batches(store, batch_options(config, tokens, vocabularies), workers);
  simulate(scenario, [&](World& world) {
    replay_rank(config, vocabulary, batches, steps, world, times.ranks[static_cast<size_t>(world.comm->rank())]);
  });
  return times;
}

double step_seconds(const Config& config, Scenario scenario, const TokenStore& store, const Vocabularies& vocabularies, int64_t steps) {
  scenario.jitter = 0;
  scenario.stragglers.clear();
  scenario.link_faults.clear();
  scenario.network.ranks_per_node = 1;
  const RaceTimes times = replay_times(config, scenario, store, vocabularies, 1, steps);
  return 1e-9 * static_cast<double>(times.at(steps).ns) / static_cast<double>(steps);
}

int64_t gradient_bytes(const Config& config, const ModelVocabulary& vocabulary) {
  return 4 * MetaModel(config, vocabulary).model->parameters().count();
}

NetworkModel race_network(const RaceNetwork& network, const NetworkModel& base, int workers, int64_t bytes, double step) {
  NetworkModel model = base;
  model.preset = network.preset;
  model.inter = network.link;
  if (network.r <= 0 || workers == 1) return model;
  const LinkModel link = resolved(model).inter;
  const double rounds = 2.0 * (workers - 1), fixed = rounds * 1e-6 * (link.latency_us + link.message_us), time = network.r * step;
  if (fixed >= 0.9 * time)
    throw ConfigError(fmt::format(
        "network {}: r = {:g} is {:.3g} ms per step, but the latencies of a ring of {} workers alone are {:.3g} ms; lower latency-us "
        "and message-us, or use more tokens per step",
        network.name, network.r, 1e3 * time, workers, 1e3 * fixed));
  model.inter.bandwidth_gbit_s = rounds * 8e-9 * static_cast<double>(bytes) / workers / (time - fixed);
  return model;
}

TimesRecorder::TimesRecorder(int ranks, int workers, bool asynchronous, std::string path)
    : workers_(workers), asynchronous_(asynchronous), path_(std::move(path)), ranks_(static_cast<size_t>(ranks)) {
  if (!path_.empty() && std::filesystem::exists(path_)) load();
}

TrainingWatch TimesRecorder::watch(World& world) {
  Rank& rank = ranks_[static_cast<size_t>(world.comm->rank())];
  rank.paused_at = world.clock->now_ns() + rank.apart_ns;
  TrainingWatch watch;
  watch.paused = [this, &world, &rank](bool synchronous) { pause(world, rank, synchronous); };
  watch.resumed = [this, &world, &rank](bool synchronous) { resume(world, rank, synchronous); };
  watch.updated = [this, &world, &rank](int64_t step, int64_t tokens, int64_t aside) { note(world, rank, step, tokens, aside); };
  return watch;
}

void TimesRecorder::pause(World& world, Rank& rank, bool synchronous) {
  rank.paused_at = world.clock->now_ns();
  rank.bytes_at = bytes(world);
  if (synchronous) world.comm->barrier().wait(kNoDeadline);  // after it, all ranks have recorded their updates
  if (asynchronous_ && &rank == &ranks_[0]) {
    const std::lock_guard lock(mutex_);
    pauses_[static_cast<int64_t>(rank.times.ns.size())] = first_ns_ + rank.paused_at - rank.paused_ns;
  }
  if (world.comm->rank() == 0) keep();
}

void TimesRecorder::resume(World& world, Rank& rank, bool synchronous) {
  if (synchronous && world.comm->size() > 1) {
    const Tensor longest({1}, DType::f64);
    doubles_of(longest)[0] = static_cast<double>(world.clock->now_ns() - rank.paused_at);
    world.comm->all_reduce(longest, Reduce::maximum).wait(kNoDeadline);
    world.clock->sleep_until(rank.paused_at + static_cast<int64_t>(doubles_of(longest)[0]) + kBreath);
  }
  if (!synchronous) return;  // its pushes and fetches continue during the pause
  rank.paused_ns += world.clock->now_ns() - rank.paused_at;
  rank.paused_bytes += bytes(world) - rank.bytes_at;
}

void TimesRecorder::note(World& world, Rank& rank, int64_t step, int64_t tokens, int64_t aside) {
  const int64_t ns = world.clock->now_ns() - rank.paused_ns, sent = bytes(world) - rank.paused_bytes - aside;
  const std::lock_guard lock(mutex_);
  RankTimes& t = rank.times;
  const auto recorded = static_cast<int64_t>(t.ns.size());
  CHECK((asynchronous_ && &rank != &ranks_[0]) || step == recorded + 1, "update {} after {} are recorded", step, recorded);
  t.ns.push_back(first_ns_ + ns);
  t.bytes.push_back(rank.first_bytes + sent);
  t.tokens.push_back((t.tokens.empty() ? 0 : t.tokens.back()) + tokens);
}

// Of asynchronous ranks, keeps what they had done when rank 0 paused to save, however many updates that is.
void TimesRecorder::continue_from(int64_t updates) {
  const auto count = static_cast<size_t>(updates);
  const RankTimes first = ranks_[0].times;
  if (first.ns.size() < count)
    throw DataError(fmt::format("{}: times of {} updates are recorded, but the run continues after {}; remove the run's directory", path_,
                                first.ns.size(), updates));
  first_ns_ = count > 0 ? first.ns[count - 1] : 0;
  pauses_.erase(pauses_.upper_bound(updates), pauses_.end());
  if (const auto pause = pauses_.find(updates); pause != pauses_.end()) first_ns_ = pause->second;
  const int64_t moment = first_ns_;
  for (Rank& rank : ranks_) {
    RankTimes& t = rank.times;
    const auto by_then = static_cast<size_t>(std::upper_bound(t.ns.begin(), t.ns.end(), moment) - t.ns.begin());
    const size_t kept = asynchronous_ && &rank != &ranks_[0] ? by_then : count;
    if (t.ns.size() < kept)
      throw DataError(
          fmt::format("{}: times of {} updates of a rank are recorded, but the run continues after {}; remove the run's directory", path_,
                      t.ns.size(), kept));
    for (auto* values : {&t.ns, &t.tokens, &t.bytes}) values->resize(kept);
    rank.first_bytes = kept > 0 ? t.bytes.back() : 0;
    if (!asynchronous_ && kept > 0) first_ns_ = std::min(first_ns_, t.ns.back());
  }
  for (Rank& rank : ranks_) rank.apart_ns = asynchronous_ || count == 0 ? 0 : rank.times.ns.back() - first_ns_;
}

int64_t TimesRecorder::bytes(World& world) const {
  const Traffic traffic = world.comm->traffic();
  return traffic.bytes_sent + (asynchronous_ ? traffic.bytes_received : 0);
}

void TimesRecorder::keep() const {
  if (path_.empty()) return;
  const std::lock_guard lock(mutex_);
  nlohmann::json ranks = nlohmann::json::array();
  for (const Rank& r : ranks_) ranks.push_back({{"ns", r.times.ns}, {"tokens", r.times.tokens}, {"bytes", r.times.bytes}});
  real_file_system()->replace_file(path_, nlohmann::json{{"ranks", ranks}, {"pauses", pauses_}}.dump());
}

void TimesRecorder::load() {
  const nlohmann::json record = parse_json_object(read_text_file(path_), path_);
  const auto refuse = [&](const std::string& what) {
    throw DataError(fmt::format("{}: not a record of times: {}; remove the run's directory", path_, what));
  };
  if (!record.contains("ranks") || !record.at("ranks").is_array()) refuse("it has no list of ranks");
  const nlohmann::json& ranks = record.at("ranks");
  if (ranks.size() != ranks_.size()) refuse(fmt::format("it has {} ranks instead of {}", ranks.size(), ranks_.size()));
  for (size_t r = 0; r < ranks_.size(); ++r) {
    RankTimes& t = ranks_[r].times;
    for (auto [key, values] : {std::pair("ns", &t.ns), {"tokens", &t.tokens}, {"bytes", &t.bytes}}) {
      if (!ranks[r].is_object() || !ranks[r].contains(key)) refuse(fmt::format("rank {} has no {}", r, key));
      *values = counts_from(ranks[r].at(key), path_, fmt::format("{} of rank {}", key, r));
    }
    if (t.tokens.size() != t.ns.size() || t.bytes.size() != t.ns.size()) refuse(fmt::format("rank {} has lists of unequal length", r));
    if (!std::is_sorted(t.ns.begin(), t.ns.end())) refuse(fmt::format("the times of rank {} run backwards", r));
  }
  try {
    if (record.contains("pauses")) record.at("pauses").get_to(pauses_);
  } catch (const nlohmann::json::exception& e) {
    refuse(e.what());
  }
  for (const auto& [step, ns] : pauses_)
    if (step < 0 || ns < 0) refuse(fmt::format("a pause after {} updates at {} ns", step, ns));
}

RaceTimes TimesRecorder::times() const {
  const std::lock_guard lock(mutex_);
  RaceTimes times;
  times.workers = workers_;
  times.asynchronous = asynchronous_;
  for (const Rank& r : ranks_) times.ranks.push_back(r.times);
  return times;
}

}  // namespace starling
