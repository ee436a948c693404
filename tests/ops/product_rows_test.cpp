// A row of a product does not depend on how many rows are multiplied with it: translations must not depend on what else is in a batch.
#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

#include "backend/backend.h"
#include "backend/cpu/dispatch.h"
#include "base/random.h"
#include "tests/ops/packing.h"

namespace starling {
namespace {

struct RowsCase {
  const char* backend;
  Packing packing;
};

class ProductRows : public testing::TestWithParam<RowsCase> {};

TEST_P(ProductRows, AreBitForBitThoseOfALargerProduct) {
  const auto [spec, packing] = GetParam();
  if (spec == std::string("cpu:bf16") && !cpu_has_bf16()) GTEST_SKIP() << "no bf16";
  if (spec == std::string("cpu:bf16") && packing == Packing::changing && multiplies_bf16_by_tiles()) GTEST_SKIP() << "a library's products";
  const auto backend = make_backend(spec, 1);
  Memory& memory = backend->memory();
  Random random(1, 2);
  const auto filled = [&](const Shape& shape, DType type) {
    std::vector<double> values(static_cast<size_t>(shape.count()));
    for (double& v : values) v = random.normal();
    const Tensor t(shape, type, memory);
    t.from_doubles(values);
    return t;
  };
  constexpr int64_t most = 144;
  // Inner dimensions that are blocked and that leave a rest; widths of a layer, of a small vocabulary, odd ones.
  for (const auto& [in, out] : {std::pair<int64_t, int64_t>{64, 192}, {256, 3001}, {1024, 256}, {2048, 512}, {100, 70}})
    for (const DType type : {backend->activation(), DType::f32}) {
      const Tensor w = filled({in, out}, DType::f32), x = filled({most, in}, backend->activation()), b = filled({out}, DType::f32);
      const auto packed = pack(*backend, w, packing);
      for (const Tensor& bias : {b, Tensor()}) {
        const Tensor whole({most, out}, type, memory);
        backend->linear(x, *packed, bias, whole, Activation::none, Write::overwrite);
        for (const int64_t rows : {1, 2, 3, 4, 8, 12, 28, 60, 64, 80, 128}) {
          const Tensor some({rows, out}, type, memory);
          backend->linear(x.rows(most - rows, most), *packed, bias, some, Activation::none, Write::overwrite);
          EXPECT_TRUE(some.download() == whole.rows(most - rows, most).download())
              << rows << " rows of [" << in << ", " << out << "], " << name_of(type) << (bias ? ", biased" : "");
        }
      }
    }
}

std::string name_of_rows_case(const testing::TestParamInfo<RowsCase>& info) {
  const char* const packings[] = {"", "constant", "int8"};
  return std::string(info.param.backend).substr(4) + packings[static_cast<int>(info.param.packing)];
}
INSTANTIATE_TEST_SUITE_P(All, ProductRows,
                         testing::Values(RowsCase{"cpu:f32", Packing::changing}, RowsCase{"cpu:f32", Packing::constant},
                                         RowsCase{"cpu:f32", Packing::int8}, RowsCase{"cpu:bf16", Packing::changing},
                                         RowsCase{"cpu:bf16", Packing::constant}, RowsCase{"cpu:bf16", Packing::int8}),
                         name_of_rows_case);

// Any number of rows, panels that are not full, weights in both orders, more rows than are computed between two panels; two threads.
TEST(ConstantProducts, AreThoseOfNaiveSums) {
  const auto backend = make_backend("cpu:f32", 2);
  Random random(3, 4);
  const auto filled = [&](const Shape& shape) {
    std::vector<double> values(static_cast<size_t>(shape.count()));
    for (double& v : values) v = random.normal();
    const Tensor t(shape, DType::f32);
    t.from_doubles(values);
    return t;
  };
  for (const auto& [rows, in, out] :
       {std::tuple<int64_t, int64_t, int64_t>{1, 33, 1}, {5, 256, 64}, {7, 100, 70}, {17, 64, 200}, {64, 2048, 96}, {301, 256, 65}})
    for (const bool transposed : {false, true}) {
      const Tensor x = filled({rows, in}), w = filled(transposed ? Shape{out, in} : Shape{in, out}), b = filled({out}),
                   before = filled({rows, out});
      const auto packed = backend->pack_constant(w, transposed);
      for (const bool relu : {false, true})
        for (const Write write : {Write::overwrite, Write::accumulate}) {
          const Tensor y({rows, out}, DType::f32);
          y.copy_from(before);
          backend->linear(x, *packed, b, y, relu ? Activation::relu : Activation::none, write);
          double worst = 0;
          for (int64_t r = 0; r < rows; ++r)
            for (int64_t o = 0; o < out; ++o) {
              double sum = 0;
              for (int64_t i = 0; i < in; ++i)
                sum += static_cast<double>(x.data<float>()[r * in + i]) * w.data<float>()[transposed ? o * in + i : i * out + o];
              sum += b.data<float>()[o];
              if (relu) sum = std::max(sum, 0.0);
              if (write == Write::accumulate) sum += before.data<float>()[r * out + o];
              worst = std::max(worst, std::abs(sum - y.data<float>()[r * out + o]));
            }
          EXPECT_LT(worst, 1e-6 * static_cast<double>(in)) << rows << " rows of [" << in << ", " << out << "]" << (transposed ? "^T" : "");
        }
    }
}

}  // namespace
}  // namespace starling
