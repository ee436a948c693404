// Local updates and their merges: one update between merges is synchronous SGD, the outer steps follow the recursions of the papers
// computed apart, late merges lose nothing, and one worker is a run without a strategy.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "sim/simulate.h"
#include "strategies/factory.h"
#include "tests/strategies/plain_worker.h"
#include "tests/strategies/training.h"

namespace starling {
namespace {

// A replica with a loss of its own: gradient of rank r = curvature (theta - goal_r), per token; plain SGD.
class Quadratic : public PlainWorker {
 public:
  Quadratic(World& world, double rate, double tokens) : PlainWorker(world, rate, tokens) {
    for (const char* name : {"embedding", "encoder.0.w", "encoder.1.w", "decoder.0.w"}) parameters().add(name, {16}, {Initializer::zeros});
    allocate();
    std::vector<double> start(static_cast<size_t>(count()));
    for (size_t i = 0; i < start.size(); ++i) start[i] = 0.1 * static_cast<double>(i % 7) - 0.2;
    parameters().values().from_doubles(start);
  }
  int64_t count() { return parameters().values().count(); }
  std::vector<double> values() { return parameters().values().to_doubles(); }
  static double curvature(int64_t i) { return 0.2 + 0.05 * static_cast<double>(i % 5); }
  static double goal(int rank, int64_t i) { return std::sin(static_cast<double>(7 * rank + 3 * i + 1)); }
  void gradients(const Calls& calls) override {
    std::vector<double> g = values();
    for (int64_t i = 0; i < count(); ++i) g[i] = tokens() * curvature(i) * (g[i] - goal(comm().rank(), i));
    parameters().gradients().from_doubles(g);
    PlainWorker::gradients(calls);
  }
};

struct PeriodicEnd {
  std::vector<double> values, deployed;
  double tokens = 0;  // in the totals of all steps
};

// Every rank's end after so many updates. Rank r sees weigh[r] tokens an update, 10 by default.
std::vector<PeriodicEnd> descend(const StrategyOptions& options, int ranks, int steps, double rate, std::vector<double> weigh = {},
                                 bool final = false) {
  std::vector<PeriodicEnd> all(static_cast<size_t>(ranks));
  Scenario scenario;
  scenario.ranks = ranks;
  simulate(scenario, [&](World& world) {
    const auto rank = static_cast<size_t>(world.comm->rank());
    Quadratic worker(world, rate, weigh.empty() ? 10 : weigh[rank]);
    const std::vector<ExchangedTable> tables{{&worker.parameters().all()[0], true, false}};
    const auto strategy = make_strategy(options, worker.parameters(), tables, world.comm->rank(), ranks);
    strategy->begin(worker);
    for (int t = 0; t < steps; ++t) all[rank].tokens += strategy->step(worker).totals.tokens;
    all[rank].deployed = strategy->deployed(worker, final).to_doubles();
    all[rank].values = worker.values();
  });
  return all;
}

StrategyOptions strategy(const std::string& name, int64_t interval) {
  StrategyOptions o = strategy_preset(name);
  o.periodic.interval = interval, o.synchronous_steps = 0;
  return o;
}

// theta after `steps` local updates from `start` on rank r.
double local(double start, int rank, int64_t i, int64_t steps, double rate) {
  for (int64_t t = 0; t < steps; ++t) start -= rate * Quadratic::curvature(i) * (start - Quadratic::goal(rank, i));
  return start;
}
double initial(int64_t i) { return 0.1 * static_cast<double>(i % 7) - 0.2; }

TEST(Periodic, AMergeEveryUpdateIsSynchronousSgd) {
  TrainingRun run;
  run.optimizer = "sgd", run.clip = 0, run.rate = 0.05;
  const auto train = [&](int ranks) {
    std::vector<TrainingTrace> traces(static_cast<size_t>(ranks));
    Scenario scenario;
    scenario.ranks = ranks;
    simulate(scenario, [&](World& world) { traces[static_cast<size_t>(world.comm->rank())] = train_together(run, world); });
    return traces;
  };
  const auto values = [](const TrainingTrace& trace) {
    const auto* x = reinterpret_cast<const double*>(trace.values.data());
    return std::vector<double>(x, x + trace.values.size() / sizeof(double));
  };
  for (const int ranks : {2, 4}) {
    run.strategy = strategy_preset("all-reduce");
    const auto together = train(ranks);
    run.strategy = strategy("model-average", 1);
    const auto local = train(ranks);
    for (int r = 0; r < ranks; ++r) {
      const auto a = values(local[static_cast<size_t>(r)]), b = values(together[static_cast<size_t>(r)]);
      ASSERT_EQ(a.size(), b.size());
      for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-12);
      for (size_t t = 0; t < local[0].losses.size(); ++t) EXPECT_NEAR(local[0].losses[t], together[0].losses[t], 1e-9) << t;
    }
  }
}

TEST(Periodic, OneWorkerIsARunWithoutStrategy) {
  TrainingRun run;
  World first = make_local_world(), second = make_local_world();
  const TrainingTrace alone = train_together(run, first);
  run.strategy = strategy("model-average", 4);
  EXPECT_TRUE(train_together(run, second).values == alone.values);
}

// PyTorch's Nesterov SGD on pseudo-gradients (DiLoCo): b = mu b + delta; theta -= lr (delta + mu b), computed here on its own.
TEST(Periodic, BmufWithNesterovIsDiLoCosOuterStep) {
  const double rate = 0.05, mu = 0.75, zeta = 0.9;
  const int64_t H = 4;
  StrategyOptions o = strategy("bmuf", H);
  o.periodic.outer_momentum = mu, o.periodic.outer_rate = zeta;
  const int blocks = 400, ranks = 4;
  const auto ended = descend(o, ranks, blocks * static_cast<int>(H), rate);
  for (size_t i = 0; i < ended[0].values.size(); ++i) {
    double theta = initial(static_cast<int64_t>(i)), b = 0;
    for (int block = 0; block < blocks; ++block) {
      double delta = 0;
      for (int r = 0; r < ranks; ++r) delta += (theta - local(theta, r, static_cast<int64_t>(i), H, rate)) / ranks;
      b = mu * b + delta;
      theta -= zeta * (delta + mu * b);
    }
    for (int r = 0; r < ranks; ++r) EXPECT_NEAR(ended[static_cast<size_t>(r)].values[i], theta, 1e-6);
  }
  EXPECT_EQ(ended[0].tokens, 10.0 * ranks * blocks * static_cast<double>(H));
}

TEST(Periodic, OuterFormsFollowTheirRecursions) {
  const double rate = 0.1, zeta = 0.8;
  const int64_t H = 3;
  const int blocks = 7, ranks = 3;
  for (const std::string form : {"classical", "nesterov", "anchored"})
    for (const double eta : {0.0, 0.6, -1.0}) {
      StrategyOptions o = strategy("bmuf", H);
      o.periodic.outer_form = from_word<OuterForm>(form), o.periodic.outer_momentum = eta, o.periodic.outer_rate = zeta;
      const double mu = eta < 0 ? 1 - 1.0 / ranks : eta;
      const auto ended = descend(o, ranks, blocks * static_cast<int>(H), rate);
      for (size_t i = 0; i < ended[0].values.size(); ++i) {
        double W = initial(static_cast<int64_t>(i)), D = 0, start = W;
        for (int block = 0; block < blocks; ++block) {
          double G = 0;
          for (int r = 0; r < ranks; ++r) G += (local(start, r, static_cast<int64_t>(i), H, rate) - start) / ranks;
          D = mu * D + zeta * G;
          W += D;
          start = form == "classical" ? W : W + mu * D;
          if (form == "anchored") W = start;  // s = mu s - zeta G; theta = anchor - s - mu s; anchor = theta
        }
        EXPECT_NEAR(ended[0].deployed[i], W, 1e-12) << form << " " << eta;
        EXPECT_NEAR(ended[0].values[i], start, 1e-12) << form << " " << eta;
      }
    }
}

TEST(Periodic, MomentumAsATimeConstant) {
  StrategyOptions o = strategy("bmuf", 5), same = o;
  o.periodic.outer_momentum_steps = 20;
  same.periodic.outer_momentum = std::exp(-5.0 / 20);
  EXPECT_EQ(descend(o, 2, 30, 0.1)[0].values, descend(same, 2, 30, 0.1)[0].values);
}

TEST(Periodic, WeightsAreTokensOrEqual) {
  const double rate = 0.1;
  const std::vector<double> tokens{10, 30};
  for (const std::string weights : {"tokens", "equal"}) {
    StrategyOptions o = strategy("model-average", 4);
    o.periodic.merge_weights = from_word<MergeWeights>(weights);
    const auto ended = descend(o, 2, 4, rate, tokens);
    for (size_t i = 0; i < ended[0].values.size(); ++i) {
      const auto k = static_cast<int64_t>(i);
      const double a = local(initial(k), 0, k, 4, rate), b = local(initial(k), 1, k, 4, rate);
      EXPECT_NEAR(ended[0].deployed[i], weights == "tokens" ? (10 * a + 30 * b) / 40 : (a + b) / 2, 1e-12);
    }
  }
}

// Radial: (mean of |d_r|) times the unit vector of the mean of d_r / |d_r|; embedding tables by their mean.
TEST(Periodic, RadialMergesKeepTheMeanLength) {
  const double rate = 0.2;
  const int ranks = 3;
  StrategyOptions o = strategy("model-average", 2);
  o.periodic.merge = MergeRule::radial;
  const auto ended = descend(o, ranks, 2, rate);
  const size_t table = 16, n = ended[0].values.size();
  std::vector<std::vector<double>> d(ranks, std::vector<double>(n));
  for (int r = 0; r < ranks; ++r)
    for (size_t i = 0; i < n; ++i) {
      const auto k = static_cast<int64_t>(i);
      d[static_cast<size_t>(r)][i] = local(initial(k), r, k, 2, rate) - initial(k);
    }
  std::vector<double> direction(n);
  double length = 0;
  for (const auto& one : d) {
    double squares = 0;
    for (size_t i = table; i < n; ++i) squares += one[i] * one[i];
    length += std::sqrt(squares) / ranks;
    for (size_t i = table; i < n; ++i) direction[i] += one[i] / std::sqrt(squares);
  }
  double norm = 0;
  for (double x : direction) norm += x * x;
  for (size_t i = 0; i < n; ++i) {
    const double mean = (d[0][i] + d[1][i] + d[2][i]) / 3;
    const double expected = i < table ? mean : length * direction[i] / std::sqrt(norm);
    EXPECT_NEAR(ended[0].deployed[i], initial(static_cast<int64_t>(i)) + expected, 1e-12) << i;
  }
}

// Fragments at offsets 0, 2 (of 4 updates), each sent and merged one update later: followed by hand.
TEST(Periodic, LateFragmentsKeepWhatWasLearnedMeanwhile) {
  const double rate = 0.1, eta = 0.5, zeta = 0.7, mix = 0.25;
  const int ranks = 2, steps = 23;
  for (const std::string late : {"corrected", "mix"}) {
    StrategyOptions o = strategy("streaming", 4);
    o.periodic.fragments = 2, o.periodic.delay = 1, o.periodic.late_merge = from_word<LateMerge>(late);
    if (o.periodic.late_merge == LateMerge::mix) o.periodic.late_mix = mix;
    o.periodic.outer_momentum = eta, o.periodic.outer_rate = zeta;
    const auto ended = descend(o, ranks, steps, rate);
    for (size_t i = 0; i < ended[0].values.size(); ++i) {
      const auto k = static_cast<int64_t>(i);
      const int64_t offset = (i / 16) % 2 * 2;  // parameters in turn: embedding, encoder.0, encoder.1, decoder.0
      double W = initial(k), D = 0, start = W, G = 0;
      std::vector<double> theta(ranks, W), sent(ranks);
      bool under_way = false;
      for (int64_t t = 1; t <= steps; ++t) {
        for (int r = 0; r < ranks; ++r) theta[static_cast<size_t>(r)] = local(theta[static_cast<size_t>(r)], r, k, 1, rate);
        if (under_way && (t - offset) % 4 == 1) {
          D = eta * D + zeta * G, W += D, start = W + eta * D, under_way = false;
          for (int r = 0; r < ranks; ++r) {
            double& x = theta[static_cast<size_t>(r)];
            x = late == "corrected" ? start + x - sent[static_cast<size_t>(r)] : mix * x + (1 - mix) * start;
          }
        }
        if (t % 4 == offset) {
          G = ((theta[0] - start) + (theta[1] - start)) / 2, sent = theta, under_way = true;
        }
      }
      for (int r = 0; r < ranks; ++r)
        EXPECT_NEAR(ended[static_cast<size_t>(r)].values[i], theta[static_cast<size_t>(r)], 1e-12) << late << " " << i;
      EXPECT_NEAR(ended[0].deployed[i], W, 1e-12);
    }
  }
}

// SparseLoCo: e = beta e + displacement; the largest quarter of each parameter is sent and taken off e; W moves by their mean.
TEST(Periodic, CompressedDisplacementsFollowTheirRecursion) {
  const double rate = 0.1, beta = 0.9;
  const int64_t H = 3;
  const int ranks = 2, blocks = 9;
  for (const int64_t delay : {0, 1}) {
    StrategyOptions o = strategy("sparse-loco", H);
    o.compression.values = SentValues::f32, o.compression.keep = 0.25, o.compression.residual_decay = beta, o.compression.dense_below = 0;
    o.periodic.delay = delay;
    // One update more than the blocks, so that the last has landed.
    const auto ended = descend(o, ranks, blocks * static_cast<int>(H) + static_cast<int>(delay), rate);
    const size_t n = ended[0].values.size();
    std::vector<double> W(n);
    for (size_t i = 0; i < n; ++i) W[i] = initial(static_cast<int64_t>(i));
    std::vector<std::vector<double>> e(ranks, std::vector<double>(n)), theta(ranks, W);
    for (int block = 0; block < blocks; ++block) {
      std::vector<double> sum(n);
      auto sent = theta;
      for (size_t r = 0; r < ranks; ++r) {
        for (size_t i = 0; i < n; ++i) {
          const int64_t steps = block == 0 ? H : H - delay;  // the others were made after the last was sent
          theta[r][i] = local(theta[r][i], static_cast<int>(r), static_cast<int64_t>(i), steps, rate);
          e[r][i] = beta * e[r][i] + theta[r][i] - W[i];
        }
        sent[r] = theta[r];
        for (size_t first = 0; first < n; first += 16) {
          std::vector<size_t> order(16);
          for (size_t k = 0; k < 16; ++k) order[k] = first + k;
          std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return std::abs(e[r][a]) > std::abs(e[r][b]); });
          for (size_t k = 0; k < 4; ++k) sum[order[k]] += e[r][order[k]], e[r][order[k]] = 0;
        }
      }
      for (size_t i = 0; i < n; ++i) {
        W[i] += sum[i] / ranks;
        for (size_t r = 0; r < ranks; ++r) {
          theta[r][i] = local(theta[r][i], static_cast<int>(r), static_cast<int64_t>(i), delay, rate);
          theta[r][i] = W[i] + theta[r][i] - sent[r][i];
        }
      }
    }
    for (size_t i = 0; i < n; ++i) {
      EXPECT_NEAR(ended[0].deployed[i], W[i], 1e-12) << i << ", delay " << delay;
      EXPECT_NEAR(ended[1].values[i], theta[1][i], 1e-12) << i << ", delay " << delay;
    }
  }
}

