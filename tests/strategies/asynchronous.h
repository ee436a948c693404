// A small asynchronous run that any world can execute: every worker computes its own shares of the batches of training.h until it is told
// to end, the servers serve, and rank 0 fetches what has become of the parameters.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "backend/meta.h"
#include "tests/strategies/training.h"

namespace starling {

inline StrategyOptions an_update_ahead() {
  StrategyOptions o = strategy_preset("downpour");
  o.overlap = true;
  return o;
}

struct AsynchronousRun {
  StrategyOptions strategy = an_update_ahead();
  std::string backend = "reference", optimizer = "adam";
  int64_t max_steps = 10;   // of all workers on average
  int64_t leave_after = 0;  // updates of each worker; 0: when told
  int64_t sentences = 24;
  double rate = 3e-3, clip = 0;
  int ask_server = -1;  // a server that is asked to stop at its 21st message
  int64_t stop_at = 0;  // rank 0 asks to stop at this update of its own; 0: never
  uint64_t seed = 3;
  const std::vector<Strategy::StateTensor>* resume = nullptr;  // of an earlier run's first rank, after resume_updates updates of its own
  int64_t resume_updates = 0;
  std::function<std::shared_ptr<void>(Communicator&, Memory&)> connect;  // as in training.h
};

struct AsynchronousTrace {
  std::vector<double> told, norms, rates;  // loss per token as the totals say; as in StepResult
  std::vector<double> told_tokens;
  std::vector<Strategy::StateTensor> state;  // of rank 0 at the end
  double loss_before = 0, loss_after = 0;    // of the first and the last parameters on one batch, per token; rank 0
  std::vector<double> looked;                // parameters, as every worker sees them before it leaves
  std::map<std::string, double> figures;
  std::string text, description;
  Traffic traffic;
  int64_t gradient_bytes = 0, updates = 0, flat = 0;
  double fraction = 0;  // of the run, as last heard
  bool stop = false, finished = false;

  std::vector<double> values() const { return state.at(0).tensor.to_doubles(); }
};

inline AsynchronousTrace train_apart(const AsynchronousRun& run, World& world) {
  auto backend = make_backend(run.backend, 1);
  const auto connected = run.connect ? run.connect(*world.comm, backend->memory()) : nullptr;
  ModelConfig config = model_preset("transformer-tiny");
  config.width = 16, config.feed_forward = 32, config.heads = 2, config.encoder_layers = 1, config.decoder_layers = 1;
  config.dropout = 0.1, config.attention_dropout = 0.1, config.feed_forward_dropout = 0.1, config.tied_embeddings = TiedEmbeddings::all;
  const bool idle = !world.computes;
  if (idle) backend = std::make_unique<MetaBackend>(backend->activation(), backend->parameter());
  const auto model = make_model(config, {400, 400}, *backend, run.seed, true);
  StepOptions options;
  options.strategy = run.strategy, options.optimizer.warmup = 5, options.optimizer.learning_rate = run.rate;
  options.optimizer.optimizer = from_word<OptimizerKind>(run.optimizer), options.optimizer.clip_norm = run.clip,
  options.max_steps = run.max_steps;
  comm_settings(options.strategy, *world.comm);
  Replica replica(*model, options, world);
  int looks = 0;
  replica.on_asked_to_stop([&] { return world.comm->rank() == run.ask_server && ++looks > 20; });
  const int rank = world.comm->rank(), workers = replica.strategy().workers();
  const bool apart = replica.strategy().replicas() == Replicas::served;
  if (run.resume) {
    const auto saved = [&](const std::string& name) {
      return std::find_if(run.resume->begin(), run.resume->end(), [&](const auto& t) { return t.name == name; })->tensor;
    };
    model->parameters().values().from_doubles(saved("parameters").to_doubles());
    model->parameters().changed();
    replica.optimizer().set_updates(run.resume_updates);
    replica.begin();
    for (const auto& t : replica.strategy_state()) t.tensor.from_doubles(saved(t.name).to_doubles());
    for (const auto& [name, mine] : replica.optimizer().state()) {
      const Tensor whole = saved(name);
      int64_t at = 0;
      for (const Range& r : replica.strategy().owned(rank)) {
        mine.slice(at, Shape{r.count()}).from_doubles(whole.slice(r.begin, Shape{r.count()}).to_doubles());
        at += r.count();
      }
    }
  } else {
    replica.begin();
  }
  AsynchronousTrace trace;
  const Batch other = random_batch(run.seed, 1000, 50);
  const auto loss_of_other = [&] {
    Arena arena(backend->memory());
    Tape tape(model->parameters(), arena);
    return model->loss(tape, other, 0).read().nll / static_cast<double>(other.target.count());
  };
  if (!idle && rank == 0) trace.loss_before = loss_of_other();
  trace.flat = model->parameters().values().count();
  for (int64_t step = run.resume_updates;; ++step) {
    if (rank < workers && run.leave_after > 0 && step == run.leave_after) break;
    if (!apart && step == run.max_steps) break;
    const Batch batch = random_batch(run.seed, step, run.sentences);
    std::vector<Batch> parts;
    if (rank < workers) {
      Batch own = slice_for_rank(batch, rank, workers, replica.cost().source_weight(), replica.cost().target_weight());
      if (own.target.count() > 0) parts = split(own, 40);
    }
    const int64_t before = replica.steps();
    const StepResult result = replica.step(parts, {run.stop_at > 0 && rank == 0 && step + 1 >= run.stop_at, false});
    if (result.totals.tokens > 0) {
      trace.told.push_back(result.totals.smoothed / result.totals.tokens);
      trace.told_tokens.push_back(result.totals.tokens);
    }
    trace.fraction = result.fraction;
    trace.stop = result.control.stop > 0, trace.finished = result.control.finished > 0;
    if (trace.stop || trace.finished) {
      if (rank < workers) {
        EXPECT_EQ(replica.steps(), before) << "an update that was not to be";
      }
      break;
    }
    trace.norms.push_back(result.gradient_norm), trace.rates.push_back(result.learning_rate);
  }
  trace.updates = replica.steps();
  if (idle) {
    if (rank == 0 && apart) replica.strategy_state();  // nothing to read
  } else if (rank < workers && apart) {
    trace.looked = replica.deployed(false).to_doubles();
    if (rank == 0) trace.state = replica.strategy_state();
    for (Strategy::StateTensor& t : trace.state) t.tensor = t.tensor.on_host();
    if (rank == 0) {
      model->parameters().values().from_doubles(trace.looked);
      model->parameters().changed();
      trace.loss_after = loss_of_other();
    }
  } else if (!apart) {
    trace.state.push_back({"parameters", model->parameters().values().on_host(), true});
    for (const auto& [name, tensor] : replica.optimizer().state()) trace.state.push_back({name, tensor.on_host(), true});
  }
  replica.leave();
  const Strategy::Report report = replica.strategy().report();
  trace.text = report.text, trace.figures.insert(report.figures.begin(), report.figures.end());
  trace.description = replica.strategy().describe();
  trace.traffic = world.comm->traffic();
  trace.gradient_bytes = model->parameters().gradients().bytes();
  return trace;
}

}  // namespace starling
