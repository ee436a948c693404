// Work that threads take in chunks: nothing is left out, the work of a thread that is held up is done by others, and results have the same
// bits whoever computed them.
#include "backend/cpu/chunks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "backend/cpu/dispatch.h"
#include "base/random.h"
#include "base/task_progress.h"

namespace starling {
namespace {

TEST(Chunks, CoverEverythingOnceInNearlyEqualParts) {
  for (const int64_t total : {0, 1, 7, 8, 9, 100, 1003, 4096})
    for (const int64_t unit : {1, 8, 64})
      for (const int64_t most : {1, 2, 8, 31}) {
        const Chunks chunks(total, unit, most);
        ASSERT_LE(chunks.count, most);
        int64_t end = 0, least = total, largest = 0;
        for (int64_t c = 0; c < chunks.count; ++c) {
          EXPECT_EQ(chunks.begin(c), end);
          EXPECT_EQ(chunks.begin(c) % unit, 0);
          end += chunks.size(c);
          if (c + 1 < chunks.count) least = std::min(least, chunks.size(c)), largest = std::max(largest, chunks.size(c));
        }
        EXPECT_EQ(end, total);
        EXPECT_LE(largest - std::min(least, largest), unit) << total << " in " << most << " parts of " << unit;
      }
}

TEST(Chunks, EachIsTakenOnce) {
  for (const int threads : {1, 2, 3, 8})
    for (const int64_t count : {0, 1, 2, 5, 64, 1000}) {
      std::vector<std::atomic<int>> calls(static_cast<size_t>(count));
      take_chunks(threads, count, [&](int64_t c, int thread) {
        ASSERT_LT(thread, threads);
        ++calls[static_cast<size_t>(c)];
      });
      for (const auto& n : calls) EXPECT_EQ(n, 1);
    }
}

// The first chunk is computed until all the others have been: with one fixed range per thread its thread would have had half of them.
TEST(Chunks, AreTakenFromAThreadThatIsHeldUp) {
  if (omp_get_thread_limit() < 2) GTEST_SKIP() << "one thread is allowed";
  std::atomic<int> done = 0;
  bool all = false;
  take_chunks(2, 16, [&](int64_t c, int) {
    const double deadline = steady_seconds() + 30;
    while (c == 0 && done < 15 && steady_seconds() < deadline) usleep(1000);
    if (c == 0) all = done == 15;
    ++done;
  });
  EXPECT_TRUE(all);
  EXPECT_EQ(done, 16);
}

TEST(Chunks, AnExceptionIsThrownOnceTheThreadsHaveEnded) {
  for (const int threads : {1, 4})
    EXPECT_THAT(
        [&] {
          take_chunks(threads, 32, [](int64_t c, int) {
            if (c % 5 == 3) throw std::runtime_error("no memory");
          });
        },
        testing::ThrowsMessage<std::runtime_error>("no memory"));
}

class ChunkedOps : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (GetParam() == std::string("cpu:bf16") && !cpu_has_bf16()) GTEST_SKIP() << "no bf16";
  }
  Tensor filled(const Shape& shape, DType type) {
    std::vector<double> values(static_cast<size_t>(shape.count()));
    for (double& v : values) v = random_.normal();
    Tensor t(shape, type);
    t.from_doubles(values);
    return t;
  }
  Random random_{5, 6};
};

// Enough rows for several chunks, not a multiple of anything.
TEST_P(ChunkedOps, ProductsAreThoseOfOneThread) {
  const auto one = make_backend(GetParam(), 1), two = make_backend(GetParam(), 2), three = make_backend(GetParam(), 3);
  const DType type = one->activation();
  for (const auto& [rows, in, out] : {std::tuple<int64_t, int64_t, int64_t>{1003, 256, 1024}, {1600, 1024, 256}, {807, 100, 70}}) {
    const Tensor x = filled({rows, in}, type), w = filled({in, out}, DType::f32), b = filled({out}, DType::f32),
                 before = filled({rows, out}, type);
    const auto input = x.to_doubles(), old = before.to_doubles();
    const auto product = [&](Backend& backend, const Tensor& bias, Activation activation, Write write) {
      const Tensor y({rows, out}, type);
      y.copy_from(before);
      backend.linear(x, *backend.pack(w, false, nullptr), bias, y, activation, write);
      return y.to_doubles();
    };
    for (const auto& [bias, activation, write] : {std::tuple{b, Activation::relu, Write::overwrite},
                                                  {Tensor(), Activation::none, Write::overwrite},
                                                  {Tensor(), Activation::none, Write::accumulate}}) {
      const auto expected = product(*one, bias, activation, write);
      for (const int64_t r : {int64_t{0}, rows / 2, rows - 1}) {
        double sum = bias ? b.data<float>()[r % out] : write == Write::accumulate ? old[static_cast<size_t>(r * out + r % out)] : 0.0;
        for (int64_t i = 0; i < in; ++i)
          sum += input[static_cast<size_t>(r * in + i)] * static_cast<double>(w.data<float>()[i * out + r % out]);
        if (activation == Activation::relu) sum = std::max(sum, 0.0);
        EXPECT_NEAR(expected[static_cast<size_t>(r * out + r % out)], sum, type == DType::f32 ? 1e-3 : 0.5) << "row " << r;
      }
      for (Backend* const backend : {two.get(), three.get()}) {
        const auto values = product(*backend, bias, activation, write);
        double worst = 0;  // a library's AMX kernels split long sums differently, which may change a result's rounding to bf16
        for (size_t i = 0; i < values.size(); ++i) worst = std::max(worst, std::abs(values[i] - expected[i]) / (1 + std::abs(expected[i])));
        EXPECT_LE(worst, type == DType::bf16 && multiplies_bf16_by_tiles() ? 0.01 : 0.0) << rows << " times [" << in << ", " << out << "]";
      }
    }
  }
}