TEST(Periodic, TheFinalModelHasWhatWasNotMerged) {
  const double rate = 0.1;
  const StrategyOptions o = strategy("model-average", 10);
  const auto before = descend(o, 2, 7, rate), after = descend(o, 2, 7, rate, {}, true);
  for (size_t i = 0; i < before[0].values.size(); ++i) {
    const auto k = static_cast<int64_t>(i);
    EXPECT_NEAR(before[0].deployed[i], initial(k), 1e-15);
    EXPECT_NEAR(after[0].deployed[i], (local(initial(k), 0, k, 7, rate) + local(initial(k), 1, k, 7, rate)) / 2, 1e-12);
  }
  EXPECT_EQ(before[0].values, after[0].values);  // looking changes nothing
}

// A merge of nothing would still take a step along the momentum.
TEST(Periodic, TheFinalModelIsTheMergedOneRightAfterAMerge) {
  StrategyOptions o = strategy("bmuf", 5);
  o.periodic.merge_weights = MergeWeights::equal, o.periodic.outer_momentum = 0.5;
  const auto merged = descend(o, 2, 15, 0.1), final = descend(o, 2, 15, 0.1, {}, true), later = descend(o, 2, 16, 0.1, {}, true);
  EXPECT_EQ(final[0].deployed, merged[0].deployed);
  EXPECT_NE(later[0].deployed, merged[0].deployed);
}

