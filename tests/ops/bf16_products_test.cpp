// Products of bf16 with f32 sums against sums in double precision of the same rounded numbers, so that only the order of adding differs.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <string>
#include <tuple>

#include "backend/backend.h"
#include "backend/cpu/dispatch.h"
#include "backend/device_choice.h"
#include "base/random.h"

namespace starling {
namespace {

class Bf16Products : public testing::Test {
 protected:
  void SetUp() override {
    if (!cpu_has_bf16()) GTEST_SKIP() << "this processor has no products of bf16";
    backend_ = make_backend("cpu:bf16", 2);
  }

  Tensor filled(const Shape& shape, DType type) {
    std::vector<double> values(static_cast<size_t>(shape.count()));
    for (double& v : values) v = random_.normal();
    const Tensor t(shape, type);
    t.from_doubles(values);
    return t;
  }

  // The numbers of a tensor as bf16 has them.
  static std::vector<double> rounded(const Tensor& t) {
    const Tensor narrow(t.shape(), DType::bf16);
    narrow.from_doubles(t.to_doubles());
    return narrow.to_doubles();
  }

  // What is summed, its magnitudes added up: errors are measured by that, since sums may cancel.
  struct Sum {
    double value = 0, size = 0;
    void add(double x) { value += x, size += std::abs(x); }
  };
  static constexpr double kWide = 2e-6, kNarrow = 4e-3;  // f32's error grows with the number of terms, here up to 2,049

  std::unique_ptr<Backend> backend_;
  Random random_{5, 6};
};

// Inner dimensions below, at and above a piece of it and odd ones; outputs that leave a panel half empty or nearly so; few rows and many.
TEST_F(Bf16Products, OfAWeightAreThoseOfNaiveSums) {
  for (const auto& [rows, in, out] : {std::tuple<int64_t, int64_t, int64_t>{1, 2, 1},
                                      {5, 256, 64},
                                      {7, 100, 70},
                                      {13, 33, 40},
                                      {17, 258, 200},
                                      {64, 2048, 33},
                                      {5, 1024, 64},
                                      {17, 1026, 200},
                                      {301, 514, 65},
                                      {301, 1026, 65}})
    for (const bool transposed : {false, true})
      for (const DType type : {DType::f32, DType::bf16})
        for (const auto& [relu, write] :
             {std::pair{Activation::relu, Write::overwrite}, {Activation::none, Write::overwrite}, {Activation::none, Write::accumulate}}) {
          const Tensor x = filled({rows, in}, DType::bf16), w = filled(transposed ? Shape{out, in} : Shape{in, out}, DType::f32),
                       b = filled({out}, DType::f32), y = filled({rows, out}, type);
          const std::vector<double> xs = x.to_doubles(), ws = rounded(w), bs = b.to_doubles(), before = y.to_doubles();
          backend_->linear(x, *backend_->pack(w, transposed, nullptr), b, y, relu, write);
          const std::vector<double> ys = y.to_doubles();
          for (int64_t r = 0; r < rows; ++r)
            for (int64_t o = 0; o < out; ++o) {
              Sum sum;
              for (int64_t i = 0; i < in; ++i) sum.add(xs[r * in + i] * ws[transposed ? o * in + i : i * out + o]);
              sum.add(bs[o]);
              if (relu == Activation::relu) sum.value = std::max(sum.value, 0.0);
              if (write == Write::accumulate) sum.add(before[r * out + o]);
              ASSERT_NEAR(ys[r * out + o], sum.value, (type == DType::f32 ? kWide : kNarrow) * sum.size)
                  << "row " << r << ", output " << o << " of [" << rows << ", " << in << "] to " << out
                  << (transposed ? ", transposed" : "");
            }
        }
}

TEST_F(Bf16Products, GradientsOfWeightsAreThoseOfNaiveSums) {
  for (const auto& [rows, in, out] : {std::tuple<int64_t, int64_t, int64_t>{1, 1, 1},
                                      {2, 6, 16},
                                      {33, 7, 33},
                                      {255, 70, 65},
                                      {256, 64, 128},
                                      {771, 20, 96},
                                      {64, 600, 40},
                                      {70, 13, 1100}})
    for (const Write write : {Write::overwrite, Write::accumulate}) {
      const Tensor x = filled({rows, in}, DType::bf16), dy = filled({rows, out}, DType::bf16), dw = filled({in, out}, DType::f32);
      const std::vector<double> xs = x.to_doubles(), ds = dy.to_doubles(), before = dw.to_doubles();
      backend_->weight_gradient(x, dy, dw, write);
      const std::vector<double> sums = dw.to_doubles();
      for (int64_t i = 0; i < in; ++i)
        for (int64_t o = 0; o < out; ++o) {
          Sum sum;
          for (int64_t r = 0; r < rows; ++r) sum.add(xs[r * in + i] * ds[r * out + o]);
          if (write == Write::accumulate) sum.add(before[i * out + o]);
          ASSERT_NEAR(sums[i * out + o], sum.value, kWide * sum.size) << "[" << i << ", " << o << "] of [" << in << ", " << out << "]";
        }
    }
}

// What `precision: auto` takes on this processor: bf16 only where an instruction of it makes more products a second than one of f32, or AMX
// multiplies. With STARLING_ISA=v4_bf16 that is decided, with the lower ones too.
TEST(AutoPrecision, IsBf16WhereItsProductsAreFast) {
  const char* const wish = std::getenv("STARLING_ISA");
  const std::string level = wish ? wish : "";
  const std::string chosen = resolve({"auto", 1, "cpu"}, false).precision;
  EXPECT_EQ(chosen, cpu_prefers_bf16() ? "bf16" : "f32");
  EXPECT_EQ(chosen == "bf16", multiplies_bf16_by_tiles() || multiplies_pairs_fast());
  if (level == "v2" || level == "v3" || level == "v4" || !cpu_has_bf16()) {
    EXPECT_FALSE(multiplies_pairs_fast());
  } else if (level == "v4_bf16") {
    EXPECT_EQ(chosen, "bf16");
  }
}

}  // namespace
}  // namespace starling
