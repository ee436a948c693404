// What the parity table cannot say of products of 8-bit weights: that the processor's instructions are used, that a number that is none
// stays visible, and that packed forms of one kind are not taken for the other.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "backend/cpu/product_times.h"
#include "backend/cpu/products.h"

namespace starling {
namespace {

Tensor filled(Backend& backend, const Shape& shape, double value) {
  Tensor t(shape, DType::f32, backend.memory());
  t.from_doubles(std::vector<double>(static_cast<size_t>(shape.count()), value));
  return t;
}

#if defined(__x86_64__)
TEST(Int8, ProcessorsWithVnniMultiplyIntegers) {
  if (!__builtin_cpu_supports("avx512vnni") || std::getenv("ONEDNN_MAX_CPU_ISA")) GTEST_SKIP() << "no AVX512-VNNI, or switched off";
  const auto backend = make_backend("cpu:f32", 1);
  EXPECT_TRUE(backend->multiplies_int8());
  for (int64_t width : {8, 96, 512})
    for (bool transposed : {false, true}) {
      const auto packed = backend->pack_int8(filled(*backend, {width, width}, 0.5), transposed, 0);
      EXPECT_TRUE(static_cast<const PackedInt8&>(*packed).integers) << width;
    }
}
#endif

// What bench translate times alone are products of the same kind.
TEST(Int8, ProductsAreNotedAsWhatTheyAre) {
  const auto backend = make_backend("cpu:f32", 1);
  ProfiledBackend noted(*backend);
  const Tensor w = filled(*backend, {32, 48}, 0.5), x = filled(*backend, {5, 32}, 1), y = filled(*backend, {5, 48}, 0);
  noted.linear(x, *noted.pack_int8(w, false, 0), {}, y, Activation::none, Write::overwrite);
  noted.linear(x, *noted.pack(w, false, nullptr), {}, y, Activation::none, Write::overwrite);
  const ProductShape integers{ProductKind::linear, 5, 32, 48, false, true}, floats{ProductKind::linear, 5, 32, 48, false, false};
  EXPECT_EQ(noted.products, (std::map<ProductShape, int64_t>{{floats, 1}, {integers, 1}}));
  EXPECT_GT(product_seconds(DType::f32, integers, 1), 0);
}

TEST(Int8, ARowWithANumberThatIsNoneGivesNone) {
  for (const char* spec : {"reference", "cpu:f32", "cpu:bf16"}) {
    if (spec == std::string("cpu:bf16") && !cpu_has_bf16()) continue;
    for (const char* isa : {"v2", "v3", "v4"}) {
      setenv("STARLING_ISA", isa, 1);
      if (spec == std::string("cpu:bf16") && isa != std::string("v4")) continue;
      const auto backend = make_backend(spec, 1);
      for (double bound : {0.0, 2.0})
        for (double rest : {0.0, 1.0})
          for (int64_t at : {0, 17, 36}) {
            Memory& memory = backend->memory();
            const Tensor w({37, 5}, backend->parameter(), memory), x({3, 37}, backend->activation(), memory);
            const Tensor y({3, 5}, backend->activation(), memory);
            w.from_doubles(std::vector<double>(37 * 5, 0.25));
            std::vector<double> values(3 * 37, rest);
            values[37 + at] = NAN;
            x.from_doubles(values);
            backend->linear(x, *backend->pack_int8(w, false, bound), {}, y, Activation::relu, Write::overwrite);
            const std::vector<double> result = y.to_doubles();
            for (int64_t i = 0; i < 15; ++i)
              EXPECT_EQ(std::isnan(result[i]), i / 5 == 1) << spec << " " << isa << " bound " << bound << " " << i;
          }
    }
  }
  unsetenv("STARLING_ISA");
}

TEST(Int8, FormsOfAnotherKindAreNotPackedInto) {
  const auto backend = make_backend("cpu:f32", 1);
  const Tensor w = filled(*backend, {16, 8}, 0.5), x = filled(*backend, {2, 16}, 1), y({2, 8}, DType::f32, backend->memory());
  const auto packed = backend->pack(w, false, backend->pack_int8(w, false, 0));
  EXPECT_FALSE(packed->quantized);
  backend->linear(x, *packed, {}, y, Activation::none, Write::overwrite);
  for (double v : y.to_doubles()) EXPECT_EQ(v, 8);
}

}  // namespace
}  // namespace starling
