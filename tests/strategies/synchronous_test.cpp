// N workers against one: the same losses to rounding, equal replicas bit for bit, and the bytes of the closed forms.
#include <gtest/gtest.h>

#include <cmath>

#include "strategies/buckets.h"
#include "strategies/embedding_exchange.h"
#include "strategies/factory.h"
#include "tests/strategies/divided.h"
#include "tests/strategies/variants.h"
#include "tests/whole_matrix.h"

namespace starling {
namespace {

Scenario cluster(int ranks) {
  Scenario s;
  s.ranks = ranks;
  s.network.preset = "10gbe";
  return s;
}

class Synchronous : public testing::TestWithParam<Variant> {};

TEST_P(Synchronous, LosesNothingAgainstOneWorker) {
  TrainingRun run;
  const TrainingTrace one = alone(run);
  run.strategy = GetParam().options;
  for (const int workers : of_cases<int>({4, 2, 8}, 1)) {
    const auto traces = simulated(run, workers + GetParam().extra_ranks);
    for (const TrainingTrace& trace : traces) {
      EXPECT_LT(worst(trace.losses, one.losses), 1e-9) << workers << " workers";
      EXPECT_LT(worst(trace.norms, one.norms), 1e-9) << workers << " workers";
    }
    for (int r = 1; r < workers; ++r)
      EXPECT_TRUE(traces[static_cast<size_t>(r)].values == traces[0].values) << "replicas 0 and " << r << " of " << workers << " differ";
  }
}

TEST_P(Synchronous, InSinglePrecisionStaysNear) {
  TrainingRun run;
  run.backend = "cpu:f32", run.steps = 50, run.rate = 1e-3;
  const TrainingTrace one = alone(run);
  run.strategy = GetParam().options;
  const auto traces = simulated(run, 4 + GetParam().extra_ranks);
  const auto first = [](const std::vector<double>& x) { return std::vector<double>(x.begin(), x.begin() + 10); };
  EXPECT_LT(worst(first(traces[0].losses), first(one.losses)), 1e-5);
  EXPECT_LT(worst(traces[0].losses, one.losses), 1e-4);
}

INSTANTIATE_TEST_SUITE_P(All, Synchronous, testing::ValuesIn(variants()), [](const auto& info) { return info.param.name; });

// Adam, then SGD with a rate and a clipping of its own, on gradients divided by sentences.
TEST(SynchronousSgd, WorkersGiveWhatOneGivesWithGradientsPerSentence) {
  TrainingRun run;
  const TrainingTrace per_token = alone(run);
  run.normalization = "sentences", run.sgd_after = 4;
  const TrainingTrace one = alone(run);
  // Before anything was updated the sums are the same ones.
  EXPECT_NEAR(one.norms[0], per_token.norms[0] * one.tokens[0] / static_cast<double>(run.sentences), 1e-12 * one.norms[0]);
  EXPECT_DOUBLE_EQ(one.rates[3], 3e-3 * 4 / 5);
  for (size_t t = 4; t < one.rates.size(); ++t) EXPECT_EQ(one.rates[t], 0.05);
  for (const bool sharded : {false, true}) {
    run.strategy.sharded_optimizer = sharded;
    for (const int workers : {2, 5})
      for (const TrainingTrace& trace : simulated(run, workers)) {
        EXPECT_LT(worst(trace.losses, one.losses), 1e-9) << workers << " workers";
        EXPECT_LT(worst(trace.norms, one.norms), 1e-9) << workers << " workers";
        EXPECT_EQ(trace.rates, one.rates);
      }
  }
}

// One update of SGD moves the parameters by rate * min(1, clip / norm) * norm, computed from the parameters alone.
TEST(SynchronousSgd, TheStepIsTheRateTimesTheClippedGradient) {
  for (const int64_t steps : {2, 3}) {
    TrainingRun run;
    run.normalization = "sentences", run.sgd_after = 1, run.rate = 0;  // Adam does nothing; the first update of SGD is the second
    run.steps = static_cast<int>(steps) - 1;
    const TrainingTrace before = alone(run);
    run.steps = static_cast<int>(steps);
    const TrainingTrace after = alone(run);
    const auto* a = reinterpret_cast<const double*>(before.values.data());
    const auto* b = reinterpret_cast<const double*>(after.values.data());
    double squares = 0;
    for (size_t i = 0; i < before.values.size() / sizeof(double); ++i) squares += (b[i] - a[i]) * (b[i] - a[i]);
    EXPECT_GT(after.norms.back(), 2) << "clipping was not needed";
    EXPECT_NEAR(std::sqrt(squares), 0.05 * 2, 1e-12);
  }
}

// Each rank samples for its share; together they draw what one worker draws, and exchange the samples' embedding rows too.
TEST(SynchronousRefinement, WorkersSampleWhatOneSamples) {
  TrainingRun run;
  run.mixed = true, run.steps = 4, run.sentences = 10;
  for (const std::string tied : {"all", "none"}) {
    run.tied = tied;
    run.strategy = {};
    const TrainingTrace one = alone(run);
    EXPECT_EQ(one.samples, std::vector<double>(4, 30));
    for (const std::string kind : {"all-reduce", "sharded", "assumed-sparse", "parameter-server"}) {
      run.strategy.name = kind == "parameter-server" ? kind : "all-reduce";
      run.strategy.sharded_optimizer = kind == "sharded";
      run.strategy.embedding_gradients = kind == "assumed-sparse" ? EmbeddingGradients::assumed_sparse : EmbeddingGradients::automatic;
      const auto traces = simulated(run, 3);
      for (const TrainingTrace& trace : traces) {
        EXPECT_LT(worst(trace.losses, one.losses), 1e-9) << kind;
        EXPECT_LT(worst(trace.norms, one.norms), 1e-9) << kind;
        EXPECT_EQ(trace.samples, one.samples);
        EXPECT_EQ(trace.distinct, one.distinct);
      }
      EXPECT_TRUE(traces[0].values == traces[2].values) << kind;
    }
  }
}

TEST(SynchronousEmbeddings, RowsAndWholeTablesGiveTheSame) {
  TrainingRun run;
  run.tied = "none", run.sentences = 8;  // few tokens, a large table
  const TrainingTrace one = alone(run);
  for (const bool sharded : {false, true}) {
    run.strategy.sharded_optimizer = sharded;
    run.strategy.embedding_gradients = EmbeddingGradients::automatic;
    for (const int ranks : {5, 2}) {  // parts of five end within rows
      const auto rows = simulated(run, ranks);
      EXPECT_NE(rows[0].embeddings.find("by rows;"), std::string::npos) << rows[0].embeddings;
      EXPECT_LT(worst(rows[0].losses, one.losses), 1e-9);
      for (const TrainingTrace& trace : rows) EXPECT_TRUE(trace.values == rows[0].values);
    }
    const auto rows = simulated(run, 2);
    run.strategy.embedding_gradients = EmbeddingGradients::dense;
    const auto dense = simulated(run, 2);
    EXPECT_LT(worst(dense[0].losses, one.losses), 1e-9);
    EXPECT_LT(rows[0].traffic.bytes_sent, dense[0].traffic.bytes_sent);
    run.strategy.embedding_gradients = EmbeddingGradients::automatic;
    run.sentences = 400;  // nearly every row on every rank: whole tables are cheaper
    run.steps = 2;
    const auto full = simulated(run, 8);
    EXPECT_NE(full[0].embeddings.find("dense;"), std::string::npos) << full[0].embeddings;
    run.sentences = 8, run.steps = 10;
  }
}

TEST(SynchronousEmbeddings, ATiedTableGoesEarlyAndItsLookUpsLast) {
  TrainingRun run;
  run.sentences = 8;
  const TrainingTrace one = alone(run);
  for (const bool sharded : {false, true}) {
    run.strategy.sharded_optimizer = sharded;
    for (const int ranks : {2, 5}) {
      const auto early = simulated(run, ranks);
      EXPECT_NE(early[0].embeddings.find("projection's part early"), std::string::npos) << early[0].embeddings;
      EXPECT_LT(worst(early[0].losses, one.losses), 1e-9);
      for (const TrainingTrace& trace : early) EXPECT_TRUE(trace.values == early[0].values);
    }
  }
}

TEST(SynchronousEmbeddings, ARankWithoutSentencesSendsNothingOfTheStepBefore) {
  TrainingRun run;
  run.sentences = 3;  // for eight workers
  const TrainingTrace one = alone(run);
  for (const std::string variant : {"early", "dense", "sharded"}) {
    run.strategy = {};
    run.strategy.embedding_gradients = variant == "dense" ? EmbeddingGradients::dense : EmbeddingGradients::automatic;
    run.strategy.sharded_optimizer = variant == "sharded";
    const auto many = simulated(run, 8);
    if (variant != "dense") {
      EXPECT_NE(many[0].embeddings.find("early"), std::string::npos) << many[0].embeddings;
    }
    for (const TrainingTrace& trace : many) {
      EXPECT_LT(worst(trace.losses, one.losses), 1e-9) << variant;
      EXPECT_TRUE(trace.values == many[0].values) << variant;
    }
  }
}

TEST(SynchronousWire, Bf16HalvesTheBytesAndKeepsReplicasEqual) {
  TrainingRun run;
  run.backend = "cpu:f32", run.steps = 20;
  const TrainingTrace one = alone(run);
  for (const std::string name : {"all-reduce", "sharded", "parameter-server", "own-server"}) {
    run.strategy = {};
    run.strategy.algorithm = Algorithm::ring, run.strategy.embedding_gradients = EmbeddingGradients::dense;
    if (name == "sharded") run.strategy.sharded_optimizer = true;
    if (name.ends_with("server")) run.strategy.name = "parameter-server";
    if (name == "own-server") run.strategy.servers = 1;
    const int ranks = name == "own-server" ? 5 : 4;
    const auto wide = simulated(run, ranks);
    run.strategy.wire = Wire::bf16;
    const auto narrow = simulated(run, ranks);
    for (const TrainingTrace& trace : narrow) EXPECT_TRUE(trace.values == narrow[0].values) << name;
    EXPECT_LT(worst(narrow[0].losses, one.losses), 2e-2) << name;
    EXPECT_GT(worst(narrow[0].losses, one.losses), 0) << name;
    const double ratio = static_cast<double>(narrow[0].traffic.bytes_sent) / static_cast<double>(wide[0].traffic.bytes_sent);
    EXPECT_NEAR(ratio, 0.5, 0.02) << name;
  }
}

// Rows that are looked up are rounded too, and with a sharded optimizer handed to their owners.
TEST(SynchronousWire, RowsInBf16StayNearOneWorker) {
  TrainingRun run;
  run.backend = "cpu:f32", run.steps = 20, run.sentences = 8;
  for (const std::string tied : {"all", "none"}) {
    run.tied = tied, run.strategy = {};
    const TrainingTrace one = alone(run);
    for (const bool sharded : {false, true}) {
      run.strategy.wire = Wire::bf16, run.strategy.sharded_optimizer = sharded;
      const auto narrow = simulated(run, 5);
      EXPECT_NE(narrow[0].embeddings.find(tied == "all" ? "part early" : "by rows;"), std::string::npos) << narrow[0].embeddings;
      EXPECT_LT(worst(narrow[0].losses, one.losses), 2e-4) << tied << sharded;  // 8e-5 of rounding; rows that stay where they are: 4e-4
      EXPECT_GT(worst(narrow[0].losses, one.losses), 0) << tied << sharded;
      for (const TrainingTrace& trace : narrow) EXPECT_TRUE(trace.values == narrow[0].values) << tied << sharded;
    }
  }
}

// Bytes that a rank sends in a step, against the closed forms; the sums of the step (13 numbers, sent to one rank or round a ring) are
// within the tolerance.
TEST(SynchronousBytes, FollowTheClosedForms) {
  TrainingRun run;
  run.backend = "cpu:f32", run.steps = 2;
  for (const int N : {2, 4, 8, 16}) {
    const auto sent = [&](const std::vector<TrainingTrace>& t, int r) {
      return static_cast<double>(t[static_cast<size_t>(r)].traffic.bytes_sent) / run.steps;
    };
    run.strategy = {};
    run.strategy.algorithm = Algorithm::ring, run.strategy.embedding_gradients = EmbeddingGradients::dense;
    const auto ring = simulated(run, N);
    const double M = static_cast<double>(ring[0].gradient_bytes), once = (N - 1.0) / N * M;
    for (int r = 0; r < N; ++r) EXPECT_NEAR(sent(ring, r) / (2 * once), 1, 0.01 + 0.01 * N / 16) << N;
    run.strategy.sharded_optimizer = true;
    const auto sharded = simulated(run, N);
    EXPECT_NEAR(sent(sharded, 0) / (2 * once), 1, 0.02) << N;
    run.strategy = {};
    run.strategy.name = "parameter-server", run.strategy.servers = 1;
    const auto server = simulated(run, N + 1);
    const auto& at_server = server.back().traffic;
    EXPECT_NEAR(static_cast<double>(at_server.bytes_sent + at_server.bytes_received) / run.steps / (2 * N * M), 1, 0.01) << N;
    EXPECT_NEAR(sent(server, 0) / M, 1, 0.02);  // the sums of an update are 1.6 % of a model this small
    run.strategy.servers = 2;
    const auto two = simulated(run, N + 2);
    for (const int s : {N, N + 1}) {
      const auto& traffic = two[static_cast<size_t>(s)].traffic;
      EXPECT_NEAR(static_cast<double>(traffic.bytes_sent + traffic.bytes_received) / run.steps / (N * M), 1, 0.02) << N;
    }
  }
}

TEST(SynchronousBytes, AssumedSparseGrowsWithTheRanks) {
  // Cavdar et al.: R = V + T rows on each rank, gathered: N R (4 D + 8) bytes against V D 4.
  TrainingRun run;
  run.backend = "cpu:f32", run.steps = 1;
  run.strategy.embedding_gradients = EmbeddingGradients::assumed_sparse, run.strategy.algorithm = Algorithm::ring;
  int64_t tokens = 0;
  const Batch batch = random_batch(run.seed, 0, run.sentences);
  tokens = batch.source.count() + batch.target.count();
  for (const int N : {2, 4, 8}) {
    const auto sparse = simulated(run, N);
    TrainingRun dense = run;
    dense.strategy.embedding_gradients = EmbeddingGradients::dense;
    const auto whole = simulated(dense, N);
    const double rows = static_cast<double>(N * 400 + tokens), gathered = rows * (4 * 16 + 8);
    EXPECT_NE(sparse[0].embeddings.find(fmt::format("{} rows gathered", N * 400 + tokens)), std::string::npos) << sparse[0].embeddings;
    double sent_sparse = 0, sent_dense = 0;
    for (int r = 0; r < N; ++r) {
      sent_sparse += static_cast<double>(sparse[static_cast<size_t>(r)].traffic.bytes_sent);
      sent_dense += static_cast<double>(whole[static_cast<size_t>(r)].traffic.bytes_sent);
    }
    const double expected = (N - 1) * gathered - N * 2.0 * (N - 1) / N * 400 * 16 * 4;
    EXPECT_NEAR((sent_sparse - sent_dense) / expected, 1, 0.03) << N;
  }
}

TEST(SynchronousErrors, ALossThatIsNotFiniteStopsEveryRankByItself) {
  TrainingRun run;
  run.backend = "cpu:f32", run.rate = 1e30, run.steps = 20;
  std::vector<std::string> errors(4);
  simulate(cluster(4), [&](World& world) {
    try {
      train_together(run, world);
    } catch (const Error& e) {  // not passed on: every rank must find it out, not hear of it
      errors[static_cast<size_t>(world.comm->rank())] = e.what();
    }
  });
  const auto update = [](const std::string& error) { return error.substr(error.find("(update"), 11); };
  for (const std::string& error : errors) {
    EXPECT_NE(error.find("is not finite in epoch 1, batch"), std::string::npos) << error;
    EXPECT_EQ(error.find("failed"), std::string::npos) << "this rank only heard of it: " << error;
    EXPECT_EQ(update(error), update(errors[0]));
  }
}

TEST(SynchronousErrors, ImpossibleOptionsAreNamed) {
  StrategyOptions o;
  o.name = "parameter-server", o.servers = 4;
  const auto backend = make_backend("reference", 1);
  ParameterStore store(*backend);
  store.allocate(1, true);
  EXPECT_THROW(make_strategy(o, store, {}, 0, 4), ConfigError);
  o.servers = 8, o.server_placement = ServerPlacement::shared;
  EXPECT_THROW(make_strategy(o, store, {}, 0, 4), ConfigError);
  o.servers = 0, o.sharded_optimizer = true;
  EXPECT_THROW(make_strategy(o, store, {}, 0, 4), ConfigError);
}

TEST(PlanBatch, ScalesBatchAndRate) {
  StrategyOptions o;
  EXPECT_EQ(plan_batch(o, 4000, 8).global_tokens, 4000);
  EXPECT_DOUBLE_EQ(plan_batch(o, 4000, 8).rate_factor, 1);
  o.batch = BatchScope::per_worker, o.rate_scaling = RateScaling::linear;
  EXPECT_EQ(plan_batch(o, 4000, 8).global_tokens, 32000);
  EXPECT_DOUBLE_EQ(plan_batch(o, 4000, 8).rate_factor, 8);
  o.rate_scaling = RateScaling::sqrt;
  EXPECT_DOUBLE_EQ(plan_batch(o, 4000, 4).rate_factor, 2);
  o.batch = BatchScope::global, o.base_batch_tokens = 1000;
  EXPECT_DOUBLE_EQ(plan_batch(o, 4000, 4).rate_factor, 2);
}

// Buckets cover the flat buffer once, from its end to its beginning; the tracker calls in this order whatever the order of completion.
TEST(Buckets, CoverEverythingOnceFromTheEnd) {
  const auto backend = make_backend("reference", 1);
  for (const int64_t elements : {16, 100, 1000, 100000}) {
    ParameterStore store(*backend);
    store.add("table", {50, 8}, {});
    store.add("a", {7}, {});
    Parameter& b = store.add("b", {40, 30}, {});
    store.add("c", {3}, {});
    store.add("d", {9, 9}, {});
    store.allocate(1, true);
    for (const bool whole : {false, true}) {
      std::vector<const Parameter*> tables;
      if (whole) tables.push_back(&store.all()[0]);
      const auto buckets = make_buckets(store, elements, tables);
      int64_t end = store.values().count();
      for (const Bucket& bucket : buckets) {
        EXPECT_EQ(bucket.range.end, end);
        EXPECT_LT(bucket.range.begin, bucket.range.end);
        EXPECT_EQ(bucket.range.begin % 16, 0);
        if (!bucket.table) {
          EXPECT_LE(bucket.range.count(), std::max<int64_t>(elements, 16) + 15);
        }
        end = bucket.range.begin;
      }
      EXPECT_EQ(end, 0);
      EXPECT_EQ(buckets.back().table != nullptr, whole);

      std::vector<size_t> called;
      BucketTracker tracker(store, buckets, [&](size_t bucket) { called.push_back(bucket); });
      tracker.restart();
      tracker.complete(b);
      for (const size_t i : called) EXPECT_GE(buckets[i].range.begin, b.offset);
      for (Parameter& p : store.all()) tracker.complete(p);
      ASSERT_EQ(called.size(), buckets.size());
      for (size_t i = 0; i < called.size(); ++i) EXPECT_EQ(called[i], i);
    }
  }
}

TEST(Share, CutsABatchIntoEvenPartsOfWholeSentences) {
  const Batch batch = random_batch(5, 0, 64);
  for (const int N : {1, 2, 3, 8, 100}) {
    std::vector<int64_t> ids;
    int64_t most = 0;
    for (int k = 0; k < N; ++k) {
      const Batch part = slice_for_rank(batch, k, N, 1, 2);
      ids.insert(ids.end(), part.sample_ids.begin(), part.sample_ids.end());
      EXPECT_EQ(part.source.sentences(), part.target.sentences());
      most = std::max(most, part.source.count() + 2 * part.target.count());
    }
    EXPECT_EQ(ids, batch.sample_ids) << N;
    const double even = static_cast<double>(batch.source.count() + 2 * batch.target.count()) / N;
    EXPECT_LE(static_cast<double>(most), even + 30) << N;  // one sentence at most: 10 + 2 * 10
  }
}

}  // namespace
}  // namespace starling
