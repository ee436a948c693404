#include "strategies/factory.h"

#include <cmath>

#include "config/config.h"
#include "strategies/asynchronous.h"
#include "strategies/periodic.h"
#include "strategies/sparse.h"
#include "strategies/synchronous.h"
#include "strategies/synchronous_start.h"

namespace starling {
namespace {

constexpr double kLeastBucketMib = 1.0 / 1024;

void check_compression(const StrategyOptions& o) {
  const CompressionOptions& c = o.compression;
  if (c.compressor == Compressor::top_k && c.values == SentValues::two_bit && c.select == SelectFrom::tensor)
    throw ConfigError(
        "strategy.compression.values 2-bit has levels for each chunk; set strategy.compression.select to chunk, or values to bf16");
  if (c.compressor != Compressor::none && o.wire == Wire::bf16)
    throw ConfigError(
        fmt::format("strategy.wire bf16 is for whole gradients, but strategy.compression.compressor is {}; leave wire out and see values",
                    c.compressor));
}

void check_asynchronous(const StrategyOptions& o) {
  if (o.overlap && o.asynchronous.wait_for_step)
    throw ConfigError(
        "strategy.asynchronous.wait-for-step waits for parameters with the last push in them, which strategy.overlap would ask for too "
        "early; set one of them to false");
}

void check_periodic(const StrategyOptions& o) {
  const PeriodicOptions& p = o.periodic;
  if (p.delay >= p.interval)
    throw ConfigError(fmt::format(
        "strategy.periodic.delay {} must be less than strategy.periodic.interval {}: a fragment is merged before it is sent again", p.delay,
        p.interval));
  if (p.fragments > p.interval)
    throw ConfigError(fmt::format("strategy.periodic.fragments {} is more than strategy.periodic.interval {}; lower it, or raise interval",
                                  p.fragments, p.interval));
  if (p.inner_state == InnerState::reset && (p.fragments > 1 || p.delay > 0))
    throw ConfigError("strategy.periodic.inner-state reset needs one fragment and no delay; choose keep or average");
  if (p.outer_momentum < 0 && p.outer_momentum != -1)
    throw ConfigError(
        fmt::format("strategy.periodic.outer-momentum {:g} is negative; give 0 or more, or -1 for 1 - 1/workers", p.outer_momentum));
  if (o.compression.compressor == Compressor::none) return;
  if (p.merge == MergeRule::radial)
    throw ConfigError(
        "strategy.periodic.merge radial needs whole displacements; set strategy.compression.compressor to none, or merge to mean");
  if (p.merge_weights == MergeWeights::tokens)
    throw ConfigError(
        "strategy.periodic.merge-weights tokens would weight the residual of earlier merges again; with a compressor set it to equal");
  if (o.compression.momentum_correction > 0)
    throw ConfigError("strategy.compression.momentum-correction is for gradients; with local updates set it to 0 and see outer-momentum");
}

void check_sparse(const StrategyOptions& o) {
  if (o.sparse.local_gradients == LocalPart::none && o.sparse.average_interval > 0)  // as the name has it
    throw ConfigError(
        "strategy.sparse.average-interval averages parameters that differ, but without strategy.sparse.local-gradients they do not; set "
        "average-interval to 0, or local-gradients too");
  if (o.sparse.local_scale < 0 && o.sparse.local_scale != -1)
    throw ConfigError(
        fmt::format("strategy.sparse.local-scale {:g} is negative; give 0 or more, or -1 for the number of workers", o.sparse.local_scale));
}

}  // namespace

void check_strategy(const StrategyOptions& o) {
  StrategyOptions asked = o, preset = strategy_preset(o.name), defaults;
  const auto sections = [](StrategyOptions& options) { return config_sections("strategy", "", options); };
  refuse_idle_keys(sections(asked), std::vector{sections(preset), sections(defaults)});
  if (o.bucket_mib > 0 && o.bucket_mib < kLeastBucketMib)
    throw ConfigError(
        fmt::format("strategy.bucket-mib {:g} is less than {:g}; give more, or 0 for the usual size", o.bucket_mib, kLeastBucketMib));
  check_compression(o);
  if (family_of(o) == Family::sparse) check_sparse(o);
  if (family_of(o) == Family::periodic) check_periodic(o);
  if (family_of(o) == Family::asynchronous) check_asynchronous(o);
}

std::unique_ptr<Strategy> make_strategy(const StrategyOptions& asked, const ParameterStore& parameters,
                                        const std::vector<ExchangedTable>& tables, int rank, int size,
                                        const std::vector<MatrixPlace>& matrices) {
  check_strategy(asked);
  StrategyOptions o = asked;
  const Memory& memory = parameters.backend().memory();
  if (o.bucket_mib == 0) o.bucket_mib = memory.host() || &memory == &meta_memory() ? kHostBucketMib : kCardBucketMib;
  if (family_of(o) == Family::asynchronous) return make_asynchronous(o, parameters, rank, size);
  if (o.name == "parameter-server") {
    if (o.servers > 0 && o.server_placement == ServerPlacement::own && o.servers >= size && size > 1)
      throw ConfigError(fmt::format(
          "strategy.servers {} leaves no rank of {} to compute; start more ranks, or use server-placement: shared", o.servers, size));
    if (o.servers > size)
      throw ConfigError(fmt::format("strategy.servers is {}, but there are {} ranks; lower it, or set it to 0", o.servers, size));
  }
  auto synchronous = make_synchronous(o, parameters, tables, rank, size, matrices);
  const bool periodic = family_of(o) == Family::periodic;
  if (!periodic && (family_of(o) != Family::sparse || size == 1)) return synchronous;
  auto strategy = periodic ? make_periodic(o, synchronous->buckets(), parameters, tables, size)
                           : make_sparse(o, synchronous->buckets(), parameters, size);
  const int64_t first = o.synchronous_steps;
  return first > 0 ? make_synchronous_start(std::move(synchronous), std::move(strategy), first) : std::move(strategy);
}

StrategyOptions options_in(const World& world, StrategyOptions o) {
  if (world.on_cards && o.bucket_mib == 0) o.bucket_mib = kCardBucketMib;
  return o;
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
