#include "run/run_checkpoints.h"

#include <algorithm>
#include <sstream>

#include "base/counted.h"
#include "base/sha256.h"
#include "parallel/stage_weights.h"
#include "parallel/stages.h"
#include "run/run_setup.h"
#include "saving/rank_save.h"
#include "saving/sent_files.h"

namespace starling {
namespace {

constexpr uint64_t kSmallFiles = 4 << 20;  // bytes of a checkpoint beside its tensors: vocabularies, settings

// Returns the ranks per replica of the run that made the checkpoint; older versions had only whole replicas.
int replica_ranks(const State& state) { return state.has("replica-ranks") ? static_cast<int>(state.integer("replica-ranks")) : 1; }

}  // namespace

// A checkpoint that is being saved, and what was known when it began.
struct RunCheckpoints::UnderWay {
  UnderWay(int64_t of_step, bool is_last) : step(of_step), last(is_last) {}
  const int64_t step;
  const bool last;
  std::optional<RankSave> save;
  double waited = 0;  // seconds that training has waited for it
  const WallClock wall;
  const double began = wall.seconds();
  int64_t window = 0;  // of a stream: the first that it needs
};

RunCheckpoints::RunCheckpoints(RunParts& run, RunStatus& status, ValidationLoop& validations, ActionsByTime& by_time, RunGuard& guard,
                               bool beside_training)
    : run_(run), status_(status), validations_(validations), by_time_(by_time), guard_(guard), beside_training_(beside_training) {}
RunCheckpoints::~RunCheckpoints() = default;

bool RunCheckpoints::due_again() const { return !under_way_ && again_ > 0 && run_.step() >= again_; }

void RunCheckpoints::prepare() {
  const double bytes = run_.memory ? run_.memory->bytes_of("copies for checkpoints") : 0;
  if (!beside_training_ || bytes == 0) return;
  copies_.emplace(run_.backend->threads(), run_.ranks_here());
  copies_->prepare(static_cast<uint64_t>(bytes) + kSmallFiles);
}

void RunCheckpoints::save(bool last) {
  finish_before(last);
  if (run_.first()) run_.directory->require_owned();
  if (!copies_) copies_.emplace(run_.world.simulated ? 1 : run_.backend->threads(), run_.ranks_here());
  under_way_ = std::make_unique<UnderWay>(run_.step(), last);
  // The window before the one that comes next is needed too (first_window() in run_setup.cpp).
  if (run_.text) under_way_->window = std::max<int64_t>(run_.stream->position().epoch - 1, 0);
  current_ = true;
  run_.driver->for_checkpoint([&](Communicator& comm, const Tensor& own, const std::vector<Strategy::StateTensor>& strategy) {
    const SwappedParameters averaged(run_.model->parameters(), run_.replica->average());
    std::vector<Part> parts;
    std::string mark;
    StageWeights weights(*run_.model, *run_.mesh);
    AroundWriting around;
    if (run_.first())
      parts = parts_of_first(weights.fetch()), mark = sha256_hex(state().to_json()), around.after = [&] { weights.done(); };
    else if (run_.leads())
      around.before = [&] { weights.serve(); };
    RankState ranks(*run_.replica, *run_.mesh);
    if (auto shard = ranks.shard(own, strategy)) parts.push_back(std::move(*shard));
    CheckpointStore* checkpoints = run_.first() ? &run_.directory->checkpoints() : nullptr;
    under_way_->save.emplace(SavePlace{*run_.files, run_.config.train.output, checkpoints, run_.step(), mark}, comm);
    if (beside_training_ && !last)
      under_way_->save->begin(parts, around, *copies_, run_.world.simulated);
    else
      under_way_->save->save(parts, around);
  });
  under_way_->waited = under_way_->wall.seconds() - under_way_->began;
  if (!under_way_->save) return under_way_.reset();  // this rank takes no part
  guard_.saved();
  advance(last);
}

// Waits for the checkpoint that is under way.
void RunCheckpoints::finish_before(bool last) {
  if (!under_way_) return;
  constexpr double kLong = 60;
  if (last) under_way_->save->skip_copy();
  if (const double seconds = under_way_->wall.seconds() - under_way_->began; seconds > kLong && run_.first() && !last)
    run_.say(fmt::format(
        "warning: writing the checkpoint of update {} has taken {:.0f} s so far, and the next one is due: training waits for it; "
        "save less often (checkpoint.every), or on a faster disk",
        under_way_->step, seconds));
  advance(true);
}

void RunCheckpoints::advance(bool wait) {
  if (!under_way_) return;
  const double begins = under_way_->wall.seconds();
  const std::optional<std::string> complaint = under_way_->save->advance(wait);
  under_way_->waited += under_way_->wall.seconds() - begins;
  if (!complaint) return;
  const auto ended = std::move(under_way_);
  for (const std::string& line : ended->save->reports()) run_.say(line);
  ended->save.reset();
  if (!complaint->empty()) return tell_failure(*complaint, ended->step, ended->last);
  complete(*ended);
}

void RunCheckpoints::complete(const UnderWay& saved) {
  if (run_.first())
    run_.progress.event({{"type", "checkpoint"},
                         {"step", saved.step},
                         {"directory", run_.directory->checkpoints().directory(saved.step)},
                         {"seconds", saved.wall.seconds() - saved.began},
                         {"waited_seconds", saved.waited}});
  newest_ = saved.step;
  saved_ = current_ ? saved.step : -1;
  again_ = wait_ = 0;
  if (later_ && run_.first()) remove_later();
  later_ = false;
  if (!run_.text) return;
  if (!saved_windows_.empty() && saved_windows_.back().first == saved.step) saved_windows_.pop_back();
  saved_windows_.emplace_back(saved.step, saved.window);
  if (std::ssize(saved_windows_) > run_.config.checkpoint.keep) saved_windows_.pop_front();
  if (std::ssize(saved_windows_) == run_.config.checkpoint.keep) run_.text->keep_from(saved_windows_.front().second);
}

// A full or failing disk is no reason to lose the run, unless there is nothing more to come.
void RunCheckpoints::tell_failure(const std::string& complaint, int64_t step, bool last) {
  const std::string what = fmt::format("the checkpoint of update {} cannot be saved: {}", step, complaint);
  const std::string newest = newest_ < 0 ? "there is none so far" : fmt::format("the newest one is of update {}", newest_);
  if (last) {
    if (!run_.first()) run_.comm().barrier().wait(kNoDeadline);  // rank 0 reports it, and ends the others
    throw IoError(fmt::format("{}; {}{}", what, newest, newest_ < 0 ? "" : ": the same command continues from there"));
  }
  wait_ = std::clamp<int64_t>(2 * wait_, std::max<int64_t>(1, run_.every.saves / 10), std::max<int64_t>(1, run_.every.saves));
  again_ = run_.step() + wait_;
  if (!run_.first()) return;
  const std::string next = status_.stopped || run_.driver->finished()
                               ? "it will be tried once more"
                               : fmt::format("training goes on, and the next try follows after update {}", again_);
  run_.say(fmt::format("warning: {}; {}; {}", what, newest, next));
  run_.progress.event({{"type", "checkpoint-failed"}, {"step", step}, {"reason", complaint}});
}

// Removes the checkpoints of updates from which the run has gone back.
void RunCheckpoints::remove_later() {
  try {
    run_.directory->checkpoints().remove_after(newest_);
  } catch (const IoError& e) {
    run_.say(
        fmt::format("warning: the checkpoints after update {}, from which the run went back, cannot be removed: {}", newest_, e.what()));
  }
}

bool RunCheckpoints::went_back() {
  advance(true);
  outdated();
  again_ = wait_ = 0;
  if (newest_ <= run_.step()) return false;
  later_ = true;
  while (!saved_windows_.empty() && saved_windows_.back().first > run_.step()) saved_windows_.pop_back();
  return true;
}

std::vector<Part> RunCheckpoints::parts_of_first(const FetchWeights& fetch) const {
  std::vector<Part> parts = model_parts(*run_.model, run_.model->config(), run_.config.languages, *run_.vocabularies,
                                        run_.config.valid.search, run_.step(), fetch);
  parts.push_back(text_part("state.json", state().to_json()));
  return parts;
}

State RunCheckpoints::state() const {
  State s;
  s.put("step", run_.step());
  s.put("moments-since", run_.replica->moments_since());
  s.put("ranks", int64_t{run_.comm().size()});
  s.put("replica-ranks", int64_t{run_.mesh->replica_size()});
  s.put("shards", int64_t{run_.mesh->shards()});
  s.put("stages", cut_text(stage_units(*run_.model, *run_.mesh)));
  s.put("strategy", run_.config.strategy.name);
  s.put("epoch", run_.stream->position().epoch);
  s.put("batch", run_.stream->position().index);
  s.put("seed", run_.config.train.seed);
  s.put("batch-tokens", run_.batch_tokens);
  s.put("worker-batch-tokens", run_.worker_batch_tokens());
  s.put("micro-batch-tokens", run_.micro_tokens);
  s.put("warmup", run_.config.train.optimizer.warmup);
  s.put("learning-rate", run_.config.train.optimizer.learning_rate);
  s.put("warmup-share", run_.config.train.optimizer.warmup_share);
  s.put("optimizer", fmt::format("{}", run_.config.train.optimizer.optimizer));
  s.put("schedule", fmt::format("{}", run_.optimizer.schedule));
  s.put("schedule-end", schedule_end(run_));
  s.put("max-minutes", run_.config.train.max_minutes);
  s.put("data", run_.data_digest);
  s.put("settings", fmt::format("{}", fmt::join(config_lines(run_.config), "\n")));
  if (run_.text) s.put("windows", run_.text->digests());
  s.put("source-vocabulary", run_.vocabularies->source().hash());
  s.put("target-vocabulary", run_.vocabularies->target().hash());
  s.put("seconds", status_.elapsed());
  s.put("preparation-seconds", status_.preparation);
  by_time_.save(s);
  if (run_.growth) run_.growth->save(s);
  run_.noise.save(s);
  validations_.save(s);
  guard_.save(s);
  return s;
}

void RunCheckpoints::resume() {
  const std::optional<Loaded> loaded = checkpoint();
  if (!loaded) return;
  const std::string text = broadcast_text(run_.comm(), run_.first() ? run_.directory->state()->to_json() : "");
  const State state = State::from_json(text, "the state of rank 0");
  std::vector<std::string> tensors;
  for (const PartInfo& part : loaded->files)
    if (part.name.ends_with(".safetensors")) tensors.push_back(part.name);
  const SeenDirectory seen(*run_.files, run_.comm(), run_.config.train.output, loaded->directory, tensors, run_.leads());
  std::optional<RankCheckpoints> shards;
  if (run_.leads()) {
    Loaded here = *loaded;
    here.directory = seen.path();
    load(here, shards.emplace(*run_.files, here, run_.model->parameters(), replica_ranks(state)));
  }
  const RankCheckpoints* saved = shards ? &*shards : nullptr;
  run_.mesh->data_parallel().broadcast(run_.model->parameters().values(), 0).wait(kNoDeadline);
  run_.model->parameters().changed();
  restore(state);
  run_.replica->begin();
  RankState ranks(*run_.replica, *run_.mesh);
  const bool own = resume_own(ranks, saved, state), merged = run_.replicas() == Replicas::merged;
  // The strategy's pending work is useless without the replicas that it belongs to.
  if (own || !merged) ranks.scatter_shared(same_parts(state) ? saved : nullptr);
  const bool moments = (own && merged) || ranks.scatter_optimizer(saved);
  run_.replica->share_parameters();
  if (!run_.first()) return;
  run_.say(fmt::format("continuing after update {} from {}", run_.step(), loaded->directory));
  if (!moments)
    run_.say(fmt::format("the checkpoint has no moments of train.optimizer {}: they start from zero at update {}", run_.optimizer.optimizer,
                         run_.step() + 1));
}

// Returns, on all ranks, the checkpoint that rank 0 has found.
std::optional<Loaded> RunCheckpoints::checkpoint() const {
  const Loaded* found = run_.directory && run_.directory->checkpoint() ? &*run_.directory->checkpoint() : nullptr;
  std::string text = found ? found->directory : "";
  for (size_t i = 0; found && i < found->files.size(); ++i) text += "\n" + found->files[i].name;
  run_.wait_for_first();
  text = broadcast_text(run_.comm(), text);
  if (text.empty()) return std::nullopt;
  if (found) return *found;
  std::istringstream lines(text);
  Loaded told;
  std::getline(lines, told.directory);
  for (std::string name; std::getline(lines, name);) told.files.push_back({name, 0, ""});
  return told;
}

// Whether the checkpoint's ranks held the same parts of the model as these ranks do.
bool RunCheckpoints::same_parts(const State& state) const {
  const Mesh& mesh = *run_.mesh;
  if (replica_ranks(state) != mesh.replica_size() || (state.has("shards") ? state.integer("shards") : 1) != mesh.shards()) return false;
  const std::string then = state.has("stages") ? state.text("stages") : cut_text(stage_units(*run_.model, mesh.stages()));
  return then == cut_text(stage_units(*run_.model, mesh));
}

// Restores each rank's own state. Returns false if there is none, or if the checkpoint has another number of ranks or another strategy;
// replicas that differed then all begin with the deployed parameters and the mean of the moments.
bool RunCheckpoints::resume_own(RankState& ranks, const RankCheckpoints* saved, const State& state) {
  const bool same = state.has("ranks") && state.integer("ranks") == run_.comm().size() && same_parts(state) &&
                    state.text("strategy") == run_.config.strategy.name;
  if (ranks.scatter_own(same ? saved : nullptr)) return true;
  if (!saved || !state.has("ranks") || !run_.first()) return false;
  const bool replicas = saved->has("replica.parameters");
  if (replicas || saved->has_own())
    run_.say(fmt::format("the checkpoint is of {} ranks with strategy {}{}{}", state.integer("ranks"), state.text("strategy"),
                         same ? " and other options" : "",
                         replicas ? ", whose replicas differed: all begin with its deployed model and the mean of its moments"
                                  : ": their per-rank state is dropped"));
  return false;
}

// On the first replica: loads parameters and their average.
void RunCheckpoints::load(const Loaded& loaded, const RankCheckpoints& saved) {
  ParameterStore& parameters = run_.model->parameters();
  const Tensor& average = run_.replica->average();
  load_weights(*run_.files, loaded.path("model.safetensors"), parameters);
  if (average) average.copy_from(parameters.values());  // train.ema may have been turned on since: then the average begins here
  if (!saved.has("parameters")) return;
  const Range whole{0, parameters.values().count()};  // the file of weights holds their moving average
  std::vector<std::byte> bytes(static_cast<size_t>(parameters.values().bytes()));
  saved.require(saved.read("parameters", std::nullopt, {&whole, 1}, bytes), "parameters");
  parameters.values().upload(bytes);
  parameters.changed();
}

void RunCheckpoints::restore(const State& s) {
  const TrainConfig& t = run_.config.train;
  run_.replica->optimizer().set_updates(s.integer("step"));
  if (s.has("moments-since")) run_.replica->optimizer().set_moments_since(s.integer("moments-since"));
  // With more or fewer workers of an unchanged batch each, about the same place in the epoch.
  int64_t batch = s.integer("batch");
  if (const int64_t then = s.integer("batch-tokens"); then != run_.batch_tokens)
    batch = std::min(batch * then / run_.batch_tokens, std::max<int64_t>(run_.batches_per_epoch - 1, 0));
  run_.stream->seek({s.integer("epoch"), batch});
  status_.epoch = s.integer("epoch") + 1;
  status_.earlier_seconds = s.real("seconds");
  if (s.has("preparation-seconds")) status_.preparation = s.real("preparation-seconds");
  by_time_.restore(s);
  status_.over = t.max_minutes > 0 && status_.earlier_seconds >= 60 * t.max_minutes;
  if (t.micro_batch_tokens == 0) run_.micro_tokens = s.integer("micro-batch-tokens");
  if (run_.growth) run_.growth->restore(s, static_cast<double>(s.integer("batch-tokens")) / static_cast<double>(run_.batch_tokens));
  if (!run_.growth && BatchSizeSchedule::batches_taken(s) != run_.step())
    throw ConfigError(
        fmt::format("the batch of this run has grown: its {} have taken as many tokens as {} of the first size; set "
                    "train.batch-doubles-at or batch-follows-noise as before, so that its place in the schedule is known",
                    counted(run_.step(), "update"), BatchSizeSchedule::batches_taken(s)));
  run_.noise.restore(s);
  if (s.has("schedule-end")) tell_other_schedule(s);
  validations_.restore(s);
  guard_.restore(s);
  if (run_.step() > 0) run_.model->set_clip(state_clip(run_.config, run_.taken()));
  saved_ = newest_ = run_.step();
}

// A run with another schedule, or one that was to end elsewhere, jumps to another learning rate.
void RunCheckpoints::tell_other_schedule(const State& s) {
  struct Schedule {
    RateSchedule kind;
    int64_t end;
    double minutes;
    bool operator==(const Schedule&) const = default;
  };
  const auto text = [&](const Schedule& x) {
    return has_end(x.kind) ? fmt::format("{}, ending {}", x.kind, end_text(run_, x.end, x.minutes)) : fmt::format("{}", x.kind);
  };
  const auto place = [](Schedule x) { return has_end(x.kind) ? x : Schedule{x.kind, 0, 0}; };  // nothing else matters
  const Schedule now = place({run_.optimizer.schedule, schedule_end(run_), run_.config.train.max_minutes});
  const Schedule then = place({s.has("schedule") ? from_word<RateSchedule>(s.text("schedule")) : run_.optimizer.schedule,
                               s.integer("schedule-end"), s.has("max-minutes") ? s.real("max-minutes") : run_.config.train.max_minutes});
  const int64_t next = run_.taken() + (run_.growth ? run_.growth->next() : 1);
  if (then == now || is_sgd(run_.optimizer, next)) return;
  const auto rate = [&](const Schedule& x) {
    OptimizerOptions o = run_.optimizer;
    o.schedule = x.kind;
    const double trained = status_.earlier_seconds - status_.preparation, all = 60 * x.minutes - status_.preparation;
    const double gone = x.minutes == 0 ? 0 : all > trained ? trained / all : 1;
    const double end = static_cast<double>(x.end);
    return (run_.growth ? run_.growth->rate_factor() : 1) *
           learning_rate(o, next, gone > 0 ? std::min(end, static_cast<double>(next) / gone) : end);
  };
  run_.say(fmt::format("the schedule was {}, and is now {}: the learning rate of update {} is {:.3g}, not {:.3g}", text(then), text(now),
                       run_.step() + 1, rate(now), rate(then)));
}

}  // namespace starling
