// Compressed gradients at every update: against a straightforward computation of all ranks in one loop, against dense exchange and one
// worker, and whether anything is lost.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "backend/profiled.h"
#include "sim/simulate.h"
#include "strategies/factory.h"
#include "tests/strategies/divided.h"
#include "tests/strategies/plain_worker.h"

namespace starling {
namespace {

using Values = std::vector<double>;

// Three tensors, the last too small to be compressed, and a loss of each rank's own: plain SGD on curvature (theta - goal).
const std::vector<Range> kSparseTensors = {{0, 3000}, {3008, 3308}, {3312, 3322}};
constexpr size_t kSparseFlat = 3328;
double curvature(size_t i) { return 0.3 + 0.1 * std::sin(static_cast<double>(7 * i)); }
double goal(int rank, size_t i) { return std::sin(static_cast<double>(i * i % 1013) + 1.7 * rank); }
constexpr double kRate = 0.3, kTokens = 10;

class Descender : public PlainWorker {
 public:
  explicit Descender(World& world, std::unique_ptr<Backend> backend = make_backend("reference", 1))
      : PlainWorker(world, kRate, kTokens, std::move(backend)) {
    for (const char* name : {"a", "b", "c"})
      parameters().add(name, {kSparseTensors[static_cast<size_t>(name[0] - 'a')].count()}, {Initializer::zeros});
    allocate();
  }
  Values values() { return parameters().values().to_doubles(); }
  void gradients(const Calls& calls) override {
    Values g = parameters().gradients().to_doubles();
    const Values theta = values();
    for (const Range& r : kSparseTensors)
      for (auto i = static_cast<size_t>(r.begin); i < static_cast<size_t>(r.end); ++i)
        g[i] = kTokens * curvature(i) * (theta[i] - goal(comm().rank(), i));
    if (spoiled_ < kSparseFlat) g[spoiled_] = NAN;
    parameters().gradients().from_doubles(g);
    PlainWorker::gradients(calls);
  }
  // From now on this element of the gradient is not finite.
  void spoil(size_t element) { spoiled_ = element; }

