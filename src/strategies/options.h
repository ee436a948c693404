// How replicas agree: the `strategy` section of a configuration.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "config/config.h"
#include "strategies/asynchronous_options.h"
#include "strategies/compression_options.h"
#include "strategies/periodic_options.h"

namespace starling {

// The names of strategies, in the order of the documentation; each stands for values of the options below (presets.cpp).
std::vector<std::string> strategy_names();

enum class Family : uint8_t { synchronous, periodic, asynchronous, sparse };
// The names of the strategies of some families.
std::vector<std::string> strategy_names(std::initializer_list<Family> families);

enum class Wire : uint8_t { f32, bf16 };
constexpr auto words(Wire) { return std::array{"f32", "bf16"}; }
enum class ServerPlacement : uint8_t { own, shared };  // ranks of their own, or ranks that also compute
constexpr auto words(ServerPlacement) { return std::array{"own", "shared"}; }
enum class EmbeddingGradients : uint8_t { automatic, dense, assumed_sparse };
constexpr auto words(EmbeddingGradients) { return std::array{"auto", "dense", "assumed-sparse"}; }
enum class BatchScope : uint8_t { global, per_worker };  // what train.batch-tokens counts
constexpr auto words(BatchScope) { return std::array{"global", "per-worker"}; }
enum class RateScaling : uint8_t { none, linear, sqrt };
constexpr auto words(RateScaling) { return std::array{"none", "linear", "sqrt"}; }

// Cards take microseconds for a piece, but each of its rounds costs the host tens of them.
constexpr double kHostBucketMib = 4, kCardBucketMib = 64;

struct StrategyOptions {
  std::string name = "all-reduce";             // one of strategy_names()
  Algorithm algorithm = Algorithm::automatic;  // of collectives
  Wire wire = Wire::f32;                       // number format of gradients, and of steps of a sharded or served optimizer
  double bucket_mib = 0;                       // MiB of gradient exchanged at once; 0: kHostBucketMib, or kCardBucketMib on cards
  bool overlap = true;                         // exchange while the backward pass runs
  bool sharded_optimizer = false;              // each rank keeps and updates 1/N of the optimizer's state
  int64_t servers = 0;                         // parameter-server: 0 = one on every rank
  ServerPlacement server_placement = ServerPlacement::own;
  EmbeddingGradients embedding_gradients = EmbeddingGradients::automatic;
  BatchScope batch = BatchScope::global;
  RateScaling rate_scaling = RateScaling::none;
  int64_t synchronous_steps = 0;  // updates before the first local one
  int64_t base_batch_tokens = 0;  // the batch that train.learning-rate was chosen for; 0: train.batch-tokens
  double deadline_seconds = 300;  // a rank that others wait for longer than this counts as lost
  int64_t check_every = 1000;     // updates between comparisons of the replicas; 0: never
  PeriodicOptions periodic;
  AsynchronousOptions asynchronous;
  CompressionOptions compression;
  SparseOptions sparse;
};

Family family_of(const StrategyOptions& options);
// Returns the defaults with what the name changes. Throws ConfigError, with the nearest name, if the name is unknown.
StrategyOptions strategy_preset(const std::string& name);

template <class Visitor>
void visit(Visitor& v, StrategyOptions& c) {
  v.choice("name", c.name, strategy_names(),
           "how ranks agree, and the values that the keys below start from: all-reduce = every rank sums all gradients; parameter-server = "
           "servers sum and update, workers pull; model-average, bmuf, diloco, streaming, sparse-loco = local updates, merged from time to "
           "time; downpour, gnmt-downpour = workers send gradients to servers and fetch parameters, each at its own pace; "
           "gradient-dropping, sparse-local, cser = compressed gradients at every update");
  v.choice("algorithm", c.algorithm,
           "of collectives; auto = tree up to 64 KiB, ring above; library = those of MPI, and of NCCL on cards (not available in the "
           "simulator)");
  v.choice("wire", c.wire, "number format on the wire of gradients and of steps of a sharded or served optimizer; sums are f32");
  v.field("bucket-mib", c.bucket_mib, "size of the pieces in which gradients are exchanged, MiB; 0 = 4, on cards 64", 0.0, 4096.0);
  v.field(
      "overlap", c.overlap,
      "exchange gradients while the backward pass still runs, and parameters during the next forward pass; downpour: use parameters one "
      "update after they are asked for");
  v.field("sharded-optimizer", c.sharded_optimizer, "each rank keeps and updates one share of the optimizer's state")
      .needs("strategy.name", {"all-reduce"});
  v.field("servers", c.servers,
          "number of servers, the parameters are spread over them; 0 = one on every rank with parameter-server, else one", 0, 100000)
      .needs("strategy.name", {"parameter-server", "downpour", "gnmt-downpour"});
  v.choice("server-placement", c.server_placement, "servers are on the last ranks, which then do not compute, or on ranks that compute too")
      .needs("strategy.name", {"parameter-server"})
      .needs("strategy.servers");
  v.choice(
      "embedding-gradients", c.embedding_gradients,
      "auto = send the rows that any rank has touched, or the whole table if nine tenths are touched; for a table that is also the output "
      "projection, send that part early and the touched rows last, unless half are touched; assumed-sparse = send every token's row on its "
      "own, a known mistake, for comparison");
  v.choice("batch", c.batch, "whether train.batch-tokens counts all workers together or each one");
  v.choice("learning-rate-scaling", c.rate_scaling,
           "multiplies train.learning-rate by the ratio of the global batch to base-batch-tokens, or by its square root");
  v.field("base-batch-tokens", c.base_batch_tokens,
          "the batch that train.learning-rate was chosen for, target tokens; 0 = train.batch-tokens", 0, 1000000000)
      .needs("strategy.learning-rate-scaling", {RateScaling::linear, RateScaling::sqrt});
  v.field("synchronous-steps", c.synchronous_steps,
          "number of initial updates that sum whole gradients; local updates that start from random weights diverge easily", 0, 1000000000)
      .needs("strategy.name", strategy_names({Family::periodic, Family::sparse}));
  v.field("deadline-seconds", c.deadline_seconds, "a rank that others wait for longer than this counts as lost", 0.01, 1e9);
  v.field("check-every", c.check_every, "updates between two comparisons of all replicas' parameters, by hash; 0 = never", 0, 1000000000);
  const auto with = [](std::initializer_list<Family> families) { return ConfigNeed{"strategy.name", strategy_names(families)}; };
  v.section("periodic", c.periodic, "Local updates, merged from time to time", with({Family::periodic}));
  v.section("asynchronous", c.asynchronous, "Workers that send gradients and fetch parameters, each at its own pace",
            with({Family::asynchronous}));
  v.section("compression", c.compression, "What is sent of gradients or displacements", with({Family::periodic, Family::sparse}));
  v.section("sparse", c.sparse, "Compressed gradients at every update: what workers do by themselves", with({Family::sparse}));
}

}  // namespace starling
