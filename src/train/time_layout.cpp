#include "train/time_layout.h"

#include <algorithm>

#include "backend/idle.h"
#include "comm/threads.h"
#include "data/batches.h"
#include "decode/model_directory.h"
#include "strategies/factory.h"
#include "train/micro_batch.h"
#include "train/replica.h"
#include "train/stages.h"

namespace starling {
namespace {

constexpr int64_t kFigures = 12;  // that a rank tells the others

std::unique_ptr<Backend> backend_for(const LayoutRun& run, const World& world) {
  const bool divide = run.train.threads == 0 && world.comm->size() > 1 && !world.simulated;
  auto backend = backend_for_precision(run.train.precision, divide ? threads_for_rank(*world.comm) : run.train.threads);
  if (world.computes) return backend;
  return std::make_unique<IdleBackend>(backend->activation(), backend->parameter());
}

RankMemory memory_of(Replica& replica) {
  const ParameterStore& store = replica.model().parameters();
  RankMemory m;
  m.parameters = static_cast<double>(store.values().bytes()), m.gradients = static_cast<double>(store.gradients().bytes());
  for (const auto& [name, tensor] : replica.optimizer().state()) m.optimizer += static_cast<double>(tensor.bytes());
  for (const Parameter* p : store.declared())
    if (p->hold == Parameter::copied) m.copies += static_cast<double>(p->value.bytes() + p->gradient.bytes());
  m.activations = static_cast<double>(replica.activation_bytes());
  return m;
}

}  // namespace

LayoutRun layout_run(const Config& c) {
  LayoutRun run;
  run.train.model = c.model, run.train.vocabulary = c.vocab.training.size, run.train.batch_tokens = c.train.batch_tokens;
  run.train.precision = c.train.precision, run.train.threads = c.train.threads, run.train.seed = c.train.seed;
  run.strategy = c.strategy, run.parallel = c.parallel, run.optimizer = c.train.optimizer;
  run.strategy.synchronous_steps = 0;
  if (c.train.micro_batch_tokens > 0) run.micro_tokens = c.train.micro_batch_tokens;
  if (family_of(c.strategy) == Family::periodic) run.updates = std::max<int64_t>(run.updates, c.strategy.periodic.interval);
  return run;
}

LayoutResult time_layout(const LayoutRun& run, World& world) {
  comm_settings(run.strategy, *world.comm);
  const Mesh mesh(*world.comm, run.parallel);
  const auto backend = backend_for(run, world);
  const ModelVocabulary vocabulary{run.train.vocabulary, run.train.vocabulary};
  const auto stages = stage_units(*declare_model(run.train.model, vocabulary, *backend), mesh.stages());
  const auto model =
      make_model(run.train.model, vocabulary, *backend, run.train.seed, true, stages[static_cast<size_t>(mesh.stage())]);
  StepOptions options;
  options.optimizer = run.optimizer, options.strategy = run.strategy;
  Replica replica(*model, options, world, mesh);
  const int workers = replica.strategy().workers(), worker = mesh.data().rank();

  BenchTrainOptions global = run.train;
  global.batch_tokens = plan_batch(run.strategy, run.train.batch_tokens, workers).global_tokens;
  std::vector<std::vector<Batch>> shares;
  double tokens = 0, passes = 0;
  const std::vector<Batch> batches = synthetic_batches(global, std::min<int64_t>(run.updates, 8));
  for (const Batch& batch : batches) {
    const ComputeCost& cost = replica.cost();
    auto& own = shares.emplace_back();
    if (worker < workers)
      own = micro_batches(share(batch, worker, workers, cost.source_weight(), cost.target_weight()), run.micro_tokens, run.parallel);
    tokens += static_cast<double>(batch.target.count()) / static_cast<double>(batches.size());
    passes += static_cast<double>(own.size()) / static_cast<double>(batches.size());
  }

  replica.step(shares.front());
  replica.clear_times();
  const auto together = [&] { world.comm->barrier().wait(kPatience); };
  together();
  const int64_t sent = world.comm->traffic().bytes_sent;
  const Replica::Bytes before = replica.bytes_sent();
  const double start = world.clock->seconds();
  for (int64_t i = 0; i < run.updates; ++i) replica.step(shares[static_cast<size_t>(i) % shares.size()]);
  const double seconds = (world.clock->seconds() - start) / static_cast<double>(run.updates);
  const Replica::Times& t = replica.times();
  const Replica::Bytes after = replica.bytes_sent();
  const auto updates = static_cast<double>(run.updates);
  const RankMemory m = memory_of(replica);
  const double boundaries = static_cast<double>(after.boundaries - before.boundaries) / updates,
               shared = static_cast<double>(after.shared - before.shared) / updates,
               all = static_cast<double>(world.comm->traffic().bytes_sent - sent) / updates;
  const double own[kFigures] = {seconds,     passes,        (t.forward + t.backward) / updates, t.passes / updates, m.parameters, m.gradients,
                                m.optimizer, m.copies,      m.activations,                      boundaries,         shared,
                                all - boundaries - shared};

  const Tensor figures({mesh.all().size(), kFigures}, DType::f64);
  std::copy(std::begin(own), std::end(own), doubles_of(figures).begin() + mesh.all().rank() * kFigures);
  world.comm->all_reduce(figures).wait(kPatience);
  LayoutResult r;
  r.ranks = mesh.all().size(), r.replicas = mesh.replicas(), r.stages = mesh.stages();
  r.parameters = model->parameters().declared_count(), r.tokens = tokens;
  double longest = 0, busy = 0;
  for (int rank = 0; rank < r.ranks; ++rank) {
    const std::span<double> f = doubles_of(figures).subspan(static_cast<size_t>(rank) * kFigures, kFigures);
    r.seconds = std::max(r.seconds, f[0]), r.passes = std::max(r.passes, f[1]);
    busy += f[2] / r.ranks, longest = std::max(longest, f[3]);
    r.memory.push_back({f[4], f[5], f[6], f[7], f[8]}), r.bytes.push_back({f[9], f[10], f[11]});
  }
  r.bubble = longest > 0 ? 1 - busy / longest : 0;
  return r;
}

}  // namespace starling
