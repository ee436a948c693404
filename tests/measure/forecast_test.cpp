// Layouts in the simulator: the bubble against its closed form, memory against the model whole, the order of a plan.
#include "measure/forecast.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "backend/meta.h"
#include "measure/layouts.h"
#include "replica/replica.h"
#include "sim/simulate.h"
#include "strategies/factory.h"

namespace starling {
namespace {

// Messages and pieces of computing cost nothing but their operations.
Scenario free_network(int ranks) {
  Scenario s;
  s.ranks = ranks;
  s.network.inter = {0, 1e6, 0}, s.network.intra = {0, 1e6, 0};
  s.compute = {100, 100, 0, 0, 0};
  return s;
}

// Eight encoder layers of 12 D^2 and six decoder layers of 16 D^2 make equal stages: 96 D^2 on either side; the output is small beside
// them.
LayoutRun even_run() {
  LayoutRun run;
  run.train.model = model_preset("transformer-tiny");
  run.train.model.width = 512, run.train.model.feed_forward = 2048, run.train.model.heads = 8;
  run.train.model.encoder_layers = 8, run.train.model.decoder_layers = 6, run.train.model.tied_embeddings = TiedEmbeddings::none;
  run.train.vocabulary = 64, run.train.batch_tokens = 128000, run.train.precision = "f32", run.train.mean_length = 8, run.train.even = true;
  run.updates = 2, run.micro_tokens = run.train.batch_tokens;
  run.strategy.embedding_gradients = EmbeddingGradients::dense;
  return run;
}

TEST(Forecast, TheBubbleIsThatOfTheClosedForm) {
  for (const int stages : {2, 4})
    for (const int64_t passes : {1, 4, 8, 16}) {
      LayoutRun run = even_run();
      run.parallel.pipeline = stages, run.parallel.micro_batches = passes;
      const LayoutResult r = forecast(run, free_network(stages));
      EXPECT_GE(r.passes, passes);
      const double expected = (stages - 1) / (r.passes + stages - 1);
      EXPECT_DOUBLE_EQ(r.even_bubble(), expected);
      EXPECT_NEAR(r.bubble / expected, 1, 0.05) << stages << " stages, " << r.passes << " passes";
    }
}

// Parameters, gradients and optimizer lie on one stage each; activations are those of the stages' own layers, of as many passes as the
// schedule has under way.
TEST(Forecast, StagesShareTheMemoryOfTheModel) {
  LayoutRun run = even_run();
  const LayoutResult whole = forecast(run, free_network(1));
  ASSERT_EQ(whole.memory.size(), 1u);
  for (const int stages : {2, 4}) {
    run.parallel.pipeline = stages, run.parallel.micro_batches = 8;
    const LayoutResult r = forecast(run, free_network(2 * stages));
    ASSERT_EQ(r.memory.size(), static_cast<size_t>(2 * stages));
    EXPECT_EQ(r.replicas, 2);
    RankMemory sum;
    for (int s = 0; s < stages; ++s) {
      const RankMemory& m = r.memory[static_cast<size_t>(s)];
      EXPECT_NEAR(m.parameters / whole.memory[0].parameters * stages, 1, 0.1) << s;
      EXPECT_EQ(m.gradients, m.parameters);
      EXPECT_EQ(m.optimizer, 2 * m.parameters);
      EXPECT_EQ(m.copies, 0);
      sum.parameters += m.parameters, sum.packed += m.packed;
    }
    EXPECT_EQ(sum.parameters, whole.memory[0].parameters);
    EXPECT_EQ(sum.packed, whole.memory[0].packed);
    // A replica has half the batch, in 8 pieces of 1/16: the first stage keeps `stages` of them, of 1/stages of the layers.
    EXPECT_NEAR(r.memory[0].activations / whole.memory[0].activations, r.passes == 8 ? 1.0 / 16 : 0.5 / r.passes, 0.35 / 16) << stages;
    EXPECT_LT(r.memory[static_cast<size_t>(stages) - 1].activations, r.memory[0].activations);
  }
}

// The gradient of a whole replica is all-reduced among the ranks of each stage; what goes between stages is the boundary there and back.
TEST(Forecast, BytesAreThoseOfTheClosedForms) {
  LayoutRun run = even_run();
  run.parallel.pipeline = 2, run.parallel.micro_batches = 4;
  const LayoutResult r = forecast(run, free_network(4));
  double boundaries = 0;
  for (int rank = 0; rank < 4; ++rank) {
    const RankBytes& b = r.bytes[static_cast<size_t>(rank)];
    EXPECT_NEAR(b.strategy, r.memory[static_cast<size_t>(rank)].gradients, 1000) << rank;  // 2 (N - 1) / N of it with N = 2, and totals
    EXPECT_EQ(b.shared, 0);
    boundaries += b.boundaries;
  }
  // The encoder's output, 4 bytes an element, and its gradient, of about as many source as target tokens.
  EXPECT_NEAR(boundaries / (r.tokens * 512 * 4 * 2), 1, 0.05);
}

// All but norms, and biases that follow a sum, is cut; those lie with the first shard. Activations between layers are whole on every shard.
TEST(Forecast, ShardsShareTheMemoryOfTheModel) {
  LayoutRun run = even_run();
  run.micro_tokens = 8000;
  const RankMemory whole = forecast(run, free_network(1)).memory[0];
  for (const auto& [stages, shards] : {std::pair(1, 2), {1, 4}, {2, 4}}) {
    run.parallel.pipeline = stages, run.parallel.tensor = shards;
    const LayoutResult r = forecast(run, free_network(stages * shards));
    EXPECT_EQ(r.shards, shards);
    double parameters = 0;
    for (const RankMemory& m : r.memory) {
      EXPECT_NEAR(m.parameters / whole.parameters * stages * shards, 1, 0.1);
      EXPECT_EQ(m.optimizer, 2 * m.parameters);
      parameters += m.parameters;
    }
    EXPECT_EQ(parameters, whole.parameters);
    EXPECT_GT(r.memory[1].copies, 0);
    EXPECT_LT(r.memory[1].copies, 0.01 * whole.parameters);
  }
}

// Where messages take no time, shards compute a layer in parts of its time; only attention's softmax and the like are not counted at all.
TEST(Forecast, ShardsShareTheTimeOfTheModel) {
  LayoutRun run = even_run();
  run.train.batch_tokens = run.micro_tokens = 6400;
  const double whole = forecast(run, free_network(1)).seconds;
  for (const int shards : {2, 4}) {
    run.parallel.tensor = shards;
    EXPECT_NEAR(forecast(run, free_network(shards)).seconds * shards / whole, 1, 0.02) << shards;
  }
}

// Forwards each layer sums [rows, D] once for attention and once for the feed-forward layer, in the decoder three times; backwards as
// often, and the decoder's layers together the encoder's output once. Embeddings are one sum each. The loss is one sum of the gradient of
// its input, a maximum and three sums a row: no number of the vocabulary is in it.
TEST(Forecast, ShardsExchangeWhatTheClosedFormSays) {
  for (const int64_t vocabulary : {64, 32000})
    for (const int shards : {2, 4}) {
      LayoutRun run = even_run();
      run.train.vocabulary = vocabulary, run.train.batch_tokens = 6400, run.micro_tokens = 6400, run.updates = 1;
      run.parallel.tensor = shards;
      const LayoutResult r = forecast(run, free_network(shards));
      const double rows = 6400, D = 512, ring = 2.0 * (shards - 1) / shards;
      const double vectors = 2 * (2 * 8 + 3 * 6) + 1 + 2 + 1;
      for (const RankBytes& b : r.bytes) EXPECT_NEAR(b.shards, ring * 4 * rows * (vectors * D + 4), 0.02 * b.shards) << vocabulary;
    }
}

// GNMT with its output on every stage: each owns 1/P of its parameters, with copies of the rest, computes it for 1/P of the sentences, and
// sends its gradients and values once around a ring.
TEST(Forecast, AnOutputOnEveryStageIsSharedEvenly) {
  LayoutRun run = even_run();
  run.train.model = model_preset("gnmt-small");
  run.train.model.attention_place = AttentionPlace::top, run.train.model.readout = Readout::context;
  run.train.model.width = 64, run.train.model.encoder_layers = run.train.model.decoder_layers = 4;
  run.train.vocabulary = 16384, run.train.batch_tokens = 4096;
  constexpr double kTable = 16384 * 64;
  // kv, query and readout with their biases, the scores' vector, and the table; embeddings lie elsewhere.
  constexpr double kOutput = kTable + 64 * 64 + 64 + 64 * 64 + 64 + 128 * 64 + 64;
  for (const int stages : {2, 4}) {
    run.parallel.pipeline = stages, run.parallel.hybrid = false, run.parallel.micro_batches = 4, run.parallel.time_pieces = 8;
    const LayoutResult pure = forecast(run, free_network(stages));
    run.parallel.hybrid = true;
    const LayoutResult hybrid = forecast(run, free_network(stages));
    double parameters = 0;
    for (int s = 0; s < stages; ++s) {
      const RankMemory& m = hybrid.memory[static_cast<size_t>(s)];
      EXPECT_NEAR(m.copies, 2 * 4 * kOutput, 1) << s;  // values and gradients, f32
      EXPECT_NEAR(hybrid.bytes[static_cast<size_t>(s)].shared / (2 * 4 * kOutput * (stages - 1) / stages), 1, 0.01) << s;
      parameters += m.parameters;
    }
    LayoutRun whole = run;
    whole.parallel = {};
    EXPECT_NEAR(parameters / forecast(whole, free_network(1)).memory[0].parameters, 1, 0.001);  // parts are padded
    // The table's products are 3 / 4 of all operations: on one stage alone they make a step last that long, on every stage 1 / P of it.
    EXPECT_LT(hybrid.seconds, (stages == 2 ? 0.75 : 0.45) * pure.seconds) << stages;
  }
}

// Workers that exchange nothing for most of the time are as fast as so many single ones, and no faster, however dear pieces are.
TEST(Forecast, NobodyIsFasterThanAsManySingleWorkers) {
  LayoutRun run = even_run();
  run.train.batch_tokens = run.micro_tokens = 6400, run.strategy.bucket_mib = 0.5, run.updates = 8;
  const auto speed = [&](const StrategyOptions& strategy, int ranks) {
    LayoutRun timed = run;
    timed.strategy = strategy, timed.strategy.bucket_mib = 0.5;
    Scenario scenario = free_network(ranks);
    scenario.compute.piece_us = 500;
    return forecast(timed, scenario).tokens_per_second();
  };
  StrategyOptions bmuf = strategy_preset("bmuf"), together;
  bmuf.periodic.interval = 8, bmuf.synchronous_steps = 0, together.batch = BatchScope::per_worker;
  const double one = speed({}, 1);
  EXPECT_LE(speed(bmuf, 4) / one, 4.001);
  EXPECT_GT(speed(bmuf, 4) / one, 3.8);
  EXPECT_LE(speed(together, 4) / one, 4.001);
}

// Each rank makes its share of Muon's steps where the optimizer is sharded, all of them where it is not.
TEST(Forecast, RanksShareTheTimeOfMuon) {
  LayoutRun run = even_run();
  run.train.batch_tokens = run.micro_tokens = 6400;
  const auto seconds = [&](OptimizerKind optimizer, bool sharded, int ranks) {
    LayoutRun timed = run;
    timed.optimizer.optimizer = optimizer, timed.strategy.sharded_optimizer = sharded;
    return forecast(timed, free_network(ranks)).seconds;
  };
  // D^2 is a block's: 8 layers of 4 and 6 of 8 square matrices, and each layer's two of D x 4 D; at 100 GFLOP/s.
  const double D = 512, products = 4 * 6 * D * D * D * (8 * 4 + 6 * 8) + 4 * 18 * D * D * D * 2 * (8 + 6);
  for (const int ranks : {2, 4, 8}) {
    const double adam = seconds(OptimizerKind::adam, false, ranks);
    EXPECT_NEAR(seconds(OptimizerKind::muon, false, ranks) - adam, products / 100e9, 0.01 * products / 100e9);
    const double sharded = seconds(OptimizerKind::muon, true, ranks) - adam;
    EXPECT_GT(sharded, 0.99 * products / 100e9 / ranks);
    EXPECT_LT(sharded, 1.15 * products / 100e9 / ranks);
  }
}

// Real ranks on cards exchange 64 MiB at a time and those on processors 4: simulated ones as what they stand for, whoever starts them.
TEST(Forecast, BucketsAreThoseOfTheRanksThatAreSimulated) {
  const LayoutRun run = even_run();
  std::map<std::string, size_t> buckets;
  for (const std::string gpu : {"none", "h100"}) {
    Scenario cluster = free_network(2);
    cluster.timing_only = true, cluster.network.gpu = gpu;
    simulate(cluster, [&](World& world) {
      MetaBackend idle(DType::f32, DType::f32);
      const auto model = make_model(run.train.model, {run.train.vocabulary, run.train.vocabulary}, idle, std::nullopt, true);
      const Replica replica(*model, {}, world);
      if (world.comm->rank() == 0) buckets[gpu] = replica.strategy().buckets().size();
    });
  }
  const double mib = 192 * 512 * 512 * 4.0 / (1 << 20);  // 192; layers that are larger than a bucket's rest make a few more
  EXPECT_GE(buckets["none"], mib / kHostBucketMib);
  EXPECT_GE(buckets["h100"], mib / kCardBucketMib);
  EXPECT_LE(buckets["h100"], 2 * mib / kCardBucketMib);
}

// What the log says of a shared optimizer's bytes, of a model that is large enough for its one decimal to tell: gradients, parameters or
// steps, and what changes hands both ways.
TEST(Forecast, SharedMuonSendsWhatItAnnounces) {
  for (const Wire wire : {Wire::f32, Wire::bf16})
    for (const std::string strategy : {"all-reduce", "parameter-server"}) {
      LayoutRun run = even_run();
      run.optimizer.optimizer = OptimizerKind::muon, run.train.batch_tokens = run.micro_tokens = 6400;
      run.strategy.wire = wire, run.strategy.name = strategy, run.strategy.sharded_optimizer = strategy == "all-reduce";
      double sent = 0;
      for (const RankBytes& b : forecast(run, free_network(4)).bytes) sent += b.strategy / 4;

      MetaBackend idle(DType::f32, DType::f32);
      const auto model = make_model(run.train.model, {run.train.vocabulary, run.train.vocabulary}, idle, std::nullopt, true);
      const std::string told = make_strategy(run.strategy, model->parameters(), {}, 0, 4, layer_matrices(*model))->describe();
      const size_t unit = told.rfind(" MiB per update");
      ASSERT_NE(unit, std::string::npos) << told;
      EXPECT_NEAR(std::stod(told.substr(told.rfind(' ', unit - 1))), sent / (1 << 20), 0.1) << told;
    }
}

// A sharded update sends gradients during the backward pass and parameters during the next forward pass. Each takes a quarter of the
// forward pass here, so that little of either is waited for; where nothing overlaps, all of both is.
TEST(Forecast, ParametersComeBackDuringTheNextForwardPass) {
  for (const OptimizerKind optimizer : {OptimizerKind::adam, OptimizerKind::muon}) {
    LayoutRun run = even_run();
    run.optimizer.optimizer = optimizer, run.strategy.sharded_optimizer = true, run.updates = 4;
    Scenario network = free_network(4);
    const double computing = forecast(run, network).seconds;
    const double bytes = 0.75 * 4 * 96 * 2 * 512 * 512, exchange = computing / 12;
    network.network.inter.bandwidth_gbit_s = network.network.intra.bandwidth_gbit_s = 8e-9 * bytes / exchange;
    const double overlapped = forecast(run, network).seconds;
    run.strategy.overlap = false;
    const double blocking = forecast(run, network).seconds;
    EXPECT_GT(blocking, computing + 1.95 * exchange);
    EXPECT_LT(overlapped, computing + (optimizer == OptimizerKind::adam ? 0.3 : 0.6) * exchange);
  }
}

TEST(Plan, ListsHybridsOfModelsThatCanBeOnes) {
  const std::string top = "model:\n  preset: gnmt-small\n  attention-place: top\n  readout: context\nvocab:\n  size: 500\n";
  const auto hybrids = [](const std::string& text) {
    int64_t count = 0;
    for (const Layout& l : layouts_of(parse_config(text, "test"), 4)) {
      count += l.run.parallel.hybrid;
      const bool told = std::count(l.keys.begin(), l.keys.end(), ConfigLine{"parallel.hybrid", "true"}) == 1;
      EXPECT_EQ(told, l.run.parallel.hybrid);
      if (told) {
        EXPECT_GT(l.run.parallel.time_pieces, 1);
      }
    }
    return count;
  };
  EXPECT_EQ(hybrids(top), 7);  // as many as without, of 2 and of 4 stages
  EXPECT_EQ(hybrids("model:\n  preset: gnmt-small\nvocab:\n  size: 500\n"), 0);
}

TEST(Plan, PutsTheFastestThatFitsFirst) {
  const Config config = parse_config("model:\n  preset: transformer-tiny\nvocab:\n  size: 500\n", "test");
  std::vector<Layout> layouts = layouts_of(config, 4);
  size_t divided = 0;
  for (const Layout& l : layouts) divided += l.run.parallel.ranks() > 1;
  // Six strategies for 4 replicas, for 2 of two stages and for 2 of two shards; one replica of 4 stages, of 4 shards, of 2 stages of 2
  // shards.
  EXPECT_EQ(layouts.size(), 21u);
  EXPECT_EQ(divided, 15u);
  Scenario scenario = free_network(4);
  scenario.network.inter = {50, 1, 10};
  double memory = 0;
  for (int pass = 0; pass < 2; ++pass) {
    forecast_all(layouts, scenario, pass == 0 ? 1e18 : memory, [](size_t, size_t) {});
    double before = 1e300;
    bool fits = true;
    for (const Layout& l : layouts) {
      ASSERT_EQ(l.refused, "");
      const bool now = largest_memory(l.result) <= (pass == 0 ? 1e18 : memory);
      EXPECT_TRUE(fits || !now);
      if (fits && !now) before = 1e300;
      fits = now;
      EXPECT_LE(l.result.tokens_per_second(), before);
      before = l.result.tokens_per_second();
    }
    // Less than a whole model needs, so that stages come first.
    double least = 1e300;
    for (const Layout& l : layouts)
      if (l.result.stages == 1) least = std::min(least, largest_memory(l.result));
    memory = 0.999 * least;
  }
  EXPECT_GT(layouts.front().result.stages, 1);
  EXPECT_THAT(layouts.front().keys, testing::Contains(testing::Pair("parallel.pipeline", testing::AnyOf("2", "4"))));
}

}  // namespace
}  // namespace starling
