#include "train/run_checkpoints.h"

#include <algorithm>

namespace starling {

void RunCheckpoints::save() {
  if (!run_.alone()) return save_together();
  saved_ = run_.step();
  if (run_.first()) save_alone();
}

void RunCheckpoints::save_together() {
  run_.comm().note("checkpoint", run_.step());
  RankState ranks(*run_.replica, run_.comm());
  NamedTensors tensors = ranks.shared();
  const NamedTensors of_ranks = ranks.gather_own();
  if (run_.diverges()) {
    const SwappedParameters merged(run_.model->parameters(), run_.deployed.get(*run_.replica, status_.final()));
    if (run_.first()) write(tensors, of_ranks);
  } else {
    const NamedTensors optimizer = ranks.gather_optimizer();
    tensors.insert(tensors.end(), optimizer.begin(), optimizer.end());
    if (run_.first()) write(tensors, of_ranks);
  }
  saved_ = run_.step();
  if (run_.comm().size() > 1) run_.wait_for_first();
}

// The servers' parameters, optimizer and progress.
void RunCheckpoints::save_alone() {
  NamedTensors tensors;
  Tensor parameters;
  for (const Strategy::StateTensor& t : run_.replica->strategy_state())
    if (t.name == "parameters")
      parameters = t.tensor;
    else
      tensors.emplace_back(t.name, t.tensor);
  const SwappedParameters served(run_.model->parameters(), parameters);
  write(tensors, {});
}

// Rank 0's files; the optimizer with what else is of no rank.
void RunCheckpoints::write(const NamedTensors& optimizer, const NamedTensors& of_ranks) {
  run_.directory->require_owned();
  const WallClock wall;
  const double start = wall.seconds();
  const Tensor& average = run_.replica->average();
  const SwappedParameters averaged(run_.model->parameters(), average);
  std::vector<Part> parts =
      model_parts(*run_.model, run_.model->config(), *run_.vocabularies, search_options(run_.config.valid), run_.step());
  std::vector<NamedBytes> tensors, ranks;
  const auto named = [](const std::string& name, const Tensor& t) {
    return NamedBytes{name, t.dtype() == DType::f64 ? "F64" : "F32", {t.count()}, {t.raw(), static_cast<size_t>(t.bytes())}};
  };
  for (const auto& [name, tensor] : of_ranks) ranks.push_back(named(name, tensor));
  if (!ranks.empty()) parts.push_back(safetensors_part("ranks.safetensors", std::move(ranks)));
  for (const auto& [name, tensor] : optimizer) tensors.push_back(named(name, tensor));
  if (average) tensors.push_back(named("parameters", average));  // swapped: the raw values
  parts.push_back(safetensors_part("training.safetensors", std::move(tensors)));
  parts.push_back(text_part("state.json", state().to_json()));
  CheckpointStore& checkpoints = run_.directory->checkpoints();
  checkpoints.save(run_.step(), parts);
  run_.progress.event({{"type", "checkpoint"},
                       {"step", run_.step()},
                       {"directory", checkpoints.directory(run_.step())},
                       {"seconds", wall.seconds() - start}});
}

State RunCheckpoints::state() const {
  State s;
  s.put("step", run_.step());
  s.put("moments-since", run_.replica->moments_since());
  s.put("ranks", int64_t{run_.comm().size()});
  s.put("strategy", run_.config.strategy.name);
  s.put("epoch", run_.stream->position().epoch);
  s.put("batch", run_.stream->position().index);
  s.put("seed", run_.config.train.seed);
  s.put("batch-tokens", run_.batch_tokens);
  s.put("worker-batch-tokens", run_.worker_batch_tokens());
  s.put("micro-batch-tokens", run_.micro_tokens);
  s.put("data", run_.data_digest);
  s.put("source-vocabulary", run_.vocabularies->source().hash());
  s.put("target-vocabulary", run_.vocabularies->target().hash());
  s.put("seconds", status_.elapsed());
  judging_.save(s);
  return s;
}

void RunCheckpoints::resume() {
  NamedTensors optimizer;
  std::string text;
  const Loaded* loaded = run_.directory && run_.directory->checkpoint() ? &*run_.directory->checkpoint() : nullptr;  // rank 0
  if (loaded) text = run_.directory->state()->to_json(), optimizer = load(*loaded);
  run_.wait_for_first();
  text = broadcast_text(run_.comm(), text);
  if (text.empty()) return;
  run_.comm().broadcast(run_.model->parameters().values(), 0).wait(kPatience);
  run_.model->parameters().changed();
  const State state = State::from_json(text, "the state of rank 0");
  restore(state);
  run_.replica->begin();
  RankState ranks(*run_.replica, run_.comm());
  std::optional<SafetensorsFile> training, own;
  if (run_.first()) training.emplace(*run_.files, loaded->path("training.safetensors"));
  if (run_.first() && loaded->has("ranks.safetensors")) own.emplace(*run_.files, loaded->path("ranks.safetensors"));
  const bool each_its_own = !run_.alone() && resume_own(ranks, own, state);
  // Without the replicas that it belongs to, what the strategy was about to do is of no use.
  if (each_its_own || run_.alone() || !run_.diverges()) ranks.scatter_shared(training ? &*training : nullptr);
  if (!each_its_own || !run_.diverges()) {
    if (own) add_mean_moments(*own, state.integer("ranks"), optimizer);
    ranks.scatter_optimizer(optimizer);
  }
  if (run_.first()) run_.say(fmt::format("continuing after update {} from {}", run_.step(), loaded->directory));
}

// Each rank resumes from what it had for itself. False if there is no such thing, or the checkpoint is not of so many ranks and this
// strategy; replicas that differed then all begin with the deployed parameters and the mean of the moments.
bool RunCheckpoints::resume_own(RankState& ranks, const std::optional<SafetensorsFile>& file, const State& state) {
  const bool same =
      state.has("ranks") && state.integer("ranks") == run_.comm().size() && state.text("strategy") == run_.config.strategy.name;
  if (ranks.scatter_own(file && same ? &*file : nullptr)) return true;
  if (file && state.has("ranks"))
    run_.say(fmt::format("the checkpoint is of {} ranks with strategy {}{}", state.integer("ranks"), state.text("strategy"),
                         file->find("rank0.parameters")
                             ? ", whose replicas differed: all begin with its deployed model and the mean of its moments"
                             : ": what each of them had for itself is dropped"));
  return false;
}

// Rank 0: loads parameters and average, and returns the optimizer's state.
NamedTensors RunCheckpoints::load(const Loaded& loaded) {
  ParameterStore& parameters = run_.model->parameters();
  load_weights(*run_.files, loaded.path("model.safetensors"), parameters);
  const SafetensorsFile training(*run_.files, loaded.path("training.safetensors"));
  const auto restore = [&](const std::string& name, const Tensor& t) {
    const NamedBytes& saved = training.at(name);
    if (static_cast<int64_t>(saved.data.size()) != t.bytes())
      throw DataError(fmt::format("{}: tensor {} has {} bytes instead of {}", training.path(), name, saved.data.size(), t.bytes()));
    t.upload(std::as_bytes(saved.data));
  };
  NamedTensors optimizer;
  for (const auto& [name, tensor] : run_.replica->optimizer().state()) {
    optimizer.emplace_back(name, Tensor({parameters.values().count()}, tensor.dtype()));
    if (training.find(name)) restore(name, optimizer.back().second);  // absent where train.optimizer was sgd: Adam begins anew
  }
  const Tensor& average = run_.replica->average();
  if (training.find("parameters")) {  // then the file of weights holds their moving average
    if (average) average.copy_from(parameters.values());
    restore("parameters", parameters.values());
    parameters.changed();
  } else if (average) {  // train.ema was turned on since: the average begins here
    average.copy_from(parameters.values());
  }
  return optimizer;
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
  status_.over = t.max_minutes > 0 && status_.earlier_seconds >= 60 * t.max_minutes;
  // The sum of a batch's gradient is cut into the same parts as before, whatever memory is free today: equal bits.
  if (t.micro_batch_tokens == 0) run_.micro_tokens = s.integer("micro-batch-tokens");
  judging_.restore(s);
  if (run_.step() > 0) run_.model->set_clip(state_clip(run_.config, run_.step()));
  saved_ = run_.step();
}

}  // namespace starling