 private:
  size_t spoiled_ = kSparseFlat;
};

struct SparseEnd {
  Values values, deployed, residual;
};

std::vector<SparseEnd> descend_sparsely(const StrategyOptions& options, int ranks, int steps) {
  std::vector<SparseEnd> all(static_cast<size_t>(ranks));
  Scenario scenario;
  scenario.ranks = ranks;
  simulate(scenario, [&](World& world) {
    Descender worker(world);
    const auto strategy = make_strategy(options, worker.parameters(), {}, world.comm->rank(), ranks);
    strategy->begin(worker);
    for (int t = 0; t < steps; ++t) {
      const StepResult result = strategy->step(worker);
      EXPECT_EQ(result.totals.tokens, ranks * kTokens);
    }
    const Tensor deployed = strategy->deployed(worker, true);
    SparseEnd& end = all[static_cast<size_t>(world.comm->rank())];
    end.values = worker.values(), end.deployed = deployed ? deployed.to_doubles() : end.values;
    end.residual = strategy->state(worker)[0].tensor.to_doubles();
  });
  return all;
}

// The same for all ranks in one loop.
std::vector<SparseEnd> computed(const StrategyOptions& o, int N, int steps) {
  struct Rank {
    Values theta = Values(kSparseFlat), e = Values(kSparseFlat), v = Values(kSparseFlat), g = Values(kSparseFlat),
           sent = Values(kSparseFlat);
  };
  std::vector<Rank> ranks(static_cast<size_t>(N));
  const double m = o.compression.momentum_correction, s = o.sparse.local_scale == 0  ? std::sqrt(N)
                                                          : o.sparse.local_scale < 0 ? N
                                                                                     : o.sparse.local_scale;
  for (int t = 0; t < steps; ++t) {
    const auto since = static_cast<double>(t - o.synchronous_steps + 1);
    const double keep = 1 - std::pow(1 - o.compression.keep, std::max(1.0, static_cast<double>(o.compression.keep_warmup) / since));
    for (int n = 0; n < N; ++n) {
      Rank& r = ranks[static_cast<size_t>(n)];
      for (const Range& tensor : kSparseTensors) {
        std::vector<size_t> order(static_cast<size_t>(tensor.count()));
        std::iota(order.begin(), order.end(), tensor.begin);
        Values a(kSparseFlat);
        for (const size_t i : order) {
          r.g[i] = kTokens * curvature(i) * (r.theta[i] - goal(n, i));
          if (since <= 0) continue;
          r.v[i] = m * r.v[i] + r.g[i];
          a[i] = o.compression.residual_decay * r.e[i] + (m > 0 ? r.v[i] : r.g[i]);
        }
        std::sort(order.begin(), order.end(), [&](size_t x, size_t y) { return std::abs(a[x]) > std::abs(a[y]); });
        const bool small = tensor.count() < o.compression.dense_below;
        const auto k = small ? order.size() : static_cast<size_t>(std::llround(keep * static_cast<double>(order.size())));
        for (size_t j = 0; j < order.size(); ++j) {
          const size_t i = order[j];
          r.sent[i] = since <= 0 ? r.g[i] : j < k ? a[i] : 0;
          if (since <= 0) continue;
          r.e[i] = a[i] - r.sent[i];
          if (j < k) r.v[i] = 0;
        }
      }
    }
    for (int n = 0; n < N; ++n) {
      Rank& r = ranks[static_cast<size_t>(n)];
      for (const Range& tensor : kSparseTensors)
        for (auto i = static_cast<size_t>(tensor.begin); i < static_cast<size_t>(tensor.end); ++i) {
          double u = 0;
          for (const Rank& other : ranks) u += other.sent[i];
          const LocalPart local = since <= 0 || tensor.count() < o.compression.dense_below ? LocalPart::none : o.sparse.local_gradients;
          if (local == LocalPart::sum) u += s * r.g[i];
          if (local == LocalPart::error) u += s * r.e[i];
          if (local == LocalPart::partial) u += r.sent[i] != 0 ? r.g[i] - r.sent[i] : s * r.g[i];
          r.theta[i] -= kRate * u / (N * kTokens);
        }
    }
    if (o.sparse.average_interval == 0 || (t + 1) % o.sparse.average_interval != 0 || since <= 0) continue;
    for (size_t i = 0; i < kSparseFlat; ++i) {
      double sum = 0;
      for (const Rank& r : ranks) sum += r.theta[i];
      for (Rank& r : ranks) r.theta[i] = sum / N;
    }
    if (o.sparse.residual_reset)
      for (Rank& r : ranks) r.e.assign(kSparseFlat, 0), r.v.assign(kSparseFlat, 0);
  }
  std::vector<SparseEnd> ended;
  for (const Rank& r : ranks) ended.push_back({r.theta, {}, r.e});
  return ended;
}

StrategyOptions strategy(const std::string& name) {
  StrategyOptions o = strategy_preset(name);
  o.compression.keep = 0.05, o.compression.dense_below = 16, o.compression.values = SentValues::f32, o.compression.keep_warmup = 0;
  o.synchronous_steps = 0;
  return o;
}

// With values of top-k, and the density of strategy().
void compress(StrategyOptions& o, const std::string& compressor, const std::string& values) {
  o.compression.compressor = from_word<Compressor>(compressor);
  if (compressor == "top-k")
    o.compression.values = from_word<SentValues>(values);
  else
    o.compression.values = CompressionOptions().values, o.compression.keep = CompressionOptions().keep;
}

double largest_difference(const Values& a, const Values& b) {
  double worst = a.size() == b.size() ? 0 : INFINITY;
  for (size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(a[i] - b[i]));
  return worst;
}

TEST(Sparse, FollowsItsEquations) {
  std::vector<std::pair<std::string, StrategyOptions>> cases;
  const auto add = [&](const std::string& name, const std::string& preset, const std::function<void(StrategyOptions&)>& set) {
    cases.emplace_back(name, strategy(preset));
    set(cases.back().second);
  };
  add("dropping", "gradient-dropping", [](StrategyOptions&) {});
  add("warm-up", "gradient-dropping", [](StrategyOptions& o) { o.compression.keep_warmup = 8, o.synchronous_steps = 2; });
  add("decay", "gradient-dropping", [](StrategyOptions& o) { o.compression.residual_decay = 0.9; });
  add("momentum", "gradient-dropping", [](StrategyOptions& o) { o.compression.momentum_correction = 0.5; });
  add("by tensor", "gradient-dropping", [](StrategyOptions& o) { o.compression.select = SelectFrom::tensor, o.overlap = false; });
  for (const std::string local : {"none", "sum", "partial", "error"})
    add("local " + local, "sparse-local", [&](StrategyOptions& o) {
      o.sparse.local_gradients = from_word<LocalPart>(local), o.sparse.average_interval = local == "none" ? 0 : 5,
      o.sparse.local_scale = local == "sum" ? 0.7 : 0;
      o.synchronous_steps = 3;
    });
  add("reset", "sparse-local", [](StrategyOptions& o) { o.sparse.residual_reset = true, o.sparse.average_interval = 4; });
  add("cser", "cser", [](StrategyOptions& o) { o.sparse.average_interval = 4; });
  for (const auto& [name, options] : cases)
    for (const int N : {2, 3}) {
      const auto got = descend_sparsely(options, N, 18), expected = computed(options, N, 18);
      Values mean(kSparseFlat);
      for (int r = 0; r < N; ++r) {
        const SparseEnd& mine = got[static_cast<size_t>(r)];
        EXPECT_LT(largest_difference(mine.values, expected[static_cast<size_t>(r)].values), 1e-12) << name << ", rank " << r << " of " << N;
        EXPECT_LT(largest_difference(mine.residual, expected[static_cast<size_t>(r)].residual), 1e-11) << name;
        for (size_t i = 0; i < kSparseFlat; ++i) mean[i] += mine.values[i] / N;
      }
      EXPECT_LT(largest_difference(got[0].deployed, mean), 1e-14) << name;
      EXPECT_EQ(options.sparse.local_gradients == LocalPart::none, got[0].values == got[1].values) << name;
    }
}

// One rank alone has a number that is not finite, after two good updates: all ranks find it out, and name the rank.
TEST(Sparse, ANumberThatIsNotFiniteStopsEveryRankByItself) {
  for (const size_t element : {3100u, 3315u})  // of a tensor that is compressed, and of one that goes whole
    for (const bool overlap : {true, false}) {
      StrategyOptions o = strategy("sparse-local");
      o.overlap = overlap;
      std::vector<std::string> errors(3);
      Scenario scenario;
      scenario.ranks = 3;
      simulate(scenario, [&](World& world) {
        Descender worker(world);
        const auto strategy = make_strategy(o, worker.parameters(), {}, world.comm->rank(), 3);
        strategy->begin(worker);
        for (int t = 0; t < 2; ++t) strategy->step(worker);
        const Values before = worker.values();
        if (world.comm->rank() == 1) worker.spoil(element);
        try {
          strategy->step(worker);
        } catch (const DivergedError& e) {  // not passed on: every rank must find it out, not hear of it
          errors[static_cast<size_t>(world.comm->rank())] = e.what();
        }
        EXPECT_EQ(worker.values(), before);
        EXPECT_EQ(worker.optimizer().updates(), 2);
      });
      for (const std::string& error : errors) EXPECT_EQ(error, errors[0]);
      const std::string where = element < 3308 ? "element 92 of b" : "element 3 of c";
      EXPECT_NE(errors[0].find("the gradient of rank 1 on node1, " + where + ", is not finite in update 7"), std::string::npos)
          << errors[0];
    }
}

// A backend whose sums of squares are wrong by a part of their own, as those of unlike processors are.
struct Reference {
  std::unique_ptr<Backend> reference = make_backend("reference", 1);
};
class Unlike : private Reference, public ProfiledBackend {
 public:
  explicit Unlike(double wrong) : ProfiledBackend(*reference), wrong_(wrong) {}
  void sum_of_squares(const Tensor& x, const Tensor& sum) override {
    const Tensor right({1}, DType::f64, memory());
    ProfiledBackend::sum_of_squares(x, right);
    flat().scale(right, 1 + wrong_, sum, Write::accumulate);
  }

