// The best logits of a product that is never whole are those of the whole product, for every way to pack a weight.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "backend/backend.h"
#include "base/random.h"
#include "tests/ops/packing.h"

namespace starling {
namespace {

struct TopCase {
  const char* backend;
  Packing packing;
  int threads;
};

Tensor filled(Backend& backend, const Shape& shape, DType type, Random& random) {
  std::vector<double> values(static_cast<size_t>(shape.count()));
  for (double& v : values) v = random.normal();
  const Tensor t(shape, type, backend.memory());
  t.from_doubles(values);
  return t;
}

struct Best {
  Tensor values, indices, denominator;
  Best(Backend& backend, int64_t rows, int64_t k)
      : values({rows, k}, DType::f32, backend.memory()),
        indices({rows, k}, DType::i32, backend.memory()),
        denominator({rows, 2}, DType::f64, backend.memory()) {}
};

// What the contract says of a row of logits, by sorting.
void expect_best(std::span<const double> z, int64_t k, const double* values, const double* indices, const double* denominator) {
  std::vector<int32_t> order(z.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return z[a] > z[b]; });
  double sum = 0;
  for (double v : z) sum += std::exp(v - z[order[0]]);
  for (int64_t i = 0; i < k; ++i) {
    ASSERT_EQ(values[i], z[order[i]]) << "place " << i;
    ASSERT_EQ(indices[i], order[i]) << "place " << i;
  }
  ASSERT_EQ(denominator[0], z[order[0]]);
  ASSERT_NEAR(denominator[1], sum, 2e-6 * sum);
}

class TopLogits : public testing::TestWithParam<TopCase> {};

// Vocabularies of less than a block of columns, of whole blocks, with a rest and one column more; rows of less and more than a block.
TEST_P(TopLogits, AreTheBestOfTheWholeProduct) {
  const auto [spec, packing, threads] = GetParam();
  if (spec == std::string("cpu:bf16") && !cpu_has_bf16()) GTEST_SKIP() << "no bf16";
  const auto backend = make_backend(spec, threads);
  Random random(1, 3);
  for (const int64_t in : {36, 128})
    for (const int64_t V : {9, 256, 257, 1003})
      for (const int64_t rows : {1, 5, 64, 70, 300})
        for (const double bound : {0.0, 1.5 * std::sqrt(static_cast<double>(in))})  // reached by a seventh: many equal ones
          for (const int64_t k : {1, 4, 9}) {
            const Tensor x = filled(*backend, {rows, in}, backend->activation(), random), w = filled(*backend, {in, V}, DType::f32, random);
            const auto packed = pack(*backend, w, packing);
            const Best best(*backend, rows, k);
            backend->linear_top_logits(x, *packed, {}, bound, k, best.values, best.indices, best.denominator);
            const Tensor logits({rows, V}, DType::f32, backend->memory());
            for (int64_t r = 0; r < rows; r += 64)  // as many as are multiplied where the product is oneDNN's, whose bf16 sums may differ
              backend->linear(x.rows(r, std::min(r + 64, rows)), *packed, {}, logits.rows(r, std::min(r + 64, rows)), Activation::none,
                              Write::overwrite);
            if (bound > 0) backend->clamp(logits, bound, logits, {});
            const auto z = logits.to_doubles(), values = best.values.to_doubles(), indices = best.indices.to_doubles();
            const auto denominators = best.denominator.to_doubles();
            for (int64_t r = 0; r < rows; ++r) {
              SCOPED_TRACE(testing::Message() << "row " << r << " of " << rows << " times [" << in << ", " << V << "], bound " << bound);
              expect_best(std::span(z).subspan(static_cast<size_t>(r * V), static_cast<size_t>(V)), k, &values[r * k], &indices[r * k],
                          &denominators[2 * r]);
              if (HasFatalFailure()) return;
            }
          }
}

// Translations must not depend on what else is in a batch.
TEST_P(TopLogits, OfARowAreBitForBitThoseAmongMoreRows) {
  const auto [spec, packing, threads] = GetParam();
  if (spec == std::string("cpu:bf16") && !cpu_has_bf16()) GTEST_SKIP() << "no bf16";
  const auto backend = make_backend(spec, threads);
  Random random(2, 3);
  constexpr int64_t kMost = 304, in = 64, V = 1003, k = 5;
  const Tensor x = filled(*backend, {kMost, in}, backend->activation(), random), w = filled(*backend, {in, V}, DType::f32, random);
  const auto packed = pack(*backend, w, packing);
  const Best all(*backend, kMost, k);
  backend->linear_top_logits(x, *packed, {}, 0, k, all.values, all.indices, all.denominator);
  for (const int64_t rows : {1, 4, 7, 60, 130}) {
    const Best some(*backend, rows, k);
    const int64_t first = kMost - (rows + 3) / 4 * 4;  // with rows behind them that nobody asks for
    backend->linear_top_logits(x.rows(first, kMost), *packed, {}, 0, k, some.values, some.indices, some.denominator);
    EXPECT_TRUE(some.values.download() == all.values.rows(first, first + rows).download()) << rows;
    EXPECT_TRUE(some.indices.download() == all.indices.rows(first, first + rows).download()) << rows;
    EXPECT_TRUE(some.denominator.download() == all.denominator.rows(first, first + rows).download()) << rows;
  }
}

// A search tells by them that a model is of no use, wherever in the vocabulary they are. Logits are x here: w is the unit matrix.
TEST_P(TopLogits, KeepWhatIsNoNumber) {
  const auto [spec, packing, threads] = GetParam();
  if (spec == std::string("cpu:bf16") && !cpu_has_bf16()) GTEST_SKIP() << "no bf16";
  const auto backend = make_backend(spec, threads);
  constexpr int64_t V = 600;
  std::vector<double> ones(V * V);
  for (int64_t i = 0; i < V; ++i) ones[i * V + i] = 1;
  const Tensor unit({V, V}, DType::f32, backend->memory());
  unit.from_doubles(ones);
  const auto packed = pack(*backend, unit, packing);
  for (const int64_t at : {0, 255, 256, 599}) {
    std::vector<double> z(2 * V);
    for (int64_t c = 0; c < V; ++c) z[c] = static_cast<double>(c % 7);
    z[V + at] = NAN;
    const Tensor x({2, V}, backend->activation(), backend->memory());
    x.from_doubles(z);
    const Best best(*backend, 2, 3);
    backend->linear_top_logits(x, *packed, {}, 0, 3, best.values, best.indices, best.denominator);
    const auto denominators = best.denominator.to_doubles();
    EXPECT_FALSE(std::isnan(denominators[0] + denominators[1])) << at;
    EXPECT_TRUE(std::isnan(denominators[2] + denominators[3])) << at;
  }
}

// Whole stretches of logits that cannot be, as where tokens are forbidden.
TEST(TopLogitsOfGivenLogits, MayBeMinusInfinity) {
  for (const char* spec : {"reference", "cpu:f32"}) {
    const auto backend = make_backend(spec, 1);
    std::vector<double> z(700, -INFINITY);
    z[650] = 2, z[3] = 1;
    const Tensor logits({1, 700}, backend->parameter(), backend->memory()), values({1, 2}, backend->parameter(), backend->memory());
    const Tensor indices({1, 2}, DType::i32, backend->memory()), denominator({1, 2}, DType::f64, backend->memory());
    logits.from_doubles(z);
    backend->top_logits(logits, 2, values, indices, denominator);
    EXPECT_EQ(values.to_doubles(), (std::vector<double>{2, 1}));
    EXPECT_EQ(indices.to_doubles(), (std::vector<double>{650, 3}));
    EXPECT_EQ(denominator.to_doubles()[0], 2);
    EXPECT_NEAR(denominator.to_doubles()[1], 1 + std::exp(-1), 1e-6);
  }
}

std::string name_of_top_case(const testing::TestParamInfo<TopCase>& info) {
  const char* const packings[] = {"Changing", "Constant", "Int8"};
  return std::string(info.param.backend).substr(4) + packings[static_cast<int>(info.param.packing)] + "On" +
         std::to_string(info.param.threads);
}
INSTANTIATE_TEST_SUITE_P(All, TopLogits,
                         testing::Values(TopCase{"cpu:f32", Packing::changing, 1}, TopCase{"cpu:f32", Packing::constant, 1},
                                         TopCase{"cpu:f32", Packing::constant, 2}, TopCase{"cpu:f32", Packing::int8, 1},
                                         TopCase{"cpu:f32", Packing::int8, 2}, TopCase{"cpu:bf16", Packing::changing, 1},
                                         TopCase{"cpu:bf16", Packing::int8, 1}),
                         name_of_top_case);

}  // namespace
}  // namespace starling
