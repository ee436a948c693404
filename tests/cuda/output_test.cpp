// Logits beyond the case table: rows that do not fit into shared memory, no rows, ties, numbers that are not finite, any number of best
// tokens.
#include <numeric>
#include <set>

#include "tests/cuda/same_as_reference.h"

namespace starling {
namespace {

using Values = std::vector<double>;

class CudaOutput : public testing::Test {
 protected:
  Tensor tensor(const Shape& shape, const Values& values, DType type = DType::f32) {
    const Tensor t(shape, type, card->memory());
    t.from_doubles(values);
    return t;
  }
  // The best k of each row: logarithms of their probabilities, indices.
  std::pair<Values, Values> best(const Tensor& logits, int64_t k) {
    const Tensor values({logits.rows(), k}, DType::f32, card->memory()), indices({logits.rows(), k}, DType::i32, card->memory());
    const Tensor denominator({logits.rows(), 2}, DType::f64, card->memory());
    card->top_logits(logits, k, values, indices, denominator);
    Values logarithms = values.to_doubles();
    const Values sums = denominator.to_doubles();
    for (size_t i = 0; i < logarithms.size(); ++i) {
      const size_t row = i / static_cast<size_t>(k);
      logarithms[i] -= sums[2 * row] + std::log(sums[2 * row + 1]);
    }
    return {logarithms, indices.to_doubles()};
  }
  Values sampled(const Tensor& logits, const std::vector<double>& uniform) {
    const Tensor tokens({logits.rows()}, DType::i32, card->memory());
    card->sample(logits, {uniform, card->memory()}, tokens);
    return tokens.to_doubles();
  }
  std::unique_ptr<Backend> card = make_backend("cuda-emulated:f32");
};

// 58,000 logits are 227 KiB. Of a multiple of four, four go at once, and of rows of more than half of that 12,288 logits are kept in
// registers: 29,000 are a little more than half, 32,000 have the usual length, and 72,000 do not fit all the same.
TEST_F(CudaOutput, LossesOfRowsThatSharedMemoryCannotHold) {
  for (const int64_t V : {29000, 32000, 60000, 60001, 72000})
    for (const double bound : {0.0, 2.5})
      expect_same_as_reference("long rows", [=](CaseContext& c) {
        const Ints targets = c.upload<int32_t>({static_cast<int32_t>(V - 1), -1, 17});
        const Tensor logits = c.parameters({3, V}, 3), row_loss = c.empty_parameters({3, 3}), dlogits = c.empty({3, V});
        c.backend.smoothed_loss(logits, {targets, 0.1, bound, c.upload<float>({2.0f, 1.0f, -0.5f})}, row_loss, dlogits);
        c.output(row_loss), c.output(dlogits);
      });
}

TEST_F(CudaOutput, LossesOfPairsOfLongRows) {
  for (const int64_t V : {60000, 60001})
    for (const double bound : {0.0, 2.5})
      expect_same_as_reference("long pairs", [=](CaseContext& c) {
        const auto last = static_cast<int32_t>(V - 1);
        const LossRows rows{c.upload<int32_t>({last, last, -1, -1, 17, 17}), 0.1, bound, c.upload<float>({2, 2, 1, 1, -0.5f, -0.5f}), 5};
        const Tensor logits = c.parameters({6, V}, 3), row_loss = c.empty_parameters({6, 4}), dlogits = c.empty({6, V});
        c.backend.smoothed_loss(logits, rows, row_loss, dlogits);
        c.output(row_loss), c.output(dlogits);
      });
}

TEST_F(CudaOutput, LossesWithoutGradients) {
  expect_same_as_reference("no gradients", [](CaseContext& c) {
    const Ints targets = c.upload<int32_t>({5, -1, 99});
    const Tensor logits = c.parameters({3, 100}, 3), row_loss = c.empty_parameters({3, 3});
    c.backend.smoothed_loss(logits, {targets, 0.1}, row_loss, {});
    c.output(row_loss);
  });
}

TEST_F(CudaOutput, NoRows) {
  const Tensor none({0, 7}, DType::f32, card->memory()), few({0, 3}, DType::f32, card->memory()), one({0}, DType::f32, card->memory());
  const Tensor tokens({0}, DType::i32, card->memory()), sums = tensor({3}, {1, 2, 3}, DType::f64);
  card->smoothed_loss(none, {}, few, none);
  card->smoothed_loss(none, {{}, 0.1, 0, {}, 5}, Tensor({0, 4}, DType::f32, card->memory()), none);
  card->shard_exponentials({none, 0, 7, one, few}, {}), card->rescale_shard({none, 0, 7, one, few}, one);
  card->shard_loss({none, 0, 7, one, few}, one, {}, few, none);
  card->loss_sums(few, {}, sums);
  card->top_logits(none, 3, few, Tensor({0, 3}, DType::i32, card->memory()), Tensor({0, 2}, DType::f64, card->memory()));
  card->sample(none, {}, tokens);
  EXPECT_EQ(sums.to_doubles(), (Values{1, 2, 3}));
}

TEST_F(CudaOutput, SumsOfManyRows) {
  expect_same_as_reference("many rows", [](CaseContext& c) {
    std::vector<int32_t> targets = c.integers(5003, 9);
    std::vector<float> weights(targets.size());
    for (size_t n = 0; n < targets.size(); ++n) targets[n] -= 2, weights[n] = static_cast<float>(n % 5) - 1.5f;
    const Tensor row_loss = c.parameters({5003, 3}), sums({3}, DType::f64, c.backend.memory());
    sums.from_doubles(Values{1, 2, 3});
    c.backend.loss_sums(row_loss, {c.upload(targets), 0, 0, c.upload(weights)}, sums);
    c.output(sums);
  });
}

TEST_F(CudaOutput, AsManyBestAsThereAreAndTies) {
  constexpr int64_t V = 1003;
  Random random(3, 1);
  Values z(2 * V);
  for (size_t i = 0; i < z.size(); ++i) z[i] = static_cast<double>(random.below(40)) - 20;  // many ties
  z[5] = -0.0, z[4] = 0.0, z[V + 7] = -INFINITY;
  const Tensor logits = tensor({2, V}, z);
  for (const int64_t k : {int64_t{1}, int64_t{64}, int64_t{200}, V}) {
    const auto [values, indices] = best(logits, k);
    for (int64_t r = 0; r < 2; ++r) {
      const double* const row = z.data() + r * V;
      Values order(static_cast<size_t>(V));
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](double a, double b) { return row[static_cast<int>(a)] > row[static_cast<int>(b)]; });
      double sum = 0;
      for (int64_t v = 0; v < V; ++v) sum += std::exp(row[v]);
      for (int64_t i = 0; i < k; ++i) {
        const auto at = static_cast<size_t>(r * k + i);
        ASSERT_EQ(indices[at], order[static_cast<size_t>(i)]) << "row " << r << ", place " << i << " of " << k;
        const double z_here = row[static_cast<int>(indices[at])];
        if (std::isfinite(z_here)) {
          ASSERT_NEAR(values[at], z_here - std::log(sum), 1e-4);
        }
      }
    }
  }
}