TEST(Periodic, MomentsAreAveragedAtTheirOwnTimesOrForgotten) {
  TrainingRun run;
  run.backend = "reference", run.steps = 6;
  const auto train = [&](const std::function<void(PeriodicOptions&)>& set) {
    run.strategy = strategy("model-average", 2);
    set(run.strategy.periodic);
    std::vector<TrainingTrace> traces(2);
    Scenario scenario;
    scenario.ranks = 2;
    simulate(scenario, [&](World& world) { traces[static_cast<size_t>(world.comm->rank())] = train_together(run, world); });
    return traces;
  };
  const auto kept = train([](PeriodicOptions&) {});
  EXPECT_FALSE(kept[0].first == kept[1].first);
  const auto averaged = train([](PeriodicOptions& p) { p.inner_state = InnerState::average; });
  EXPECT_TRUE(averaged[0].first == averaged[1].first && averaged[0].second == averaged[1].second);
  const auto apart =
      train([](PeriodicOptions& p) { p.inner_state = InnerState::average, p.first_moment_interval = 3, p.second_moment_interval = 4; });
  EXPECT_TRUE(apart[0].first == apart[1].first);     // after update 6
  EXPECT_FALSE(apart[0].second == apart[1].second);  // after updates 4 only
  run.optimizer = "adagrad";                         // which has no first moment
  const auto squares =
      train([](PeriodicOptions& p) { p.inner_state = InnerState::average, p.first_moment_interval = 4, p.second_moment_interval = 3; });
  EXPECT_FALSE(squares[0].second.empty());
  EXPECT_TRUE(squares[0].second == squares[1].second);
  run.optimizer = "adam";
  const auto reset = train([](PeriodicOptions& p) { p.inner_state = InnerState::reset; });
  for (const auto* moments : {&reset[0].first, &reset[0].second})
    for (const std::byte b : *moments) ASSERT_EQ(b, std::byte{0});
  // After a reset Adam's first step is the rate times the gradient's sign again: bias correction has begun anew, too.
  run.steps = 3, run.clip = 0;
  const auto later = train([](PeriodicOptions& p) { p.inner_state = InnerState::reset; });
  run.steps = 2;
  const auto merged = train([](PeriodicOptions& p) { p.inner_state = InnerState::reset; });
  double largest = 0;
  for (size_t i = 0; i < later[0].values.size(); i += sizeof(double)) {
    double a, b;
    std::memcpy(&a, &later[0].values[i], sizeof a), std::memcpy(&b, &merged[0].values[i], sizeof b);
    largest = std::max(largest, std::abs(a - b));
  }
  EXPECT_NEAR(largest, run.rate * 3 / 5, 1e-6);  // update 3 of 5 of warm-up
}

