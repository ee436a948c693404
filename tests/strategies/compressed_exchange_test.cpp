// The exchange of compressed vectors: sums, their bits on every rank, bytes, what is kept for later, and when it goes dense.
#include "strategies/compressed_exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "backend/meta.h"
#include "base/random.h"
#include "sim/simulate.h"
#include "tests/elements.h"
#include "tests/strategies/plain_worker.h"

namespace starling {
namespace {

using Values = std::vector<double>;

// A worker that only exchanges.
class Exchanger : public PlainWorker {
 public:
  Exchanger(World& world, const std::string& backend) : PlainWorker(world, 0, 1, backend) {}
  Exchanger(World& world, std::unique_ptr<Backend> backend) : PlainWorker(world, 0, 1, std::move(backend)) {}
  Memory& memory() { return parameters().backend().memory(); }
};

const std::vector<NamedRange> kTensors = {{"embedding", {0, 20000}}, {"bias", {20000, 20100}}, {"weight", {20112, 29000}}};
constexpr int64_t kFlat = 29008;

CompressionOptions options(Compressor compressor = Compressor::top_k, SentValues values = SentValues::f32, double keep = 0.02) {
  CompressionOptions o;
  o.compressor = compressor, o.values = values, o.keep = keep;
  return o;
}

Tensor random_tensor(int rank, int step, DType type, Memory& memory = host_memory()) {
  Random random(11, static_cast<uint64_t>(100 * step + rank));
  Values v(kFlat, 0.0);
  for (const NamedRange& t : kTensors)
    for (int64_t i = t.range.begin; i < t.range.end; ++i) v[static_cast<size_t>(i)] = random.normal();
  const Tensor t({kFlat}, type, memory);
  t.from_doubles(v);
  return t;
}

Values sum_of_vectors(int N, int step) {
  Values sum(kFlat);
  for (int r = 0; r < N; ++r) {
    const Values v = random_tensor(r, step, DType::f64).to_doubles();
    for (size_t i = 0; i < v.size(); ++i) sum[i] += v[i];
  }
  return sum;
}

void on_ranks(int N, const std::function<void(World&)>& body, bool timing_only = false, SimulationResult* result = nullptr) {
  Scenario s;
  s.ranks = N, s.network.preset = "10gbe", s.timing_only = timing_only;
  const SimulationResult r = simulate(s, body);
  if (result) *result = r;
}

struct Ends {
  Values x, residual, sent;
  double bytes = 0, dense = 0;
  int64_t traffic = 0;
};

// One exchange of random vectors.
std::vector<Ends> exchange(int N, const CompressionOptions& o, const std::string& backend, LocalPart local = LocalPart::none) {
  std::vector<Ends> ends(static_cast<size_t>(N));
  on_ranks(N, [&](World& world) {
    world.comm->set_algorithm(Algorithm::ring);
    Exchanger w(world, backend);
    const DType type = w.parameters().backend().parameter();
    CompressedExchange e(o, kTensors, type, N);
    const Tensor x = random_tensor(w.comm().rank(), 0, type, w.memory()), residual({kFlat}, type, w.memory()), sent = residual.clone();
    e.start(w, {x, residual, {}, o.keep, local, 2, true});
    EXPECT_EQ(e.bad_element(), "");
    e.finish(w, 0.5);
    e.add_sent(w, 1, sent);
    ends[static_cast<size_t>(w.comm().rank())] = {x.to_doubles(), residual.to_doubles(), sent.to_doubles(),
                                                  e.bytes(),      e.dense_bytes(),       w.comm().traffic().bytes_sent};
  });
  return ends;
}

TEST(CompressedExchange, AddsUpWhatEveryRankHasSent) {
  for (const std::string backend : {"reference", "cpu:f32"})
    for (const CompressionOptions& o :
         {options(), options(Compressor::top_k, SentValues::bf16), options(Compressor::top_k, SentValues::two_bit),
          options(Compressor::ternary), options(Compressor::four_bit)})
      for (const SelectFrom select : {SelectFrom::chunk, SelectFrom::tensor})
        for (const int N : {2, 3, 5}) {
          CompressionOptions selected = o;
          if (o.values != SentValues::two_bit) selected.select = select;
          const auto ends = exchange(N, selected, backend);
          for (const Ends& rank : ends) EXPECT_EQ(rank.x, ends[0].x) << "ranks differ";
          int64_t unsent = 0;
          for (size_t i = 0; i < kFlat; ++i) {
            double sum = 0;
            for (int r = 0; r < N; ++r) {
              const Ends& rank = ends[static_cast<size_t>(r)];
              sum += 0.5 * rank.sent[i];
              unsent += rank.residual[i] != 0;
            }
            ASSERT_NEAR(ends[0].x[i], sum, backend == "reference" ? 1e-14 : 1e-5);
          }
          EXPECT_GT(unsent, 1000) << "nothing was compressed";
          const DType type = backend == "reference" ? DType::f64 : DType::f32;
          for (int r = 0; r < N; ++r) {
            const Values g = random_tensor(r, 0, type).to_doubles();
            const Ends& rank = ends[static_cast<size_t>(r)];
            for (size_t i = 0; i < kFlat; ++i) ASSERT_EQ(rank.sent[i] + rank.residual[i], g[i]);
            for (size_t i = 20000; i < 20100; ++i) ASSERT_EQ(rank.residual[i], 0) << "a small tensor was not sent whole";
          }
        }
}

TEST(CompressedExchange, SendsTheBytesOfItsClosedForm) {
  for (const CompressionOptions& o :
       {options(), options(Compressor::top_k, SentValues::bf16, 0.05), options(Compressor::four_bit), options(Compressor::none)})
    for (const int N : {2, 4}) {
      const auto ends = exchange(N, o, "cpu:f32");
      for (const Ends& rank : ends)
        EXPECT_NEAR(static_cast<double>(rank.traffic), rank.bytes, 64.0 * N);  // parts are cut at multiples of 16
      EXPECT_NEAR(ends[0].dense, 2.0 * (N - 1) / N * 4 * 28988, 1e-6);
      if (o.compressor != Compressor::none) {
        EXPECT_LT(ends[0].bytes, 0.5 * ends[0].dense);
      }
    }
}

TEST(CompressedExchange, GoesWholeWhereCodesWouldBeMoreBytes) {
  for (const double keep : {0.1, 0.2, 0.4, 1.0})
    for (const int N : {1, 2, 4}) {
      const auto ends = exchange(N, options(Compressor::top_k, SentValues::f32, keep), "reference", LocalPart::sum);
      // 1.5 + 8 bytes an entry, gathered, against 8 an element, reduced
      const bool whole = N == 1 || N * 9.5 * keep >= 2 * 8;
      const bool nothing_left = std::all_of(ends[0].residual.begin(), ends[0].residual.end(), [](double e) { return e == 0; });
      EXPECT_EQ(nothing_left, whole) << keep << " " << N;
      if (!whole) continue;
      const Values sum = sum_of_vectors(N, 0);
      for (size_t i = 0; i < kFlat; ++i) ASSERT_NEAR(ends[0].x[i], 0.5 * sum[i], 1e-12);
    }
}

TEST(CompressedExchange, LeavesTheLocalPart) {
  const auto ends = exchange(2, options(), "reference", LocalPart::partial);
  for (int r = 0; r < 2; ++r) {
    const Values g = random_tensor(r, 0, DType::f64).to_doubles();
    for (size_t i = 0; i < 20000; ++i) {
      const double s = ends[static_cast<size_t>(r)].sent[i], sum = ends[0].sent[i] + ends[1].sent[i];
      ASSERT_NEAR(ends[static_cast<size_t>(r)].x[i], 0.5 * sum + (s != 0 ? g[i] - s : 2 * g[i]), 1e-12);
    }
    for (size_t i = 20000; i < 20100; ++i) ASSERT_NEAR(ends[0].x[i], 0.5 * (ends[0].sent[i] + ends[1].sent[i]), 1e-12);
  }
}

// Over many steps: what all have sent is what all had, less what is left; with a warm-up.
TEST(CompressedExchange, LosesNothingOverManySteps) {
  const int N = 3, steps = 25;
  CompressionOptions o = options(Compressor::top_k, SentValues::bf16);
  o.keep_warmup = 20;
  on_ranks(N, [&](World& world) {
    Exchanger w(world, "reference");
    CompressedExchange e(o, kTensors, DType::f64, N);
    const Tensor residual({kFlat}, DType::f64, w.memory());
    Values sent(kFlat), given(kFlat);
    std::vector<double> bytes;
    for (int t = 0; t < steps; ++t) {
      const Tensor x = random_tensor(w.comm().rank(), t, DType::f64, w.memory());
      const Values all = sum_of_vectors(N, t);
      for (size_t i = 0; i < kFlat; ++i) given[i] += all[i];
      e.start(w, {x, residual, {}, keep_at(o, t)});
      EXPECT_EQ(e.bad_element(), "");
      e.finish(w);
      const Values got = x.to_doubles();
      for (size_t i = 0; i < kFlat; ++i) sent[i] += got[i];
      bytes.push_back(e.bytes());
    }
    const Tensor left({kFlat}, DType::f64);
    left.from_doubles(residual.to_doubles());
    w.comm().all_reduce(left).wait();
    for (size_t i = 0; i < kFlat; ++i) ASSERT_NEAR(sent[i] + left.data<double>()[i], given[i], 1e-10);
    EXPECT_LT(bytes.back(), 0.1 * bytes[0]);
    for (size_t t = 1; t < bytes.size(); ++t) EXPECT_LE(bytes[t], bytes[t - 1]);
  });
}

// What was not sent goes with what is sent whole, faded too.
TEST(CompressedExchange, WholeTensorsTakeTheResidualAlong) {
  CompressionOptions o = options();
  o.residual_decay = 0.25;
  on_ranks(2, [&](World& world) {
    Exchanger w(world, "reference");
    CompressedExchange e(o, kTensors, DType::f64, 2);
    const Tensor residual({kFlat}, DType::f64, w.memory()), first = random_tensor(w.comm().rank(), 0, DType::f64, w.memory());
    e.start(w, {first, residual, {}, 0.02});
    EXPECT_EQ(e.bad_element(), "");
    e.finish(w);
    const Tensor left({kFlat}, DType::f64), second = random_tensor(w.comm().rank(), 1, DType::f64, w.memory());
    left.from_doubles(residual.to_doubles());
    w.comm().all_reduce(left).wait();
    e.start(w, {second, residual, {}, 1});
    EXPECT_EQ(e.bad_element(), "");
    e.finish(w);
    const Values sum = sum_of_vectors(2, 1), got = second.to_doubles(), rest = residual.to_doubles();
    for (size_t i = 0; i < kFlat; ++i) {
      ASSERT_NEAR(got[i], sum[i] + 0.25 * left.data<double>()[i], 1e-12);
      ASSERT_EQ(rest[i], 0);
    }
  });
}

TEST(CompressedExchange, KeepWarmsUp) {
  CompressionOptions o = options();
  o.keep = 0.01, o.keep_warmup = 1000;
  EXPECT_NEAR(1 - keep_at(o, 10), 0.401, 1e-3);
  EXPECT_NEAR(1 - keep_at(o, 100), 0.905, 1e-3);
  EXPECT_NEAR(1 - keep_at(o, 500), 0.980, 1e-3);
  EXPECT_DOUBLE_EQ(keep_at(o, 5000), 0.01);
  o.keep_warmup = 0;
  EXPECT_DOUBLE_EQ(keep_at(o, 0), 0.01);
}

TEST(CompressedExchange, NamesTheTensorThatIsNotFinite) {
  for (const auto& [at, name] : {std::pair{20050, "element 50 of bias"}, std::pair{28000, "element 7888 of weight"}})
    on_ranks(2, [&, at = at, name = name](World& world) {
      Exchanger w(world, "cpu:f32");
      CompressedExchange e(options(), kTensors, DType::f32, 2);
      const Tensor x = random_tensor(0, 0, DType::f32, w.memory()), residual({kFlat}, DType::f32, w.memory());
      if (w.comm().rank() == 1) set_element(x, at, NAN);
      e.start(w, {x, residual, {}, 0.01});
      EXPECT_EQ(e.bad_element(), w.comm().rank() == 1 ? name : "");
    });
}

// Compressing takes virtual time, and a run that is only timed takes the same.
TEST(CompressedExchange, IsChargedInVirtualTime) {
  SimulationResult real, timed;
  for (const bool timing_only : {false, true})
    on_ranks(
        4,
        [&](World& world) {
          Exchanger w(world, timing_only ? std::make_unique<MetaBackend>(DType::f32, DType::f32) : make_backend("cpu:f32", 1));
          CompressedExchange e(options(Compressor::top_k, SentValues::bf16), kTensors, DType::f32, 4);
          const Tensor x = timing_only ? Tensor({kFlat}, DType::f32, w.memory()) : random_tensor(0, 0, DType::f32, w.memory());
          const Tensor residual({kFlat}, DType::f32, w.memory());
          e.start(w, {x, residual, {}, 0.02});
          EXPECT_EQ(e.bad_element(), "");
          e.finish(w);
        },
        timing_only, timing_only ? &timed : &real);
  EXPECT_EQ(timed.virtual_ns, real.virtual_ns);
  EXPECT_EQ(timed.ranks[0].traffic.bytes_sent, real.ranks[0].traffic.bytes_sent);
  EXPECT_GT(real.ranks[0].computed_ns, 16 * 28988 / 10);  // 16 bytes an element at 10 GB/s
}

}  // namespace
}  // namespace starling