// Search asks whether a row's best is a number (decode/search.cpp).
TEST_F(CudaOutput, WhatIsNotANumberShows) {
  for (const int64_t V : {7, 1003})
    for (const char* kind : {"one", "all", "infinite"}) {
      Values z(static_cast<size_t>(V), 0.5);
      const double nan = std::nan("");
      if (std::string(kind) == "all") z.assign(z.size(), nan);
      z[3] = std::string(kind) == "infinite" ? INFINITY : nan;
      const auto [values, indices] = best(tensor({1, V}, z), 5);
      for (const double v : values) EXPECT_TRUE(std::isnan(v)) << kind << " of " << V << ": " << v;
      EXPECT_EQ(std::set<double>(indices.begin(), indices.end()).size(), 5u) << kind;
      for (const double i : indices) EXPECT_TRUE(i >= 0 && i < static_cast<double>(V)) << i;
      const double token = sampled(tensor({1, V}, z), {0.5})[0];
      EXPECT_TRUE(token >= 0 && token < static_cast<double>(V)) << token;
      const Tensor row_loss({1, 3}, DType::f32, card->memory());
      card->smoothed_loss(tensor({1, V}, z), {Ints({1}, card->memory()), 0.1}, row_loss, {});
      EXPECT_FALSE(std::isfinite(row_loss.to_doubles()[1])) << kind << " of " << V;
    }
}

TEST_F(CudaOutput, SamplesAreNeverImpossibleTokens) {
  constexpr int64_t V = 3001;
  Values z(V, -INFINITY), same(V, 0.25);
  for (const size_t possible : {600u, 601u, 2999u}) z[possible] = 1;
  z[10] = -1000;  // its probability is zero in f32
  const Tensor some = tensor({1, V}, z), all = tensor({1, V}, same);
  for (const auto& [uniform, token] : {std::pair{0.0, 600}, {0.33, 600}, {0.34, 601}, {0.66, 601}, {0.67, 2999}, {1 - 0x1p-53, 2999}})
    EXPECT_EQ(sampled(some, {uniform})[0], token) << uniform;
  for (const double uniform : {0.0, 1e-5, 0.1, 0.5, 0.999, 1 - 0x1p-53})
    EXPECT_EQ(sampled(all, {uniform})[0], std::min<double>(std::floor(uniform * V), V - 1)) << uniform;
}

// More stretches than threads of the second step: whole numbers, whose sum is exact.
TEST_F(CudaOutput, SquaresOfManyElements) {
  constexpr int64_t n = 8192 * 1025 + 3;
  Values x(static_cast<size_t>(n));
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>(i % 11) - 3;
  double squares = 5;
  for (const double v : x) squares += v * v;
  const Tensor sum = tensor({1}, {5}, DType::f64), none({0}, DType::f32, card->memory());
  card->sum_of_squares(tensor({n}, x), sum);
  card->sum_of_squares(none, sum);
  EXPECT_EQ(sum.to_doubles()[0], squares);
}

}  // namespace
}  // namespace starling
