// Muon among several ranks: who owns which matrices, and the same bits whether each rank updates all of them or its own.
#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "backend/meta.h"
#include "strategies/ownership.h"
#include "tests/strategies/divided.h"
#include "tests/whole_matrix.h"

namespace starling {
namespace {

std::unique_ptr<Model> without_elements(const std::string& preset, Backend& backend) {
  return make_model(model_preset(preset), {8000, 8000}, backend, 1, true);
}

// Blocks side by side are those whose outputs are computed together: the gates of an LSTM, queries, keys and values.
TEST(LayerMatrices, AreTheLayersWeightsInTheirBlocks) {
  const auto backend = make_backend("reference");
  const auto of = [&](const std::string& preset) {
    const auto model = make_model(small_model(preset, "none", 2), {400, 400}, *backend, 1, true);
    std::map<std::string, MatrixPlace> places;
    std::map<int64_t, std::string> names;
    for (const Parameter& p : model->parameters().all()) names[p.offset] = p.name;
    for (const MatrixPlace& m : layer_matrices(*model)) places[names.at(m.offset)] = m;
    return places;
  };
  const auto gnmt = of("gnmt-small");
  std::set<std::string> plain;
  for (const auto& [name, m] : gnmt) {
    if (m.blocks == 1) plain.insert(name);
    if (name.ends_with("input.weight") || name.ends_with("recurrent.weight")) {
      EXPECT_EQ(m.blocks, 4) << name;
      EXPECT_EQ(m.columns, 4 * 16) << name;
    }
    EXPECT_EQ(name.find("embedding"), std::string::npos);
  }
  // Of 2 encoder layers, the first of which goes both ways, and 3 decoder layers; two matrices each.
  EXPECT_EQ(gnmt.size() - plain.size(), 12u);
  EXPECT_EQ(plain, (std::set<std::string>{"attention.kv.weight", "attention.query.weight"}));
  const auto transformer = of("transformer-tiny");
  std::map<int64_t, int> blocks;
  for (const auto& [name, m] : transformer) ++blocks[m.blocks];
  EXPECT_EQ(blocks, (std::map<int64_t, int>{{3, 4}, {2, 2}, {1, 2 * 3 + 2 * 5}}));  // self; keys and values; the rest
}

TEST(Ownership, KeepsMatricesWholeAndAllElse) {
  MetaBackend backend(DType::f32, DType::f32);
  for (const std::string preset : {"transformer-tiny", "gnmt-small", "transformer-base"}) {
    const auto model = without_elements(preset, backend);
    const std::vector<MatrixPlace> matrices = layer_matrices(*model);
    for (const int64_t elements : {5000, 300000})
      for (const std::vector<int>& owners : {std::vector<int>{0}, {0, 1, 2}, {4, 5}, {0, 1, 2, 3, 4, 5, 6, 7}}) {
        const auto buckets = make_buckets(model->parameters(), elements, {});
        const Ownership ownership(buckets, owners, matrices);
        std::vector<Owned> all;
        std::map<int, double> load;
        double dearest = 0, sum = 0;
        for (const int rank : owners)
          for (const Range& r : ownership.of(rank)) {
            all.push_back({r, rank});
            for (const MatrixPlace& m : matrices)
              if (r.begin <= m.offset && m.offset < r.end) {
                EXPECT_LE(m.offset + m.count(), r.end);
                load[rank] += Muon::flops(m), sum += Muon::flops(m), dearest = std::max(dearest, Muon::flops(m));
              }
          }
        std::sort(all.begin(), all.end(), [](const Owned& a, const Owned& b) { return a.range.begin < b.range.begin; });
        int64_t end = 0;
        for (const Owned& o : all) EXPECT_EQ(o.range.begin, std::exchange(end, o.range.end));
        EXPECT_EQ(end, model->parameters().values().count());
        EXPECT_DOUBLE_EQ(
            sum, std::accumulate(matrices.begin(), matrices.end(), 0.0, [](double x, const MatrixPlace& m) { return x + Muon::flops(m); }));
        // Who gets a matrix had the least; so nobody is more than that matrix above the mean.
        for (const auto& [rank, x] : load) EXPECT_LE(x, sum / static_cast<double>(owners.size()) + dearest);
        // By bucket it is the same; what is in no matrix stays with the owner of its part.
        int64_t moved = 0;
        for (size_t b = 0; b < buckets.size(); ++b) {
          const int64_t begin = buckets[b].range.begin;
          int64_t at = 0;
          for (const Owned& o : ownership.updated(b)) {
            EXPECT_EQ(o.range.begin, std::exchange(at, o.range.end));
            EXPECT_TRUE(std::any_of(all.begin(), all.end(), [&](const Owned& w) {
              return w.rank == o.rank && w.range.begin <= begin + o.range.begin && begin + o.range.end <= w.range.end;
            }));
          }
          EXPECT_EQ(at, buckets[b].range.count());
          each_change(ownership.parts(b), ownership.updated(b), [&](const Range& r, int from, int to) {
            moved += r.count();
            EXPECT_NE(from, to);
            for (int64_t i : {r.begin, r.end - 1})
              EXPECT_TRUE(std::any_of(matrices.begin(), matrices.end(),
                                      [&](const MatrixPlace& m) { return m.offset <= begin + i && begin + i < m.offset + m.count(); }));
          });
        }
        EXPECT_EQ(moved, ownership.moved());
        EXPECT_EQ(moved == 0, owners.size() == 1);
      }
  }
}

// The figures of src/strategies/README.md: the mean over the most, of Muon's work and of the optimizer's memory.
TEST(Ownership, BalancesWorkAndMemory) {
  MetaBackend backend(DType::f32, DType::f32);
  struct Least {
    double work, memory;
  };
  const std::map<std::pair<std::string, int>, Least> least{
      {{"transformer-small", 4}, {0.99, 0.96}}, {{"transformer-small", 8}, {0.99, 0.95}}, {{"transformer-small", 16}, {0.74, 0.71}},
      {{"gnmt-small", 4}, {0.98, 0.98}},        {{"gnmt-small", 8}, {0.73, 0.9}},         {{"gnmt-small", 16}, {0.43, 0.64}},
      {{"transformer-base", 4}, {0.99, 0.99}},  {{"transformer-base", 8}, {0.99, 0.95}},  {{"transformer-base", 16}, {0.99, 0.94}}};
  for (const auto& [which, bound] : least) {
    const auto& [preset, ranks] = which;
    const auto model = without_elements(preset, backend);
    const std::vector<MatrixPlace> matrices = layer_matrices(*model);
    std::vector<int> owners(static_cast<size_t>(ranks));
    std::iota(owners.begin(), owners.end(), 0);
    const std::vector<Bucket> buckets = make_buckets(model->parameters(), 1 << 20, {});
    const Ownership ownership(buckets, owners, matrices);
    OptimizerOptions options;
    options.optimizer = OptimizerKind::muon;
    double most = 0, sum = 0, most_elements = 0;
    for (const int rank : owners) {
      const Optimizer optimizer(backend, options, ownership.of(rank), matrices);
      double work = 0;
      for (const Range& r : ownership.of(rank)) work += optimizer.flops(r.begin, r.end);
      most = std::max(most, work), sum += work;
      most_elements = std::max(most_elements, static_cast<double>(total(ownership.of(rank))));
    }
    const double work = sum / ranks / most, memory = static_cast<double>(model->parameters().values().count()) / ranks / most_elements;
    printf("%s, %zu matrices, %d ranks: work %.0f %%, memory %.0f %%, changes hands %.0f %% of the gradient\n", preset.c_str(),
           matrices.size(), ranks, 100 * work, 100 * memory,
           100 * static_cast<double>(ownership.moved()) / static_cast<double>(model->parameters().values().count()));
    EXPECT_GE(work, bound.work);
    EXPECT_GE(memory, bound.memory);
  }
}

TrainingRun muon_run(const std::string& model) {
  TrainingRun run;
  run.model = model, run.backend = "cpu:f32", run.optimizer = "muon", run.steps = 6, run.tied = "none";
  // The sums of both in the same order: one collective, in the same pieces.
  run.strategy.algorithm = Algorithm::ring, run.strategy.embedding_gradients = EmbeddingGradients::dense;
  return run;
}

TEST(ShardedMuon, EqualsEveryRankUpdatingEverythingBitForBit) {
  for (const std::string model : {"transformer-tiny", "gnmt-small"})
    for (const int64_t elements : {256, 4096})  // of a bucket: a part of a matrix, and several matrices
      for (const int ranks : {2, 3, 4}) {
        TrainingRun run = muon_run(model);
        run.strategy.bucket_mib = static_cast<double>(4 * elements) / (1 << 20);
        const auto everywhere = simulated(run, ranks);
        run.strategy.sharded_optimizer = true;
        const auto sharded = simulated(run, ranks);
        size_t kept = 0;
        for (size_t r = 0; r < sharded.size(); ++r) {
          EXPECT_EQ(sharded[r].losses, everywhere[r].losses) << model << " " << elements << " " << ranks;
          EXPECT_EQ(sharded[r].norms, everywhere[r].norms) << model << " " << elements << " " << ranks;
          EXPECT_TRUE(sharded[r].values == everywhere[r].values) << model << " " << elements << " " << ranks;
          kept += sharded[r].first.size();
          EXPECT_LT(sharded[r].first.size(), everywhere[r].first.size());
        }
        EXPECT_EQ(kept, everywhere[0].first.size());
        EXPECT_NE(sharded[0].strategy.find("optimizer sharded by whole matrices"), std::string::npos) << sharded[0].strategy;
      }
}

// Steps go over the wire in bf16, of matrices that are cut by buckets too: the replicas stay equal, and learn what they learn in f32.
TEST(ShardedMuon, RoundsItsStepsAlikeOnAllRanks) {
  for (const std::string model : {"transformer-tiny", "gnmt-small"})
    for (const int64_t elements : {256, 4096}) {
      TrainingRun run = muon_run(model);
      run.strategy.bucket_mib = static_cast<double>(4 * elements) / (1 << 20), run.strategy.sharded_optimizer = true, run.steps = 10;
      const auto wide = simulated(run, 3);
      run.strategy.wire = Wire::bf16;
      const auto narrow = simulated(run, 3);
      for (const TrainingTrace& trace : narrow) EXPECT_TRUE(trace.values == narrow[0].values) << model << " " << elements;
      EXPECT_LT(worst(narrow[0].losses, wide[0].losses), 2e-2) << model << " " << elements;
      EXPECT_LT(narrow[0].traffic.bytes_sent, 0.6 * static_cast<double>(wide[0].traffic.bytes_sent)) << model << " " << elements;
    }
}

// Parameters that arrive during the next forward pass are those that are waited for at once, also where some rank has nothing to pass
// forward, and with several micro-batches.
TEST(ShardedMuon, LateParametersAreTheSame) {
  for (const std::string& model : of_cases<std::string>({"transformer-tiny", "gnmt-small"}, 1))
    for (const Wire wire : {Wire::f32, Wire::bf16})
      for (const std::string strategy : {"all-reduce", "parameter-server"})
        for (const int64_t sentences : of_cases<int64_t>({40, 3}, 1)) {
          TrainingRun run = muon_run(model);
          run.strategy.bucket_mib = 256.0 * 4 / (1 << 20), run.strategy.wire = wire, run.sentences = sentences;
          run.strategy.name = strategy, run.strategy.sharded_optimizer = strategy == "all-reduce";
          const auto late = simulated(run, 4);
          run.strategy.overlap = false;
          const auto at_once = simulated(run, 4);
          for (size_t r = 0; r < late.size(); ++r) {
            EXPECT_EQ(late[r].late, run.steps) << model << " " << strategy;
            EXPECT_EQ(at_once[r].late, 0) << model << " " << strategy;
            EXPECT_EQ(late[r].losses, at_once[r].losses) << model << " " << strategy << " " << sentences;
            EXPECT_TRUE(late[r].values == at_once[r].values) << model << " " << strategy << " " << sentences;
          }
        }
}

// The bytes that a rank sends, on average, are those that the strategy announces.
class MuonOnTheWire : public testing::TestWithParam<Wire> {};

TEST_P(MuonOnTheWire, SendsWhatItAnnounces) {
  TrainingRun run = muon_run("transformer-tiny");
  run.strategy.bucket_mib = 4096.0 * 4 / (1 << 20), run.strategy.sharded_optimizer = true, run.strategy.wire = GetParam();
  const auto bytes = [&](int steps) {
    run.steps = steps;
    double sum = 0;
    std::string text;
    for (const TrainingTrace& trace : simulated(run, 4)) sum += static_cast<double>(trace.traffic.bytes_sent) / 4, text = trace.strategy;
    return std::pair(sum, text);
  };
  const double per_update = bytes(3).first - bytes(2).first;
  EXPECT_NE(bytes(2).second.find(fmt::format("sends {:.1f} MiB per update", per_update / (1 << 20))), std::string::npos) << bytes(2).second;
}

INSTANTIATE_TEST_SUITE_P(Formats, MuonOnTheWire, testing::Values(Wire::f32, Wire::bf16),
                         [](const auto& info) { return info.param == Wire::f32 ? "f32" : "bf16"; });

// Servers add up by rank, so two workers' sums are those of any collective. The gradient's squares are added up in another order, so
// nothing is clipped here.
TEST(ServedMuon, EqualsEveryRankUpdatingEverything) {
  TrainingRun run = muon_run("transformer-tiny");
  run.strategy.bucket_mib = 4.0 * 256 / (1 << 20), run.clip = 0;
  const auto everywhere = simulated(run, 2);
  run.strategy.name = "parameter-server";
  for (const auto& [servers, placement] : {std::pair(0, ServerPlacement::own),
                                           {1, ServerPlacement::own},
                                           {3, ServerPlacement::own},
                                           {1, ServerPlacement::shared},
                                           {2, ServerPlacement::shared}}) {
    run.strategy.servers = servers, run.strategy.server_placement = placement;
    const auto served = simulated(run, placement == ServerPlacement::own ? 2 + servers : 2);
    for (size_t r = 0; r < 2; ++r) EXPECT_TRUE(served[r].values == everywhere[r].values) << servers << " servers";
    for (const TrainingTrace& trace : served) EXPECT_LT(worst(trace.losses, everywhere[0].losses), 1e-6);
  }
}

TEST(MuonInStages, IsWhatItIsInOneProcess) {
  for (const std::string model : {"transformer-tiny", "gnmt-small"}) {
    TrainingRun run = muon_run(model);
    run.backend = "reference", run.layers = 2, run.strategy = {}, run.strategy.bucket_mib = 0.004;
    const TrainingTrace one = alone(run);
    run.parallel.pipeline = 2;
    for (const auto& [replicas, sharded] : {std::pair(1, false), {2, false}, {2, true}}) {
      run.strategy.sharded_optimizer = sharded;
      for (const TrainingTrace& trace : simulated(run, 2 * replicas)) {
        EXPECT_LT(worst(trace.losses, one.losses), 1e-9) << model;
        EXPECT_LT(worst(trace.norms, one.norms), 1e-9) << model;
        EXPECT_LT(worst(trace.parameters, part_of(one.parameters, trace)), 1e-7) << model;
      }
    }
  }
}

}  // namespace
}  // namespace starling
