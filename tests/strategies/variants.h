// The strategies as tests go through them, over threads, MPI, cards and in the simulator.
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "strategies/options.h"

namespace starling {

struct Variant {
  std::string name;
  StrategyOptions options;
  int extra_ranks = 0;  // that only serve
};

inline void PrintTo(const Variant& v, std::ostream* out) { *out << v.name; }

// The synchronous ones.
inline std::vector<Variant> variants() {
  std::vector<Variant> all;
  const auto add = [&](const std::string& name, const std::function<void(StrategyOptions&)>& set, int extra = 0) {
    StrategyOptions o;
    o.bucket_mib = 0.004;  // several buckets in a model this small
    set(o);
    all.push_back({name, o, extra});
  };
  add("ring", [](StrategyOptions& o) { o.algorithm = Algorithm::ring; });
  add("tree", [](StrategyOptions& o) { o.algorithm = Algorithm::tree; });
  add("halving_doubling", [](StrategyOptions& o) { o.algorithm = Algorithm::halving_doubling; });
  add("blocking", [](StrategyOptions& o) { o.overlap = false; });
  add("sharded", [](StrategyOptions& o) { o.sharded_optimizer = true; });
  add("servers_everywhere", [](StrategyOptions& o) { o.name = "parameter-server"; });
  add(
      "one_server", [](StrategyOptions& o) { o.name = "parameter-server", o.servers = 1; }, 1);
  add(
      "two_servers", [](StrategyOptions& o) { o.name = "parameter-server", o.servers = 2; }, 2);
  add("shared_server",
      [](StrategyOptions& o) { o.name = "parameter-server", o.servers = 1, o.server_placement = ServerPlacement::shared; });
  add("assumed_sparse", [](StrategyOptions& o) { o.embedding_gradients = EmbeddingGradients::assumed_sparse; });
  return all;
}

// Those that run among the ranks with the same part of a divided model as they run among whole replicas. The one that compresses sends all
// of each gradient, since what a code leaves out depends on how the flat buffer is cut.
inline std::vector<Variant> variants_of_parts() {
  std::vector<Variant> all;
  const auto add = [&](const std::string& name, const std::string& preset, const std::function<void(StrategyOptions&)>& set) {
    StrategyOptions o = strategy_preset(preset);
    o.bucket_mib = 0.004;
    set(o);
    all.push_back({name, o});
  };
  add("blocking", "all-reduce", [](StrategyOptions& o) { o.overlap = false; });
  add("sharded", "all-reduce", [](StrategyOptions& o) { o.sharded_optimizer = true; });
  add("assumed_sparse", "all-reduce", [](StrategyOptions& o) { o.embedding_gradients = EmbeddingGradients::assumed_sparse; });
  add("servers", "parameter-server", [](StrategyOptions&) {});
  add("model_average", "model-average", [](StrategyOptions& o) { o.periodic.interval = 3; });
  add("bmuf", "bmuf", [](StrategyOptions& o) { o.periodic.interval = 3; });
  add("gradient_dropping", "gradient-dropping", [](StrategyOptions& o) { o.compression.keep = 1, o.compression.dense_below = 0; });
  return all;
}

}  // namespace starling
