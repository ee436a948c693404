#include "run/memory_plan.h"

#include <algorithm>
#include <new>
#include <sstream>

#include "backend/device_choice.h"
#include "backend/meta.h"
#include "comm/world.h"
#include "parallel/stages.h"
#include "replica/r_drop.h"
#include "replica/rank_memory.h"
#include "run/run_parts.h"
#include "run/update_loop.h"
#include "saving/copies.h"
#include "saving/rank_state.h"
#include "settings/micro_batch.h"

namespace starling {
namespace {

constexpr int64_t kLeast = 256;  // target tokens of a micro-batch
constexpr double kSpare = 0.1;   // of what is usable
constexpr double kMiB = 1 << 20;
constexpr double kThreads = 96 * kMiB;  // a heap of glibc's and a stack, for the thread that writes checkpoints
constexpr double kCode = 16 * kMiB;     // oneDNN's for the shapes of a run: 10 to 24 MiB were measured (bench/memory_plan.sh)
// On a card: code that CUDA's libraries load, the workspace of products, NCCL's buffers, working memory of attention.
constexpr double kCardLibraries = 1536 * kMiB;
constexpr double kSmallCard = 16;          // no more than this part of what is free there
constexpr double kSearchCode = 12 * kMiB;  // the same for the searches of validations: 12 to 20 MiB (bench/memory_small.sh)

// Bytes of the copies that a checkpoint beside training makes, if there is room for them (saving/copies.h).
double checkpoint_copies(const PlannedRank& rank, double left) {
  if (!rank.config.checkpoint.beside_training) return 0;
  const bool first = rank.mesh.all().rank() == 0;
  if (!first && rank.replica.strategy().replicas() == Replicas::served) return 0;
  const ParameterStore& store = rank.replica.model().parameters();
  const Tensor& values = store.values();
  double bytes = first ? static_cast<double>(store.declared_count() * size_of(values.dtype())) : 0;
  if (const auto part = RankState(rank.replica, rank.mesh).shard(values, rank.replica.strategy_state()))
    bytes += static_cast<double>(part->expected_bytes);
  return Copies::fit(bytes * rank.sharing, left) ? bytes : 0;
}

// Returns the size of micro-batches with which a single replica can measure its gradient's noise, where the batch follows that.
int64_t measuring_noise(const RunParts& run, int64_t micro_tokens) {
  const TrainConfig& t = run.config.train;
  if (2 * run.batch_tokens > t.batch_follows_noise)
    throw ConfigError(fmt::format(
        "train.batch-follows-noise {} leaves no room for a batch that begins with {} target tokens; give at least twice as many",
        t.batch_follows_noise, run.batch_tokens));
  if (run.mesh->data_parallel().size() > 1) return micro_tokens;
  if (run.mesh->divided())
    throw ConfigError(
        "train.batch-follows-noise: a single replica that is divided among ranks cannot measure the gradient's noise; add replicas, or "
        "set train.batch-doubles-at instead");
  return std::min(micro_tokens, std::max<int64_t>(1, run.batch_tokens / 2));
}

bool validations_search(const ValidConfig& valid) {
  return valid.enabled() && std::ranges::any_of(valid.metrics, [](const std::string& metric) { return metric != "cross-entropy"; });
}

PlannedRank planned_rank(RunParts& run) {
  PlannedRank rank{run.config, *run.replica, *run.mesh, {}, run.ranks_here()};
  for (const Batch& batch : run.largest) rank.shares.push_back(share_of(batch, *run.replica, run.mesh->data_parallel().rank()));
  if (const int cards = run.backend->memory().host() ? 1 : std::max(card_count(), 1); cards > 1)
    rank.sharing = (rank.sharing + cards - 1) / cards;
  return rank;
}

// The micro-batches of a share, as a replica computes them; those of samples are taken to be like the references.
std::vector<Batch> parts_of(const Config& config, const Batch& share, int64_t micro_tokens, const ComputeCost& cost) {
  Batch whole = share;
  if (config.train.objective == Objective::mixed)
    for (int64_t i = 1; i < config.refine.samples && whole.target.count() < micro_tokens; ++i) append(whole, share);
  std::vector<Batch> parts = micro_batches(whole, micro_tokens, config.parallel, cost);
  if (const double r_drop = config.train.r_drop; r_drop > 0)
    for (Batch& part : parts) part = doubled(part, r_drop);
  return parts;
}

void set_micro_tokens(MemoryPlan& plan, const PlannedRank& rank, int64_t tokens) {
  plan.micro_tokens = tokens;
  Model& model = rank.replica.model();
  for (MemoryPlan::Kind& k : plan.kinds) {
    if (k.name != "activations") continue;
    k.bytes = 0;
    for (const Batch& share : rank.shares)
      k.bytes = std::max(k.bytes, activation_bytes(rank.config, model.vocabulary(), model.parameters().backend(),
                                                   rank.mesh.replica().rank(), share, tokens));
  }
}

}  // namespace

double MemoryPlan::bytes_of(std::string_view kind) const {
  double bytes = 0;
  for (const Kind& k : kinds) bytes += k.name == kind ? k.bytes : 0;
  return bytes;
}

double MemoryPlan::to_come() const {
  double bytes = 0;
  for (const Kind& k : kinds) bytes += k.bytes - k.taken;
  return bytes;
}

bool MemoryPlan::fits() const {
  double bytes = to_come() * sharing;
  if (usable.addresses) {
    bytes = kThreads;
    for (const Kind& k : kinds) bytes += k.exists ? 0 : k.bytes;
  }
  return bytes <= (1 - kSpare) * static_cast<double>(usable.bytes);
}

std::string MemoryPlan::text() const {
  double other = resident;
  for (const Kind& k : kinds) other -= k.taken;
  std::string all = fmt::format("program and text {:.0f}", std::max(other, 0.0) / kMiB);
  for (const Kind& k : kinds)
    if (k.bytes > 0) all += fmt::format(", {} {:.0f}", k.name, k.bytes / kMiB);
  return fmt::format("{} MiB; together {:.0f} MiB, of which {:.0f} MiB are still to be taken{}; usable is {}", all, peak() / kMiB,
                     to_come() / kMiB, sharing > 1 ? fmt::format(" by each of {} ranks here", sharing) : "", usable.text());
}

double activation_bytes(const Config& config, const ModelVocabulary& vocabulary, const Backend& backend, int rank, const Batch& share,
                        int64_t micro_tokens) {
  if (share.target.count() == 0) return 0;
  World world = make_imagined_world(rank, static_cast<int>(config.parallel.ranks()));
  world.on_cards = !backend.memory().host();
  MetaBackend counting(backend.activation(), backend.parameter());
  const Mesh mesh(*world.comm, config.parallel);
  const auto model =
      make_model(config.model, vocabulary, counting, config.train.seed, true, part_of(mesh, config.model, vocabulary, counting));
  StepOptions options;
  options.r_drop = config.train.r_drop;
  options.strategy.bucket_mib = config.strategy.bucket_mib;
  Replica replica(*model, options, world, mesh);
  if (mesh.divided()) {
    replica.step(micro_batches(share, micro_tokens, config.parallel, replica.cost()));
    return static_cast<double>(replica.activation_bytes());
  }
  double most = 0;
  for (const Batch& part : parts_of(config, share, micro_tokens, replica.cost())) most = std::max(most, pass_of_whole_batch(*model, part));
  return most;
}

MemoryPlan plan_memory(const PlannedRank& rank, const UsableMemory& usable, int64_t asked) {
  const Config& c = rank.config;
  Model& model = rank.replica.model();
  const Backend& backend = model.parameters().backend();
  const bool card = !backend.memory().host();
  MemoryPlan plan;
  plan.resident = card ? 0 : static_cast<double>(resident_memory());
  plan.usable = usable;
  plan.sharing = rank.sharing;
  MemoryPlan::Kind snapshot{"snapshot"};
  for (const TensorsOfKind& t : tensors_by_kind(rank.replica)) {
    MemoryPlan::Kind& k = plan.kinds.emplace_back(MemoryPlan::Kind{t.kind, t.bytes(), 0, true});
    for (const Tensor& x : t.tensors) k.taken += static_cast<double>(x.resident_bytes());
    if (k.name == "parameters" || k.name == "optimizer" || k.name == "strategy") snapshot.bytes += k.bytes;
    if (card) plan.resident += k.taken;
  }
  // A card multiplies by the weights as they are, or by a copy in the type of its products.
  const double packed = memory_of(rank.replica).packed;
  plan.kinds.push_back({"packed weights", !card ? packed : backend.activation() == DType::f32 ? 0 : packed / 2});
  if (card) plan.kinds.push_back({"libraries", std::min(kCardLibraries, static_cast<double>(usable.bytes) / kSmallCard)});
  if (!card) plan.kinds.push_back({"generated code", kCode + (validations_search(c.valid) ? kSearchCode : 0)});
  if (rank.snapshots) plan.kinds.push_back(snapshot);

  if (c.train.objective == Objective::mixed) {
    double most = 0;
    for (const Batch& share : rank.shares) most = std::max(most, sampling_bytes(model, share, c.refine));
    plan.kinds.push_back({"samples", most});
  }

  plan.kinds.push_back({"activations"});
  const auto fits = [&](int64_t tokens) {
    set_micro_tokens(plan, rank, tokens);
    return plan.fits();
  };
  const int64_t best = text_tokens(backend.best_micro_batch(), c.train.r_drop), least = text_tokens(kLeast, c.train.r_drop);
  bool enough = fits(asked > 0 ? asked : best);
  while (!enough && asked == 0 && plan.micro_tokens > least) enough = fits(std::max(least, plan.micro_tokens * 3 / 4));
  if (!enough && card && asked == 0)
    throw ConfigError(
        fmt::format("the model does not fit on the card: {}; train a smaller model, or on a card with more memory", plan.text()));
  if (!enough)
    plan.warning =
        fmt::format("memory may not suffice, and the process may be killed for it: {}; {}", plan.text(),
                    asked > 0 ? fmt::format("set train.micro-batch-tokens to less than {}, which changes the result by rounding", asked)
                              : "give it more, or train a smaller model");
  if (!card) {
    const double left = static_cast<double>(plan.usable.bytes) - plan.to_come() * plan.sharing;
    plan.kinds.push_back({"copies for checkpoints", checkpoint_copies(rank, left)});
  }
  return plan;
}

void plan_micro_batches(RunParts& run, bool snapshots) {
  const TrainConfig& t = run.config.train;
  Communicator& comm = run.comm();
  const bool resumed = run.micro_tokens > 0;
  const int64_t best = text_tokens(run.backend->best_micro_batch(), t.r_drop);
  const int64_t asked = resumed ? run.micro_tokens : t.micro_batch_tokens > 0 ? text_tokens(t.micro_batch_tokens, t.r_drop) : 0;
  PlannedRank rank = planned_rank(run);
  rank.snapshots = snapshots;
  std::string told;  // by ranks that plan: tokens, limit, warning
  if (run.world.computes && (!run.world.simulated || run.first())) {
    run.memory = plan_memory(rank, run.backend->memory().usable(), asked);
    told = fmt::format("{}\n{}\n{}", run.memory->micro_tokens, run.memory->usable.text(), run.memory->warning);
  }
  int64_t tokens = asked > 0 ? asked : best;
  const std::vector<std::string> texts = gather_texts(comm, told);
  for (int r = 0; r < comm.size(); ++r) {
    std::istringstream lines(texts[static_cast<size_t>(r)]);
    std::string number, limit, warning;
    if (!std::getline(lines, number)) continue;
    std::getline(lines, limit), std::getline(lines, warning);
    const std::string who = comm.size() > 1 ? fmt::format("rank {} on {}: ", r, comm.host(r)) : "";
    if (!warning.empty()) run.say(fmt::format("warning: {}{}", who, warning));
    if (std::stoll(number) >= tokens) continue;
    tokens = std::stoll(number);
    run.say(fmt::format("{}micro-batches of {} target tokens, chosen by memory: usable is {}", who, tokens, limit));
  }
  if (t.batch_follows_noise > 0)
    if (const int64_t measured = measuring_noise(run, tokens); !resumed) tokens = measured;
  run.micro_tokens = tokens;
  if (run.world.simulated)
    run.memory.reset();  // it was for all ranks
  else if (tokens != run.memory->micro_tokens)
    set_micro_tokens(*run.memory, rank, tokens);
}

void pass_largest_first(RunParts& run) {
  if (run.world.simulated || run.mesh->divided()) return run.largest.clear();
  Communicator& comm = run.comm();
  const int64_t least = text_tokens(kLeast, run.config.train.r_drop);
  const PlannedRank rank = planned_rank(run);
  for (;;) {
    std::string why;
    try {
      std::vector<Batch> parts;
      for (const Batch& share : rank.shares)
        for (Batch& part : parts_of(run.config, share, run.micro_tokens, run.replica->cost())) parts.push_back(std::move(part));
      // An arena loses some space between its chunks, and not always the same amount.
      const Storage spare(static_cast<int64_t>(0.15 * run.memory->bytes_of("activations")), run.backend->memory());
      if (!parts.empty()) pass_of_whole_batch(*run.model, largest_batch(parts));
    } catch (const OutOfMemory& e) {
      why = e.what();
    } catch (const std::bad_alloc&) {
      why = "out of memory";
    }
    const std::vector<std::string> all = gather_texts(comm, why);
    const auto failed = std::find_if(all.begin(), all.end(), [](const std::string& text) { return !text.empty(); });
    if (failed == all.end()) break;
    const auto r = static_cast<int>(failed - all.begin());
    if (run.micro_tokens <= least)
      throw ConfigError(comm.size() > 1 ? fmt::format("rank {} on {}: {}", r, comm.host(r), *failed) : *failed);
    run.micro_tokens = std::max(least, run.micro_tokens / 2);
    set_micro_tokens(*run.memory, rank, run.micro_tokens);
    run.say(fmt::format("memory ran out in the largest batch: micro-batches of {} target tokens from here on", run.micro_tokens));
  }
  run.largest.clear();
}

}  // namespace starling
