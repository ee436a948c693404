// A row of a product does not depend on how many rows are multiplied with it: translations must not depend on what else is in a batch.
#include <gtest/gtest.h>

#include "backend/backend.h"
#include "base/random.h"

namespace starling {
namespace {

struct Case {
  const char* backend;
  bool int8;
};

class ProductRows : public testing::TestWithParam<Case> {};

TEST_P(ProductRows, AreBitForBitThoseOfALargerProduct) {
  const auto [spec, int8] = GetParam();
  if (spec == std::string("cpu:bf16") && !cpu_has_bf16()) GTEST_SKIP() << "no bf16";
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
      const auto packed = int8 ? backend->pack_int8(w, false, 0) : backend->pack(w, false, nullptr);
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

INSTANTIATE_TEST_SUITE_P(All, ProductRows,
                         testing::Values(Case{"cpu:f32", false}, Case{"cpu:f32", true}, Case{"cpu:bf16", false}, Case{"cpu:bf16", true}),
                         [](const auto& info) { return std::string(info.param.backend).substr(4) + (info.param.int8 ? "int8" : ""); });

}  // namespace
}  // namespace starling
