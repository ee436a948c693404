// A small training run that any world can execute: random sentences, a tiny Transformer with dropout, every rank its share of the same
// global batches. Returns what tests compare: the losses, and the parameters bit for bit.
#pragma once

#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/random.h"
#include "data/batches.h"
#include "guard/snapshot.h"
#include "parallel/stages.h"
#include "replica/replica.h"
#include "strategies/factory.h"

namespace starling {

struct TrainingRun {
  StrategyOptions strategy;
  std::string backend = "reference";
  int steps = 10;
  int64_t sentences = 24;  // of a global batch
  std::string tied = "all";
  double rate = 3e-3;
  uint64_t seed = 3;
  std::string normalization = "tokens";
  int64_t sgd_after = 0;
  bool mixed = false;  // with sampled translations
  std::string optimizer = "adam";
  double clip = 0.5;
  std::string model = "transformer-tiny";  // a preset, made small
  int64_t layers = 1;                      // of each side; a recurrent decoder has one more
  int64_t heads = 2;
  AttentionPlace attention_place = AttentionPlace::bottom;
  ParallelOptions parallel;
  int64_t micro_tokens = 40;
  double state_clip = 0;               // of recurrent models
  double r_drop = 0, r_drop_from = 0;  // of `steps`
  int detour_at = -1;                  // before this step: a snapshot, three steps with other batches, and back
  // Makes tensors in the backend's memory go from card to card while what it returns lives; empty: they go through the hosts.
  std::function<std::shared_ptr<void>(Communicator&, Memory&)> connect;
};

// A preset's kind of model, as small as can be.
inline ModelConfig small_model(const std::string& preset, const std::string& tied, int64_t layers = 1, int64_t heads = 2) {
  ModelConfig config = model_preset(preset);
  config.width = 16, config.feed_forward = 32, config.encoder_layers = layers, config.decoder_layers = layers;
  config.dropout = 0.1, config.attention_dropout = 0.1, config.feed_forward_dropout = 0.1;
  if (preset.starts_with("transformer"))
    config.heads = heads, config.tied_embeddings = from_word<TiedEmbeddings>(tied);
  else
    config.decoder_layers = layers + 1;
  return config;
}

struct TrainingTrace {
  std::vector<double> losses;  // smoothed, per token
  std::vector<double> norms, rates, tokens, samples, distinct, clipped;
  std::vector<std::byte> values, first, second;           // parameters and the optimizer's state that the rank owns
  std::map<std::string, std::vector<double>> parameters;  // that the rank owns
  std::map<std::string, std::vector<double>> copies;      // of those that other ranks own
  std::map<std::string, std::vector<Range>> ranges;       // which elements of the model's parameters both are
  Traffic traffic;                                        // once the ranks have been arranged
  int64_t gradient_bytes = 0;
  std::string strategy, embeddings;
  int late = 0;  // steps that ended while parameters were on their way
};

inline Batch random_batch(uint64_t seed, int64_t index, int64_t sentences) {
  Random random(seed, 0x700 + static_cast<uint64_t>(index));
  Batch batch;
  batch.index = index;
  for (int64_t s = 0; s < sentences; ++s) {
    for (PackedTokens* side : {&batch.source, &batch.target}) {
      std::vector<int32_t> sentence(2 + random.below(9));
      for (auto& t : sentence) t = static_cast<int32_t>(3 + random.below(390));
      sentence.back() = 2;
      side->append(sentence.data(), sentence.data() + sentence.size());
    }
    batch.sample_ids.push_back(index * sentences + s);
  }
  return batch;
}

inline TrainingTrace train_together(const TrainingRun& run, World& world) {
  const auto backend = make_backend(run.backend, 1);
  ModelConfig config = small_model(run.model, run.tied, run.layers, run.heads);
  config.attention_place = run.attention_place;
  if (run.attention_place == AttentionPlace::top)
    config.readout = Readout::context, config.tied_embeddings = from_word<TiedEmbeddings>(run.tied);
  config.clip = run.state_clip;
  comm_settings(run.strategy, *world.comm);  // before the mesh, whose groups take them over
  const auto connected = run.connect ? run.connect(*world.comm, backend->memory()) : nullptr;
  const Mesh mesh(*world.comm, run.parallel);
  const Traffic before = world.comm->traffic();
  const auto model = make_model(config, {400, 400}, *backend, run.seed, true, part_of(mesh, config, {400, 400}, *backend));
  StepOptions options;
  options.strategy = run.strategy, options.optimizer.warmup = 5, options.optimizer.learning_rate = run.rate,
  options.optimizer.clip_norm = run.clip, options.optimizer.optimizer = from_word<OptimizerKind>(run.optimizer),
  options.optimizer.loss_normalization = from_word<LossNormalization>(run.normalization);
  if (run.r_drop > 0) options.r_drop = run.r_drop, options.r_drop_from = run.r_drop_from, options.max_steps = run.steps;
  options.optimizer.sgd_after = run.sgd_after, options.optimizer.sgd_learning_rate = 0.05, options.optimizer.sgd_clip_norm = 2;
  Replica replica(*model, options, world, mesh);
  const int worker = mesh.data_parallel().rank();
  TrainingTrace trace;
  const auto make_step = [&](int64_t index) {
    const Batch batch = random_batch(run.seed, index, run.sentences);
    const int workers = replica.strategy().workers();
    std::vector<Batch> parts;
    Refinement refinement;
    if (worker < workers) {
      Batch own = slice_for_rank(batch, worker, workers, replica.cost().source_weight(), replica.cost().target_weight());
      if (run.mixed && own.target.count() > 0) {
        refinement = sample_refinement(*model, own, {3, RewardBaseline::leave_one_out, 0.1, 1, 2}, run.seed, index + 1, 40);
        own.weights.assign(own.sample_ids.size(), 0.1f);
      }
      if (own.target.count() > 0) parts = split(own, run.micro_tokens);  // several micro-batches
    }
    return replica.step(parts, {}, refinement);
  };
  for (int step = 0; step < run.steps; ++step) {
    if (step == run.detour_at) {
      ReplicaSnapshot snapshot(replica);
      snapshot.keep();
      for (int64_t index = 1000; index < 1003; ++index) make_step(index);
      snapshot.restore();
    }
    const StepResult result = make_step(step);
    trace.late += model->parameters().expects();
    trace.samples.push_back(result.totals.samples), trace.distinct.push_back(result.totals.distinct);
    if (result.totals.tokens > 0) trace.losses.push_back(result.totals.smoothed / result.totals.tokens);  // exchanged in this step
    trace.norms.push_back(result.gradient_norm), trace.rates.push_back(result.learning_rate);
    trace.tokens.push_back(result.totals.tokens), trace.clipped.push_back(result.totals.clipped);
  }
  if (replica.strategy().replicas() == Replicas::served) replica.leave();
  model->parameters().wait_for_parameters();
  trace.values = model->parameters().values().download();
  for (const auto& [name, state] : replica.optimizer().state()) (name.ends_with(".v") ? trace.second : trace.first) = state.download();
  for (const Parameter* p : model->parameters().declared())
    if (p->hold != Parameter::absent) {
      (p->hold == Parameter::owned ? trace.parameters : trace.copies)[p->name] = p->value.to_doubles();
      trace.ranges[p->name] = model->parameters().local_ranges(*p);
    }
  trace.traffic = world.comm->traffic();
  trace.traffic.bytes_sent -= before.bytes_sent, trace.traffic.bytes_received -= before.bytes_received;
  trace.traffic.messages_sent -= before.messages_sent;
  trace.gradient_bytes = model->parameters().gradients().bytes();
  trace.strategy = replica.strategy().describe(), trace.embeddings = replica.strategy().embedding_report();
  return trace;
}

}  // namespace starling