// Of a layer's weights and bias, with more inputs and outputs than one piece of work has.
TEST_P(ChunkedOps, GradientsAreThoseOfOneThread) {
  if (multiplies_bf16_by_tiles() || GetParam() != std::string("cpu:bf16")) GTEST_SKIP() << "a library's sums";
  const auto one = make_backend(GetParam(), 1), two = make_backend(GetParam(), 2), three = make_backend(GetParam(), 3);
  for (const auto& [rows, in, out] : {std::tuple<int64_t, int64_t, int64_t>{301, 600, 70}, {130, 33, 1100}, {520, 300, 520}}) {
    const Tensor x = filled({rows, in}, one->activation()), dy = filled({rows, out}, one->activation());
    const auto gradients = [&](Backend& backend) {
      const Tensor dw({in, out}, DType::f32), db({out}, DType::f32), alone({in, out}, DType::f32);
      backend.layer_gradients(x, dy, dw, Write::overwrite, db, Write::overwrite);
      backend.weight_gradient(x, dy, alone, Write::overwrite);
      EXPECT_TRUE(alone.download() == dw.download());
      return std::pair(dw.download(), db.download());
    };
    const auto expected = gradients(*one);
    EXPECT_TRUE(gradients(*two) == expected) << in << " to " << out;
    EXPECT_TRUE(gradients(*three) == expected) << in << " to " << out;
  }
}

// Layer norm's parameter gradients are sums over rows, so the bits depend on how rows are put together.
TEST_P(ChunkedOps, HaveTheSameBitsBesideOtherThreads) {
  const auto backend = make_backend(GetParam(), 2);
  const DType type = backend->activation();
  constexpr int64_t rows = 1003, width = 256;
  const Tensor x = filled({rows, width}, type), dy = filled({rows, width}, type), gamma = filled({width}, DType::f32),
               statistics({rows, 2}, DType::f32), y({rows, width}, type), dx({rows, width}, type), dgamma({width}, DType::f32),
               dbeta({width}, DType::f32);
  backend->layer_norm(x, gamma, gamma, 1e-6, y, statistics);
  const auto run = [&] {
    backend->layer_norm_backward(dy, x, gamma, statistics, dx, Write::overwrite, dgamma, dbeta, Write::overwrite);
    return std::pair(dgamma.download(), dbeta.download());
  };
  const auto expected = run();
  const auto gradients = dy.to_doubles(), sums = dbeta.to_doubles();
  for (int64_t c = 0; c < width; ++c) {
    double sum = 0;
    for (int64_t r = 0; r < rows; ++r) sum += gradients[static_cast<size_t>(r * width + c)];
    EXPECT_NEAR(sums[static_cast<size_t>(c)], sum, 1e-3);
  }
  std::atomic<bool> stop = false;
  std::vector<std::thread> others;
  for (int i = 0; i < 2; ++i)
    others.emplace_back([&] {
      while (!stop) {
      }
    });
  bool equal = true;
  for (int i = 0; i < 50; ++i) equal = equal && run() == expected;
  stop = true;
  for (std::thread& t : others) t.join();
  EXPECT_TRUE(equal);
}

INSTANTIATE_TEST_SUITE_P(Cpu, ChunkedOps, testing::Values("cpu:f32", "cpu:bf16"),
                         [](const testing::TestParamInfo<const char*>& p) { return std::string(p.param).substr(4); });

}  // namespace
}  // namespace starling
