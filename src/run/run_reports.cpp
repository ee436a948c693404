#include "run/run_reports.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/affinity.h"
#include "base/counted.h"
#include "base/memory.h"
#include "evaluation/unknown_text.h"
#include "progress/statistics.h"
#include "settings/corpus_defaults.h"
#include "settings/fit_to_programs.h"
#include "strategies/steps.h"

namespace starling {
namespace {

// Describes what follows the warm-up, if the schedule has an end.
std::string schedule_text(const RunParts& run) {
  const OptimizerOptions& o = run.optimizer;
  if (!has_end(o.schedule)) return "";
  const std::string shape = o.schedule == RateSchedule::wsd
                                ? fmt::format("then constant, and linear for the last {:g} % of the run", 100 * o.decay_share)
                                : fmt::format("then {}", o.schedule);
  const bool sgd = o.sgd_after > 0 && o.sgd_after < schedule_end(run);
  const std::string end = end_text(run, schedule_end(run), run.config.train.max_minutes);
  return fmt::format("; {}, {} {:g} {}{}", shape, sgd ? "towards" : "to", o.final_rate * o.learning_rate, end,
                     sgd ? fmt::format(", but only until update {}: then plain SGD with {:g}", o.sgd_after, o.sgd_learning_rate) : "");
}

// Describes a warm-up that may end early, by elapsed time.
std::string sooner_text(const RunParts& run) {
  const OptimizerOptions& o = run.optimizer;
  if (o.warmup_share == 0 || o.warmup == 0 || run.config.train.max_minutes == 0) return "";
  return fmt::format(", or after {:g} % of the run's time if that is sooner, with {:.3g} at most then", 100 * o.warmup_share,
                     warmup_of(o, 0).peak);
}

}  // namespace

void RunReports::announce() {
  const auto model = static_cast<double>(run_.model->parameters().declared_count());
  const auto [warmup, peak] = warmup_of(run_.optimizer, static_cast<double>(schedule_end(run_)));
  const auto epoch = static_cast<double>(run_.batches_per_epoch);
  run_.say(fmt::format("model: {}, {:.2f} M parameters; {}; {} target tokens per update, computed {} at a time; about {} per epoch",
                       run_.config.model.preset, model / 1e6, run_.backend->describe(), run_.batch_tokens, computed_at_once(),
                       counted(run_.batches_per_epoch, "update")));
  if (run_.memory) run_.say(fmt::format("memory{}, planned: {}", run_.comm().size() > 1 ? " of rank 0" : "", run_.memory->text()));
  if (run_.mixed())
    run_.say(
        fmt::format("objective: expected GLEU of {} samples per source sentence (baseline {}) + {:g} x likelihood without label smoothing",
                    run_.config.refine.samples, run_.config.refine.baseline, run_.config.refine.likelihood_weight));
  run_.say(fmt::format("learning rate {:g}{}{}{}", peak,
                       warmup > 0 ? fmt::format(" after {} of warm-up", counted(std::llround(warmup), "update")) : ", no warm-up",
                       warmup > 0 && epoch > 0 ? fmt::format(", {:.1f} epochs", warmup / epoch) : "", sooner_text(run_)) +
           schedule_text(run_));
  if (run_.growth) {
    std::vector<std::string> plan;
    for (const double share : run_.config.train.batch_doubles_at) plan.push_back(fmt::format("after {:g} % of the run", 100 * share));
    if (const int64_t most = run_.config.train.batch_follows_noise; most > 0)
      plan.push_back(fmt::format("as the gradient's noise grows, up to {} target tokens", most));
    run_.say(fmt::format("the batch doubles {}; warm-up and schedule count batches of {} target tokens", fmt::join(plan, ", "),
                         run_.batch_tokens));
  }
  if (const double alpha = run_.config.train.r_drop; alpha > 0) {
    const auto before = static_cast<int64_t>(std::ceil(run_.config.train.r_drop_from * static_cast<double>(schedule_end(run_))));
    run_.say(fmt::format("from {} on each sentence is passed twice, train.r-drop {:g}",
                         run_.growth ? fmt::format("target token {}", before * run_.batch_tokens) : fmt::format("update {}", before + 1),
                         alpha));
  }
  announce_choices();
  announce_unknown();
  warn();
  nlohmann::ordered_json event{{"type", "start"},
                               {"step", run_.step()},
                               {"parameters", run_.model->parameters().declared_count()},
                               {"backend", run_.backend->describe()},
                               {"pairs", run_.tokens().size()}};
  if (run_.memory) {
    for (const MemoryPlan::Kind& k : run_.memory->kinds) event["memory_mib"][k.name] = std::round(k.bytes / (1 << 20));
    event["micro_batch_tokens"] = run_.micro_tokens;
    event["planned_memory_mib"] = std::round(run_.memory->peak() / (1 << 20));
  }
  if (run_.comm().size() > 1) announce_ranks(event);
  run_.progress.event(event);
}

// Reports the settings that were chosen because nobody gave them, and where the model can go.
void RunReports::announce_choices() {
  if (run_.step() > 0) return;
  if (const std::string choices = choices_text(run_.config); !choices.empty()) run_.say(choices);
  run_.say(destinations_text(run_.config));
}

// Only for new runs: nothing can be done about it in a run that resumes.
void RunReports::announce_unknown() {
  if (!run_.first() || run_.step() > 0) return;
  const std::string line =
      unknown_line(count_unknown(run_.tokens(), *run_.vocabularies), *run_.vocabularies, run_.config.train.initial_model);
  if (!line.empty()) run_.say(line);
}

// Target tokens.
int64_t RunReports::computed_at_once() const {
  const int64_t share = run_.batch_tokens / std::max(run_.replica->strategy().workers(), 1), passes = run_.config.parallel.passes();
  return passes == 1 ? std::min(run_.micro_tokens, run_.batch_tokens) : std::min(run_.micro_tokens, (share + passes - 1) / passes);
}

// Consecutive ranks with equal texts share a line.
void RunReports::announce_ranks(nlohmann::ordered_json& event) {
  Communicator& comm = run_.comm();
  const std::string cores = run_.world.simulated ? "" : ", " + cores_text(usable_core_list());
  const std::vector<std::string> texts =
      gather_texts(comm, fmt::format("{}{}: {}", comm.host(comm.rank()), cores, run_.backend->describe()));
  for (int r = 0, last = 0; r < comm.size(); r = last + 1) {
    for (last = r; last + 1 < comm.size() && texts[static_cast<size_t>(last) + 1] == texts[static_cast<size_t>(r)];) ++last;
    run_.say(fmt::format("{} on {}", last > r ? fmt::format("ranks {} to {}", r, last) : fmt::format("rank {}", r),
                         texts[static_cast<size_t>(r)]));
  }
  announce_stages();
  run_.say(fmt::format("strategy: {}", run_.replica->strategy().describe()));
  event["ranks"] = comm.size();
  event["strategy"] = run_.config.strategy.name;
}

// Reports the stages of the first replica.
void RunReports::announce_stages() {
  const Mesh& mesh = *run_.mesh;
  if (!mesh.divided()) return;
  const UnitRange& units = run_.model->parameters().units();
  const auto layer = [&](size_t unit) {
    const auto encoder = static_cast<size_t>(run_.config.model.encoder_layers);
    return unit + 1 == run_.model->units() ? "output"
           : unit < encoder                ? fmt::format("encoder {}", unit)
                                           : fmt::format("decoder {}", unit - encoder);
  };
  const std::string own =
      fmt::format("{}{}{}, {:.2f} M parameters", layer(units.begin), units.end - units.begin > 1 ? " to " + layer(units.end - 1) : "",
                  mesh.hybrid() ? " and a share of the output" : "", static_cast<double>(run_.model->parameters().count()) / 1e6);
  const std::vector<std::string> parts = gather_texts(mesh.replica(), own);
  for (int stage = 0; stage < mesh.stages(); ++stage)
    for (int shard = 0; shard < mesh.shards(); ++shard) {
      const int rank = mesh.part_of(stage, shard);
      run_.say(fmt::format("stage {} of {}{} (rank {}): {}", stage + 1, mesh.stages(),
                           mesh.shards() > 1 ? fmt::format(", shard {} of {}", shard + 1, mesh.shards()) : "", rank,
                           parts[static_cast<size_t>(rank)]));
    }
}

void RunReports::warn() {
  const TrainConfig& t = run_.config.train;
  const ModelConfig& m = run_.config.model;
  if (run_.mixed() && std::max({m.dropout, m.attention_dropout, m.feed_forward_dropout}) > 0)
    run_.say(
        "warning: train.objective is mixed and there is dropout, so the gradient is that of models other than the one that "
        "was sampled from; set model.dropout, attention-dropout and feed-forward-dropout to 0");
  if (run_.mixed() && t.initial_model.empty() && run_.step() == 0)
    run_.say(
        "warning: train.objective is mixed, but the run starts from random weights, whose samples teach nothing; name a converged model in "
        "train.initial-model");
  const ModelDescription* initial = run_.initial();
  const double clip = state_clip(run_.config, 1);
  if (initial && initial->config.clip > 0 && std::abs(clip / initial->config.clip - 1) > 1e-6)
    run_.say(
        fmt::format("warning: train.initial-model bounds its states by {0:g}, but this run begins with {1:g} (0 = none); to "
                    "continue as it ended, set train.clip-start and model.clip to {0:g}",
                    initial->config.clip, clip));
  if (initial && initial->config.clip == 0 && clip > 0)
    run_.say(fmt::format(
        "warning: the states of train.initial-model are not bounded, but this run bounds them by {:g} from its first update on; "
        "larger states are cut off at once: set model.clip to 0, or start with a wider bound, train.clip-start",
        clip));
  for (const std::string& key : idle_keys(run_.config)) run_.say("warning: " + key);
  if (const std::string advice = run_.text ? "" : small_corpus_advice(run_.config, run_.store->size(), run_.batches_per_epoch);
      !advice.empty() && run_.step() == 0)
    run_.say(advice);
  const double warmup = warmup_of(run_.optimizer, static_cast<double>(schedule_end(run_))).updates;
  const auto is_warmup = [](const Override& chosen) { return chosen.first == "train.warmup"; };
  const std::vector<Override>& chosen = run_.config.chosen;
  // A run of a few updates, for which the program has chosen one update of warm-up, needs no advice.
  if (warmup >= static_cast<double>(schedule_end(run_)) && std::none_of(chosen.begin(), chosen.end(), is_warmup))
    run_.say(fmt::format("warning: the warm-up of {} is as long as the run or longer, so {}; shorten train.warmup",
                         counted(std::llround(warmup), "update"),
                         has_end(run_.optimizer.schedule) ? fmt::format("its schedule {} never begins", run_.optimizer.schedule)
                                                          : std::string("its learning rate is never reached")));
  if (t.optimizer.sgd_after > 0 && t.optimizer.sgd_after >= run_.max_steps)
    run_.say(fmt::format("train.sgd-after {} is not reached within {}", t.optimizer.sgd_after, counted(run_.max_steps, "update")));
}

void RunReports::announce_sgd() {
  const OptimizerOptions& o = run_.optimizer;
  if (o.sgd_after == 0 || run_.step() != o.sgd_after) return;
  const auto clipping = [](double norm) { return norm > 0 ? fmt::format("clipped to norm {:g}", norm) : std::string("not clipped"); };
  run_.say(fmt::format("{} updates of {} done; from here on plain SGD: learning rate {:g}{}, gradient {}", run_.step(), o.optimizer,
                       o.sgd_learning_rate, o.sgd_halve_every > 0 ? " with halvings" : "", clipping(o.sgd_clip_norm)));
}

void RunReports::begin() {
  begun_ = run_.clock().seconds();
  reported_ = run_.comm().traffic();
  updates_ = 0;
}

void RunReports::add(const StepResult& result) {
  last_ = result;
  ++updates_;
  run_.noise.add(result.noise);
  window_ += {result.totals, {}};
  run_.progress.tick(make_report());
}

void RunReports::tell_growth(int64_t before) {
  if (!run_.growth) return;
  const int64_t factor = run_.growth->factor();
  if (factor == before || !run_.first() || run_.driver->finished()) return;
  run_.say(fmt::format(
      "from update {} on {} target tokens per update{}", run_.step() + 1, factor * run_.batch_tokens,
      run_.config.train.batch_growth_exponent > 0 ? fmt::format(", and the learning rate times {:.3g}", run_.growth->rate_factor()) : ""));
  run_.progress.event(
      {{"type", "batch"}, {"step", run_.step()}, {"batch_tokens", factor * run_.batch_tokens}, {"noise_scale", run_.noise.tokens()}});
}

TrainReport RunReports::make_report() const {
  const StepTotals& sums = window_.totals;
  TrainReport r;
  r.step = run_.step();
  r.max_steps = run_.max_steps;
  r.epoch = status_.epoch;
  r.loss = sums.tokens > 0 ? sums.smoothed / sums.tokens : reported_loss_;
  r.sentences = static_cast<int64_t>(sums.sentences);
  r.source_tokens = static_cast<int64_t>(sums.source_tokens);
  r.target_tokens = static_cast<int64_t>(sums.tokens);
  r.seconds = run_.clock().seconds() - begun_ - paused_;
  r.virtual_time = run_.world.simulated;
  r.learning_rate = last_.learning_rate;
  r.gradient_norm = last_.gradient_norm;
  r.noise_scale = run_.noise.tokens();
  if (sums.clippable > 0) r.clipped = sums.clipped / sums.clippable;
  if (sums.samples > 0) {
    r.reward = sums.reward / sums.samples;
    r.distinct = sums.distinct / sums.samples;
  }
  if (sums.consistency > 0) r.consistency = sums.consistency / sums.tokens;
  if (sums.alignment > 0) r.alignment = sums.alignment / sums.tokens;
  r.fraction = status_.fraction(last_.fraction);
  return r;
}

void RunReports::report() {
  if (window_.totals.tokens == 0) return;
  TrainReport line = make_report();
  line.memory = static_cast<double>(resident_memory());
  run_.progress.report(line);
  reported_loss_ = line.loss;
  report_communication();
  window_ = {};
  paused_ = 0;
  begun_ = run_.clock().seconds();
}

// One small gather: what each rank sent and how long it waited since the last report.
void RunReports::report_communication() {
  Communicator& comm = run_.comm();
  if (comm.size() == 1 || !run_.driver->synchronous()) return;
  const Traffic now_sent = comm.traffic();
  const double span = std::max(run_.clock().seconds() - begun_, 1e-9);
  const Tensor all({2 * comm.size()}, DType::f64);
  doubles_of(all)[2 * comm.rank()] = 1e-9 * static_cast<double>(now_sent.waited_ns - reported_.waited_ns);
  doubles_of(all)[2 * comm.rank() + 1] = static_cast<double>(now_sent.bytes_sent - reported_.bytes_sent);
  comm.all_reduce(all).wait();
  reported_ = comm.traffic();
  const int64_t updates = std::max<int64_t>(1, updates_);
  updates_ = 0;
  if (!run_.first()) return;
  std::vector<double> waited, bytes;
  for (int r = 0; r < comm.size(); ++r)
    waited.push_back(doubles_of(all)[2 * r]), bytes.push_back(doubles_of(all)[2 * r + 1] / static_cast<double>(updates));
  const auto least = std::min_element(waited.begin(), waited.end()) - waited.begin();
  const double mean = std::accumulate(waited.begin(), waited.end(), 0.0) / static_cast<double>(waited.size());
  const std::string rows = run_.replica->strategy().embedding_report();
  run_.progress.event({{"type", "communication"},
                       {"step", run_.step()},
                       {"seconds", span},
                       {"waited", waited},
                       {"bytes_per_update", bytes},
                       {"embeddings", rows}});
  std::string text = fmt::format(
      "communication: ranks waited {:.1f} % of the time (rank {} least, {:.1f} %), {:.2f} MiB sent per rank and update", 100 * mean / span,
      least, 100 * waited[static_cast<size_t>(least)] / span, *std::max_element(bytes.begin(), bytes.end()) / (1 << 20));
  if (!rows.empty() && run_.step() == 1) text += "; " + rows;
  run_.say(text);
}

void RunReports::report_noise() {
  const double tokens = run_.noise.tokens();
  if (!run_.first() || std::isnan(tokens)) return;
  const int workers = run_.replica->strategy().workers();
  const auto share = static_cast<double>(run_.batch_tokens * (run_.growth ? run_.growth->factor() : 1)) / workers;
  run_.say(fmt::format(
      "the gradient's noise scale is now about {:.3g} target tokens: in batches up to that size, tokens teach nearly as much as in "
      "smaller ones; with {:.0f} tokens per worker, up to about {} are worth it",
      tokens, share, counted(std::max<int64_t>(1, std::llround(tokens / share)), "worker")));
}

void RunReports::end() {
  run_.comm().note("end", run_.step());
  run_.replica->leave();
  report_noise();
  const Strategy::Report report = run_.replica->strategy().report();
  if (!run_.first() || report.text.empty()) return;
  run_.say(report.text);
  nlohmann::ordered_json event{{"type", "strategy"}, {"step", run_.step()}};
  for (const auto& [name, value] : report.figures) event[name] = value;
  run_.progress.event(event);
}

}  // namespace starling
