#include "measure/time_layout.h"

#include <algorithm>

#include "backend/meta.h"
#include "comm/threads.h"
#include "data/batches.h"
#include "decode/model_directory.h"
#include "measure/disturbance.h"
#include "parallel/stages.h"
#include "replica/r_drop.h"
#include "replica/replica.h"
#include "settings/micro_batch.h"
#include "strategies/factory.h"

namespace starling {
namespace {

constexpr int64_t kFigures = 15;  // figures that a rank sends to the others

std::unique_ptr<Backend> backend_for(const LayoutRun& run, const World& world) {
  const bool divide = run.train.threads == 0 && world.comm->size() > 1 && !world.simulated;
  auto backend = make_backend(DeviceChoice{run.train.precision, divide ? threads_for_rank(*world.comm) : run.train.threads, "cpu"});
  if (world.computes) return backend;
  return std::make_unique<MetaBackend>(backend->activation(), backend->parameter());
}

}  // namespace

std::string layout_text(const LayoutResult& r) {
  constexpr double mib = 1 << 20;
  std::string text = fmt::format("{:>5}  {:>10} {:>9} {:>9} {:>7} {:>7} {:>8} {:>11} {:>7}   {:>10} {:>7} {:>7} {:>8}\n", "MiB of",
                                 "parameters", "gradients", "optimizer", "packed", "copies", "strategy", "activations", "total",
                                 "boundaries", "shared", "shards", "strategy");
  // Replicas are alike, so one is shown.
  const auto shown = static_cast<size_t>(r.ranks / r.replicas);
  for (size_t rank = 0; rank < shown; ++rank) {
    const RankMemory& m = r.memory[rank];
    const RankBytes& b = r.bytes[rank];
    text += fmt::format(
        "rank {:<2} {:>10.1f} {:>9.1f} {:>9.1f} {:>7.1f} {:>7.1f} {:>8.1f} {:>11.1f} {:>7.1f}   {:>10.2f} {:>7.2f} {:>7.2f} {:>8.2f}\n",
        rank, m.parameters / mib, m.gradients / mib, m.optimizer / mib, m.packed / mib, m.copies / mib, m.strategy / mib,
        m.activations / mib, m.total() / mib, b.boundaries / mib, b.shared / mib, b.shards / mib, b.strategy / mib);
  }
  text +=
      "(left: memory; right: traffic per update, between stages, for parameters that several ranks hold, within layers to the other shards "
      "(their mean), and by the strategy)\n";
  if (r.stages > 1)
    text += fmt::format(
        "bubble: stages are idle for {:.1f} % of the time of the passes; {:.1f} % if all {} stages and {:.1f} micro-batches were "
        "equal and messages took no time\n",
        100 * r.bubble, 100 * r.even_bubble(), r.stages, r.passes);
  return text;
}

LayoutRun layout_run(const Config& c) {
  LayoutRun run;
  run.train.model = c.model;
  run.train.vocabulary = c.vocab.training.size;
  run.train.batch_tokens = c.train.batch_tokens;
  run.train.precision = c.train.precision;
  run.train.threads = c.train.threads;
  run.train.seed = c.train.seed;
  run.strategy = c.strategy;
  run.parallel = c.parallel;
  run.optimizer = c.train.optimizer;
  run.strategy.synchronous_steps = 0;
  if (c.train.micro_batch_tokens > 0) run.micro_tokens = c.train.micro_batch_tokens;
  run.r_drop = c.train.r_drop;
  if (family_of(c.strategy) == Family::periodic) run.updates = std::max<int64_t>(run.updates, c.strategy.periodic.interval);
  return run;
}

LayoutResult time_layout(const LayoutRun& run, World& world) {
  comm_settings(run.strategy, *world.comm);
  const Mesh mesh(*world.comm, run.parallel);
  const auto backend = backend_for(run, world);
  const ModelVocabulary vocabulary{run.train.vocabulary, run.train.vocabulary};
  const ModelPart part = part_of(mesh, run.train.model, vocabulary, *backend);
  const auto model = make_model(run.train.model, vocabulary, *backend, run.train.seed, true, part);
  StepOptions options;
  options.optimizer = run.optimizer;
  options.strategy = run.strategy;
  options.r_drop = run.r_drop;
  Replica replica(*model, options, world, mesh);
  const int workers = replica.strategy().workers(), worker = mesh.data_parallel().rank();

  BenchTrainOptions global = run.train;
  global.batch_tokens = plan_batch(run.strategy, run.train.batch_tokens, workers).global_tokens;
  std::vector<std::vector<Batch>> shares;
  double tokens = 0, passes = 0;
  const std::vector<Batch> batches = synthetic_batches(global, std::min<int64_t>(run.updates, 8));
  for (const Batch& batch : batches) {
    const ComputeCost& cost = replica.cost();
    auto& own = shares.emplace_back();
    if (worker < workers)
      own = micro_batches(slice_for_rank(batch, worker, workers, cost.source_weight(), cost.target_weight()),
                          text_tokens(run.micro_tokens, run.r_drop), run.parallel, cost);
    tokens += static_cast<double>(batch.target.count()) / static_cast<double>(batches.size());
    passes += static_cast<double>(own.size()) / static_cast<double>(batches.size());
  }

  replica.step(shares.front());
  replica.clear_times();
  const auto together = [&] { world.comm->barrier().wait(kNoDeadline); };
  together();
  const int64_t sent = world.comm->traffic().bytes_sent;
  const Replica::Bytes before = replica.bytes_sent();
  RankPeers peers(*world.comm);
  const DisturbanceWatch watch(peers, backend->threads());
  const double start = world.clock->seconds();
  for (int64_t i = 0; i < run.updates; ++i) replica.step(shares[static_cast<size_t>(i) % shares.size()]);
  const double seconds = (world.clock->seconds() - start) / static_cast<double>(run.updates);
  const Replica::Times& t = replica.times();
  const Replica::Bytes after = replica.bytes_sent();
  const auto updates = static_cast<double>(run.updates);
  const int64_t all_sent = world.comm->traffic().bytes_sent;
  model->parameters().wait_for_parameters();
  RankMemory m = memory_of(replica);
  if (!world.computes && !mesh.divided() && worker < workers) {
    std::vector<Batch> largest;  // of each share
    for (const auto& share : shares)
      if (!share.empty()) largest.push_back(largest_batch(share));
    const Batch& most = largest_batch(largest);
    m.activations = pass_of_whole_batch(*model, run.r_drop > 0 ? doubled(most, run.r_drop) : most);
  }
  const double boundaries = static_cast<double>(after.boundaries - before.boundaries) / updates,
               shared = static_cast<double>(after.shared - before.shared) / updates, shards = (after.shards - before.shards) / updates,
               all = static_cast<double>(all_sent - sent) / updates;
  const double own[kFigures] = {seconds,
                                passes,
                                (t.forward + t.backward) / updates,
                                t.passes / updates,
                                m.parameters,
                                m.gradients,
                                m.optimizer,
                                m.packed,
                                m.copies,
                                m.strategy,
                                m.activations,
                                boundaries,
                                shared,
                                shards,
                                std::max(all - boundaries - shared - shards, 0.0)};

  const Tensor figures({mesh.all().size(), kFigures}, DType::f64);
  std::copy(std::begin(own), std::end(own), doubles_of(figures).begin() + mesh.all().rank() * kFigures);
  world.comm->all_reduce(figures).wait(kNoDeadline);
  LayoutResult r;
  if (!world.simulated) r.disturbance = watch.text();
  r.ranks = mesh.all().size();
  r.replicas = mesh.replicas();
  r.stages = mesh.stages();
  r.shards = mesh.shards();
  r.parameters = model->parameters().declared_count();
  r.tokens = tokens;
  double longest = 0, busy = 0;
  for (int rank = 0; rank < r.ranks; ++rank) {
    const std::span<double> f = doubles_of(figures).subspan(static_cast<size_t>(rank) * kFigures, kFigures);
    r.seconds = std::max(r.seconds, f[0]);
    r.passes = std::max(r.passes, f[1]);
    busy += f[2] / r.ranks;
    longest = std::max(longest, f[3]);
    r.memory.push_back({f[4], f[5], f[6], f[7], f[8], f[9], f[10]});
    r.bytes.push_back({f[11], f[12], f[13], f[14]});
  }
  r.bubble = longest > 0 ? 1 - busy / longest : 0;
  return r;
}

}  // namespace starling
