// What the parity table cannot say of the recurrent ops: the accuracy of sigmoid and tanh, cells of 16 bits, the range in which additive
// scores are exact, numbers that are none, and how many products a profile counts.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "backend/cpu/product_times.h"
#include "backend/profiled.h"
#include "tests/ops/cases.h"

namespace starling {
namespace {

// Calls f with a backend of each instruction set of this machine.
template <class F>
void each_instruction_set(const char* spec, F f) {
  for (const char* isa : {"v2", "v3", "v4"}) {
    setenv("STARLING_ISA", isa, 1);
    if (spec == std::string("cpu:bf16") && !cpu_has_bf16()) continue;
    const auto backend = make_backend(spec, 2);
    SCOPED_TRACE(backend->describe());
    f(*backend);
  }
  unsetenv("STARLING_ISA");
}

Tensor f32(Backend& backend, const Shape& shape, std::span<const double> values = {}) {
  Tensor t(shape, DType::f32, backend.memory());
  if (!values.empty()) t.from_doubles(values);
  return t;
}

TEST(Recurrent, SigmoidAndTanhAreExactToTheLastDigits) {
  std::vector<double> xs{0};
  for (double x = 1e-20; x < 200; x *= 1.003) xs.push_back(static_cast<float>(x)), xs.push_back(-static_cast<float>(x));
  const int64_t H = static_cast<int64_t>(xs.size());
  each_instruction_set("cpu:f32", [&](Backend& backend) {
    std::vector<double> four;
    for (int gate = 0; gate < 4; ++gate) four.insert(four.end(), xs.begin(), xs.end());
    const Tensor gates = f32(backend, {1, 4 * H}, four), cell = f32(backend, {1, H}), hidden = f32(backend, {1, H});
    backend.lstm_step({gates, Tensor(), Tensor(), 0, cell, hidden});
    const std::vector<double> out = gates.to_doubles();
    for (int64_t i = 0; i < H; ++i) {
      const double squashed = std::tanh(xs[i]);
      for (int64_t gate : {0, 1, 3}) ASSERT_NEAR(out[gate * H + i], 1 / (1 + std::exp(-xs[i])), 2e-7) << xs[i];
      ASSERT_NEAR(out[2 * H + i], squashed, 4e-7 * std::abs(squashed)) << xs[i];
    }
  });
}

// They may round to either side where the sum lies between two units; anything else is an error.
TEST(Recurrent, NarrowCellsMatchReferenceToOneUnit) {
  const auto cells = [](Backend& backend) {
    CaseContext c(backend, 5);
    const int64_t R = 7, H = 37;
    const Tensor gates = c.activations({R, 4 * H}), recurrent = c.parameters({R, 4 * H}), hidden = c.empty({R, H});
    const Tensor before({R, H}, DType::i16, backend.memory()), cell({R, H}, DType::i16, backend.memory());
    std::vector<double> units;
    for (int32_t u : c.integers(R * H, 65535)) units.push_back(u - 32767);
    before.from_doubles(units);
    backend.lstm_step({gates, recurrent, before, 4, cell, hidden, false, 0.75});
    return cell.to_doubles();
  };
  const std::vector<double> expected = cells(*make_backend("reference"));
  EXPECT_EQ(*std::max_element(expected.begin(), expected.end()), 32767);  // some are clipped, and to the very bound
  for (const char* spec : {"cpu:f32", "cpu:bf16"})
    each_instruction_set(spec, [&](Backend& backend) {
      const std::vector<double> actual = cells(backend);
      int64_t different = 0;
      for (size_t i = 0; i < expected.size(); ++i) {
        EXPECT_NEAR(actual[i], expected[i], 1) << i;
        different += actual[i] != expected[i];
      }
      EXPECT_LE(different, 5);
    });
}

TEST(Recurrent, NotANumberSurvives) {
  const double none = std::numeric_limits<double>::quiet_NaN();
  const int64_t H = 5;
  each_instruction_set("cpu:f32", [&](Backend& backend) {
    for (int64_t gate = 0; gate < 4; ++gate) {
      std::vector<double> values(4 * H, 0.5);
      values[gate * H + 2] = none;
      const Tensor gates = f32(backend, {1, 4 * H}, values), before = f32(backend, {1, H}, std::vector<double>(H, 0.25));
      const Tensor recurrent = f32(backend, {1, 4 * H}), cell = f32(backend, {1, H}), hidden = f32(backend, {1, H});
      LstmStep step{gates, recurrent, before, 1, cell, hidden};
      step.bound = 1;
      backend.lstm_step(step);
      for (int64_t c = 0; c < H; ++c) EXPECT_EQ(std::isnan(hidden.to_doubles()[c]), c == 2) << gate << " " << c;
    }
    const std::vector<int32_t> queries{0, 2}, keys{0, 3};
    const Tensor q = f32(backend, {2, 2}, std::vector<double>{0.5, none, 0.5, 0.5}), k = f32(backend, {3, 2});
    const Tensor v = f32(backend, {2}, std::vector<double>{1, 1}), memory = f32(backend, {3, 1}, std::vector<double>{1, 2, 3});
    const Tensor y = f32(backend, {2, 1}), weights = f32(backend, {6});
    backend.global_attention({q, k, v, memory}, {queries, keys}, y, weights);
    EXPECT_TRUE(std::isnan(y.to_doubles()[0]));
    EXPECT_NEAR(y.to_doubles()[1], 2, 1e-6);  // equal keys
  });
}

// Scores of terms that are huge, alone or against each other: tanh(40 - 39) and its like.
TEST(Recurrent, AdditiveScoresOfLargeTerms) {
  const std::vector<double> q{-40, -3, 0, 20, 43}, k{39, -41.5, 2.5, -20.25, 0, 43, -43};
  const std::vector<int32_t> queries{0, 5}, keys{0, 7};
  each_instruction_set("cpu:f32", [&](Backend& backend) {
    const Tensor y = f32(backend, {5, 1}), weights = f32(backend, {35}), v = f32(backend, {1}, std::vector<double>{1.5});
    const Tensor keyed = f32(backend, {7, 1}, k);
    backend.global_attention({f32(backend, {5, 1}, q), keyed, v, keyed}, {queries, keys}, y, weights);
    for (size_t i = 0; i < q.size(); ++i) {
      double total = 0;
      for (double x : k) total += std::exp(1.5 * std::tanh(q[i] + x));
      for (size_t j = 0; j < k.size(); ++j)
        EXPECT_NEAR(weights.to_doubles()[i * 7 + j], std::exp(1.5 * std::tanh(q[i] + k[j])) / total, 2e-6) << q[i] << " " << k[j];
    }
  });
}

TEST(Recurrent, ProfileCountsTheProductsOfGlobalAttention) {
  const auto inner = make_backend("reference");
  const std::vector<int32_t> queries{0, 2, 5}, keys{0, 3, 7};
  const double pairs = 2 * 3 + 3 * 4, A = 6, D = 8;
  for (bool additive : {true, false}) {
    ProfiledBackend profiled(*inner);
    CaseContext c(profiled, 1);
    const Tensor v = additive ? c.parameters({6}) : Tensor(), dv = additive ? c.parameters({6}) : Tensor();
    const Backend::GlobalAttention in{c.activations({5, 6}), c.activations({7, 6}), v, c.activations({7, 8})};
    const Tensor y = c.empty({5, 8}), weights = c.empty_parameters({18});
    const auto flops = [&] {
      double total = 0;
      for (const auto& [shape, count] : profiled.attentions) total += attention_product_flops(shape) * static_cast<double>(count);
      return total;
    };
    profiled.global_attention(in, {queries, keys}, y, weights);
    EXPECT_EQ(flops(), 2 * pairs * (additive ? D : D + A));
    profiled.clear();
    profiled.global_attention_backward(in, {queries, keys}, weights, y, {}, c.empty({5, 6}), c.empty({7, 6}), c.empty({7, 8}),
                                       Write::overwrite, dv, Write::overwrite);
    EXPECT_EQ(flops(), 2 * 2 * pairs * (additive ? D : D + A));
  }
}

}  // namespace
}  // namespace starling
