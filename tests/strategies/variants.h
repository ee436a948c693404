// The synchronous strategies as tests go through them.
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

}  // namespace starling