 private:
  double wrong_;
};

// As long as replicas are equal they are clipped by one norm, whoever adds it up: else they would drift apart.
TEST(Sparse, EqualReplicasAreClippedByOneNorm) {
  const int N = 3;
  const StrategyOptions options = strategy("gradient-dropping");
  std::vector<double> norms(N);
  Scenario scenario;
  scenario.ranks = N;
  simulate(scenario, [&](World& world) {
    const int rank = world.comm->rank();
    Descender worker(world, std::make_unique<Unlike>(1e-9 * rank));
    const auto strategy = make_strategy(options, worker.parameters(), {}, rank, N);
    strategy->begin(worker);
    norms[static_cast<size_t>(rank)] = strategy->step(worker).gradient_norm;
    double squares = 0;
    for (const double x : worker.values()) squares += x * x;  // moved by the rate times the gradient
    EXPECT_NEAR(norms[static_cast<size_t>(rank)], std::sqrt(squares) / kRate, 1e-8);
  });
  for (const double norm : norms) EXPECT_EQ(norm, norms[0]);
}

TEST(Sparse, AveragingMakesReplicasEqual) {
  StrategyOptions o = strategy("sparse-local");
  o.sparse.average_interval = 6;
  const auto between = descend_sparsely(o, 3, 11), after = descend_sparsely(o, 3, 12);
  EXPECT_GT(largest_difference(between[0].values, between[2].values), 1e-3);
  for (const SparseEnd& rank : after) EXPECT_EQ(rank.values, after[0].values);
}

// Plain SGD: where the parameters have come is what was sent; that is the gradients less the residuals.
TEST(Sparse, WhatIsNotInTheParametersIsInTheResiduals) {
  for (const auto& [compressor, values] :
       {std::pair{"top-k", "f32"}, {"top-k", "bf16"}, {"top-k", "2-bit"}, {"ternary", "bf16"}, {"4-bit", "bf16"}}) {
    StrategyOptions o = strategy("gradient-dropping");
    compress(o, compressor, values);
    const int N = 3, steps = 10;
    Values given(kSparseFlat);
    std::vector<SparseEnd> ends;
    for (int t = 0; t <= steps; ++t) {
      ends = descend_sparsely(o, N, t);
      for (const Range& tensor : kSparseTensors)
        for (auto i = static_cast<size_t>(tensor.begin); t < steps && i < static_cast<size_t>(tensor.end); ++i)
          for (int r = 0; r < N; ++r) given[i] += kTokens * curvature(i) * (ends[0].values[i] - goal(r, i));
    }
    double left = 0;
    for (size_t i = 0; i < kSparseFlat; ++i) {
      double sent = given[i];
      for (const SparseEnd& r : ends) sent -= r.residual[i], left += std::abs(r.residual[i]);
      ASSERT_NEAR(ends[0].values[i], -kRate * sent / (N * kTokens), 1e-12) << compressor << " " << values;
    }
    EXPECT_GT(left, 1) << "nothing was held back";
  }
}

TEST(SparseTraining, KeepingAllIsDenseExchange) {
  TrainingRun run;
  const TrainingTrace one = alone(run);
  for (const std::string name : {"gradient-dropping", "sparse-local"}) {
    run.strategy = strategy(name);
    run.strategy.bucket_mib = 0.004, run.strategy.compression.keep = 1;
    for (const int ranks : {2, 4})
      for (const TrainingTrace& trace : simulated(run, ranks))
        for (size_t t = 0; t < one.losses.size(); ++t) EXPECT_NEAR(trace.losses[t], one.losses[t], 1e-9 * one.losses[t]) << name;
  }
}

TEST(SparseTraining, OneWorkerIsARunWithoutStrategy) {
  for (const std::string name : {"gradient-dropping", "sparse-local", "cser"}) {
    TrainingRun run;
    const TrainingTrace plain = alone(run);
    run.strategy = strategy(name);
    EXPECT_TRUE(alone(run).values == plain.values) << name;
  }
}

TEST(SparseTraining, ReplicasStayEqualWithoutLocalGradients) {
  TrainingRun run;
  run.backend = "cpu:f32", run.steps = 20;
  const TrainingTrace one = alone(run);
  for (const std::string compressor : {"top-k", "ternary", "4-bit"})
    for (const bool overlap : {true, false}) {
      run.strategy = strategy("gradient-dropping");
      run.strategy.bucket_mib = 0.004, run.strategy.overlap = overlap;
      compress(run.strategy, compressor, overlap ? "bf16" : "2-bit");
      const auto traces = simulated(run, 4);
      for (const TrainingTrace& trace : traces)
        EXPECT_TRUE(trace.values == traces[0].values && trace.first == traces[0].first) << compressor;
      EXPECT_FALSE(traces[0].values == one.values) << "nothing was compressed";
      EXPECT_LT(traces[0].losses.back(), traces[0].losses.front()) << compressor;
    }
}

// The same codes whether they are sent during the backward pass or after it.
TEST(SparseTraining, OverlapChangesNothing) {
  TrainingRun run;
  run.backend = "cpu:f32", run.strategy = strategy("sparse-local");
  run.strategy.bucket_mib = 0.004, run.strategy.embedding_gradients = EmbeddingGradients::dense;  // the same buckets
  const auto overlapped = simulated(run, 3);
  run.strategy.overlap = false;
  const auto blocking = simulated(run, 3);
  for (size_t r = 0; r < 3; ++r) EXPECT_TRUE(overlapped[r].values == blocking[r].values);
}

TEST(SparseTraining, SendsAFractionOfTheBytes) {
  TrainingRun run;
  run.backend = "cpu:f32", run.strategy.embedding_gradients = EmbeddingGradients::dense;
  const auto dense = simulated(run, 4);
  run.strategy = strategy("gradient-dropping");
  run.strategy.compression.values = SentValues::bf16, run.strategy.compression.keep = 0.01;
  const auto sparse = simulated(run, 4);
  EXPECT_LT(static_cast<double>(sparse[0].traffic.bytes_sent), 0.2 * static_cast<double>(dense[0].traffic.bytes_sent));
}

TEST(SparseOptions, ThatCannotBeMeantAreRefused) {
  const auto message = [](const std::function<void(StrategyOptions&)>& set, const std::string& name) -> std::string {
    StrategyOptions o = strategy_preset(name);
    set(o);
    try {
      check_strategy(o);
    } catch (const ConfigError& e) {
      return e.what();
    }
    return "";
  };
  const auto refused = [&](const std::function<void(StrategyOptions&)>& set, const std::string& name = "sparse-local") {
    EXPECT_NE(message(set, name), "");
  };
  refused([](StrategyOptions& o) { o.sharded_optimizer = true; });
  refused([](StrategyOptions& o) { o.sparse.local_gradients = LocalPart::none; });
  refused([](StrategyOptions& o) { o.sparse.local_scale = -2; });
  refused([](StrategyOptions& o) { o.compression.values = SentValues::two_bit, o.compression.select = SelectFrom::tensor; });
  refused([](StrategyOptions& o) { o.compression.compressor = Compressor::top_k; }, "all-reduce");
  for (const std::string name : {"gradient-dropping", "sparse-local", "cser"}) check_strategy(strategy_preset(name));
  // What would do nothing, but for values of the name and of the defaults, which nobody has to take back.
  const auto idle = [&](const std::string& key, const std::function<void(StrategyOptions&)>& set, const std::string& name) {
    EXPECT_NE(message(set, name).find("strategy." + key + " does nothing without"), std::string::npos) << key << message(set, name);
  };
  for (const Compressor other : {Compressor::none, Compressor::ternary, Compressor::four_bit}) {
    const auto with = [&](const std::function<void(StrategyOptions&)>& set) {
      return [&, set](StrategyOptions& o) { o.compression.compressor = other, set(o); };
    };
    for (const std::string name : {"gradient-dropping", "sparse-loco"}) {
      EXPECT_EQ(message(with([](StrategyOptions&) {}), name), "") << name;
      idle("compression.keep", with([](StrategyOptions& o) { o.compression.keep = 0.02; }), name);
      idle("compression.select", with([](StrategyOptions& o) { o.compression.select = SelectFrom::tensor; }), name);
      idle("compression.values", with([](StrategyOptions& o) { o.compression.values = SentValues::f32; }), name);
      idle("compression.keep-warmup", with([](StrategyOptions& o) { o.compression.keep_warmup = 7; }), name);
      EXPECT_EQ(message(with([](StrategyOptions& o) { o.compression.residual_decay = 0.5; }), name) == "", other != Compressor::none);
      EXPECT_EQ(message(with([](StrategyOptions& o) { o.compression.dense_below = 64; }), name) == "", other != Compressor::none);
    }
  }
  idle(
      "sparse.local-scale", [](StrategyOptions& o) { o.sparse.local_scale = 2; }, "gradient-dropping");
  EXPECT_EQ(message([](StrategyOptions& o) { o.sparse.local_gradients = LocalPart::none, o.sparse.average_interval = 0; }, "cser"), "");
}

}  // namespace
}  // namespace starling
