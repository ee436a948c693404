#include "strategies/factory.h"

#include <cmath>

#include "base/config.h"
#include "strategies/asynchronous.h"
#include "strategies/periodic.h"
#include "strategies/sparse.h"
#include "strategies/synchronous.h"
#include "strategies/synchronous_start.h"

namespace starling {
namespace {

// Options that others make useless are refused too, unless they are as the name or the defaults have them.
void check_effects(const StrategyOptions& o) {
  const StrategyOptions preset = strategy_preset(o.name), defaults;
  const auto idle = [&](const char* key, auto part, auto field, const char* needed) {
    if ((o.*part).*field != (preset.*part).*field && (o.*part).*field != (defaults.*part).*field)
      throw ConfigError(fmt::format("strategy.{} does nothing without {}; leave it out, or set that too", key, needed));
  };
  constexpr auto kCompression = &StrategyOptions::compression;
  if (o.compression.compressor != Compressor::top_k) {
    const char* needed = "strategy.compressor top-k";
    idle("keep", kCompression, &CompressionOptions::keep, needed);
    idle("select", kCompression, &CompressionOptions::select, needed);
    idle("values", kCompression, &CompressionOptions::values, needed);
    idle("keep-warmup", kCompression, &CompressionOptions::keep_warmup, needed);
  }
  if (o.compression.compressor == Compressor::none) {
    const char* needed = "a strategy.compressor";
    idle("residual-decay", kCompression, &CompressionOptions::residual_decay, needed);
    idle("dense-below", kCompression, &CompressionOptions::dense_below, needed);
    idle("momentum-correction", kCompression, &CompressionOptions::momentum_correction, needed);
  }
  if (o.sparse.local_gradients == LocalPart::none)
    idle("local-scale", &StrategyOptions::sparse, &SparseOptions::local_scale, "strategy.local-gradients");
}

void check_compression(const StrategyOptions& o) {
  const CompressionOptions& c = o.compression;
  if (c.compressor == Compressor::top_k && c.values == SentValues::two_bit && c.select == SelectFrom::tensor)
    throw ConfigError("strategy.values 2-bit has levels for each chunk; set strategy.select to chunk, or values to bf16");
  if (c.compressor != Compressor::none && o.wire == Wire::bf16)
    throw ConfigError(fmt::format("strategy.wire bf16 is for whole gradients, but strategy.compressor is {}; leave wire out and see values",
                                  c.compressor));
}

// Options of a family that the strategy does not belong to would do nothing.
void check_family(const StrategyOptions& o) {
  const Family family = family_of(o);
  const auto refuse = [&](const char* keys, const char* owners) {
    throw ConfigError(fmt::format("strategy.name is {}, for which {} do nothing; leave them out, or choose {}", o.name, keys, owners));
  };
  PeriodicOptions periodic;
  if (family == Family::sparse) periodic.synchronous_steps = o.periodic.synchronous_steps;
  if (family != Family::periodic && !(o.periodic == periodic))
    refuse("the keys of local updates (interval to second-moment-interval)", "model-average, bmuf, diloco, streaming or sparse-loco");
  if (family != Family::periodic && family != Family::sparse && !(o.compression == CompressionOptions{}))
    refuse("the keys of compression (compressor to momentum-correction)",
           "gradient-dropping, sparse-local, cser, or a name of local updates");
  if (family != Family::sparse && !(o.sparse == SparseOptions{}))
    refuse("the keys of compressed gradients (local-gradients to residual-reset)", "gradient-dropping, sparse-local or cser");
  if (family != Family::asynchronous && !(o.asynchronous == AsynchronousOptions{}))
    refuse("the keys of asynchronous training (push-interval to delay-compensation)", "downpour or gnmt-downpour");
  const bool parameter_server = o.name == "parameter-server";
  if (o.servers > 0 && !parameter_server && family != Family::asynchronous)
    refuse("strategy.servers", "parameter-server, downpour or gnmt-downpour");
  if (o.server_placement != ServerPlacement::own && !parameter_server) refuse("values of strategy.server-placement", "parameter-server");
}

void check_asynchronous(const StrategyOptions& o) {
  if (o.overlap && o.asynchronous.wait_for_step)
    throw ConfigError(
        "strategy.wait-for-step waits for parameters with the last push in them, which strategy.overlap would ask for too early; set one "
        "of them to false");
}

void check_periodic(const StrategyOptions& o) {
  const PeriodicOptions& p = o.periodic;
  if (p.delay >= p.interval)
    throw ConfigError(fmt::format("strategy.delay {} must be less than strategy.interval {}: a fragment lands before it is sent again",
                                  p.delay, p.interval));
  if (p.fragments > p.interval)
    throw ConfigError(
        fmt::format("strategy.fragments {} are more than strategy.interval {} has updates; lower them", p.fragments, p.interval));
  if (p.inner_state == InnerState::reset && (p.fragments > 1 || p.delay > 0))
    throw ConfigError("strategy.inner-state reset needs one fragment and no delay; choose keep or average");
  if (p.outer_momentum < 0 && p.outer_momentum != -1)
    throw ConfigError(fmt::format("strategy.outer-momentum {:g} is neither a share nor -1 (1 - 1/workers)", p.outer_momentum));
  if (o.compression.compressor == Compressor::none) return;
  if (p.merge == MergeRule::radial)
    throw ConfigError("strategy.merge radial needs whole displacements; set strategy.compressor to none, or merge to mean");
  if (p.merge_weights == MergeWeights::tokens)
    throw ConfigError("strategy.merge-weights tokens would weigh anew what was not sent before; with a compressor set it to equal");
  if (o.compression.momentum_correction > 0)
    throw ConfigError("strategy.momentum-correction is for gradients; with local updates set it to 0 and see outer-momentum");
}

void check_sparse(const StrategyOptions& o) {
  if (o.sparse.local_gradients == LocalPart::none && o.sparse.average_interval > 0)
    throw ConfigError(
        "strategy.average-interval averages parameters that differ, but without strategy.local-gradients they do not; set one of them");
  if (o.sparse.residual_reset && o.sparse.average_interval == 0)
    throw ConfigError("strategy.residual-reset happens at averagings, but strategy.average-interval is 0, which means never; set it too");
  if (o.sparse.local_scale < 0 && o.sparse.local_scale != -1)
    throw ConfigError(fmt::format("strategy.local-scale {:g} is neither a factor nor -1 (the number of workers)", o.sparse.local_scale));
}

}  // namespace

void check_strategy(const StrategyOptions& o) {
  check_family(o);
  check_effects(o);
  check_compression(o);
  if (family_of(o) == Family::synchronous) return;
  if (o.sharded_optimizer)
    throw ConfigError(fmt::format("strategy.sharded-optimizer belongs to all-reduce, not to {}; set it to false", o.name));
  if (family_of(o) == Family::sparse) check_sparse(o);
  if (family_of(o) == Family::periodic) check_periodic(o);
  if (family_of(o) == Family::asynchronous) check_asynchronous(o);
}

std::unique_ptr<Strategy> make_strategy(const StrategyOptions& o, const ParameterStore& parameters,
                                        const std::vector<ExchangedTable>& tables, int rank, int size) {
  check_strategy(o);
  if (family_of(o) == Family::asynchronous) return make_asynchronous(o, parameters, rank, size);
  if (o.name == "parameter-server") {
    if (o.sharded_optimizer)
      throw ConfigError(
          "strategy.sharded-optimizer belongs to all-reduce; a parameter server is sharded by strategy.servers (0 = on every rank)");
    if (o.servers > 0 && o.server_placement == ServerPlacement::own && o.servers >= size && size > 1)
      throw ConfigError(fmt::format(
          "strategy.servers {} leaves no rank of {} to compute; start more ranks, or use server-placement: shared", o.servers, size));
    if (o.servers > size)
      throw ConfigError(fmt::format("strategy.servers is {}, but there are {} ranks; lower it, or set it to 0", o.servers, size));
  }
  auto synchronous = make_synchronous(o, parameters, tables, rank, size);
  const bool periodic = family_of(o) == Family::periodic;
  if (!periodic && (family_of(o) != Family::sparse || size == 1)) return synchronous;
  auto strategy = periodic ? make_periodic(o, synchronous->buckets(), parameters, tables, size)
                           : make_sparse(o, synchronous->buckets(), parameters, size);
  const int64_t first = o.periodic.synchronous_steps;
  return first > 0 ? make_synchronous_start(std::move(synchronous), std::move(strategy), first) : std::move(strategy);
}

void comm_settings(const StrategyOptions& options, Communicator& comm) {
  comm.set_algorithm(options.algorithm);
  comm.set_deadline(options.deadline_seconds);
}

BatchPlan plan_batch(const StrategyOptions& o, int64_t batch_tokens, int workers) {
  const int64_t global = o.batch == BatchScope::per_worker ? batch_tokens * workers : batch_tokens;
  const double ratio = static_cast<double>(global) / static_cast<double>(o.base_batch_tokens > 0 ? o.base_batch_tokens : batch_tokens);
  return {global, o.rate_scaling == RateScaling::linear ? ratio : o.rate_scaling == RateScaling::sqrt ? std::sqrt(ratio) : 1.0};
}

}  // namespace starling