TEST(Periodic, BytesOfAMergeFollowTheClosedForm) {
  TrainingRun run;
  run.backend = "cpu:f32", run.steps = 12;
  for (const std::string wire : {"f32", "bf16"}) {
    run.strategy = strategy("bmuf", 4);
    run.strategy.algorithm = Algorithm::ring, run.strategy.wire = from_word<Wire>(wire);
    const int ranks = 4;
    std::vector<TrainingTrace> traces(ranks);
    Scenario scenario;
    scenario.ranks = ranks;
    simulate(scenario, [&](World& world) { traces[static_cast<size_t>(world.comm->rank())] = train_together(run, world); });
    const double M = static_cast<double>(traces[0].gradient_bytes) * (wire == "bf16" ? 0.5 : 1);
    const double numbers = 2.0 * 15 * 8;  // of a merge: few, tree or ring
    EXPECT_NEAR(static_cast<double>(traces[1].traffic.bytes_sent), 3 * (2 * 0.75 * M + numbers), 0.02 * 3 * 2 * 0.75 * M) << wire;
  }
}

TEST(Periodic, ImpossibleOptionsAreNamed) {
  const auto message = [](const std::function<void(StrategyOptions&)>& set) {
    StrategyOptions o = strategy("streaming", 8);
    set(o);
    try {
      check_strategy(o);
    } catch (const ConfigError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_EQ(message([](StrategyOptions&) {}), "");
  EXPECT_NE(message([](StrategyOptions& o) { o.periodic.delay = 8; }).find("strategy.periodic.delay 8"), std::string::npos);
  EXPECT_NE(message([](StrategyOptions& o) { o.periodic.fragments = 9; }).find("strategy.periodic.fragments 9"), std::string::npos);
  EXPECT_NE(message([](StrategyOptions& o) { o.periodic.inner_state = InnerState::reset; }).find("inner-state"), std::string::npos);
  EXPECT_NE(message([](StrategyOptions& o) { o.sharded_optimizer = true; }).find("sharded-optimizer"), std::string::npos);
  EXPECT_NE(message([](StrategyOptions& o) { o.periodic.outer_momentum = -0.5; }).find("outer-momentum -0.5"), std::string::npos);
  EXPECT_NE(message([](StrategyOptions& o) { o.periodic.merge = MergeRule::radial; }).find("radial"), std::string::npos);
  EXPECT_NE(message([](StrategyOptions& o) { o.wire = Wire::bf16; }).find("wire bf16"), std::string::npos);
  EXPECT_NE(message([](StrategyOptions& o) {
              o.sparse.average_interval = 3;
            }).find("average-interval does nothing without strategy.name gradient-dropping, sparse-local or cser"),
            std::string::npos);
  EXPECT_NE(message([](StrategyOptions& o) { o.asynchronous.push_interval = 3; }).find("push-interval"), std::string::npos);
  EXPECT_NE(message([](StrategyOptions& o) {
              o.name = "all-reduce";
            }).find("strategy.periodic.interval does nothing without strategy.name model-average"),
            std::string::npos);
  EXPECT_THROW(strategy_preset("bmfu"), ConfigError);
}

}  // namespace
}  // namespace starling
