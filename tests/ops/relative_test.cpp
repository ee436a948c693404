// Relative positions against the formula of Shaw et al. (2018), pair by pair: what all backends share in autograd/relative.cpp, and a
// comparison of them can therefore not show to be right.
#include <gtest/gtest.h>

#include <cmath>

#include "autograd/ops.h"
#include "base/random.h"
#include "tests/ops/backends.h"

namespace starling {
namespace {

using Values = std::vector<double>;
constexpr int64_t kHeads = 3, kWidth = 4, kColumns = kHeads * kWidth, kRows = 64;
const std::vector<int32_t> kOffsets{0, 1, 12, 21};

// Attention of one head with the rows of both tables added to keys and to values.
Values by_formula(const Values& qkv, const Values& of_keys, const Values& of_values, int64_t reach, bool causal) {
  Values y(kRows * kColumns, 0.0);
  for (size_t b = 0; b + 1 < kOffsets.size(); ++b)
    for (int64_t h = 0; h < kHeads; ++h)
      for (int64_t i = kOffsets[b]; i < kOffsets[b + 1]; ++i) {
        const int64_t end = causal ? i + 1 : kOffsets[b + 1];
        const auto row = [&](int64_t j) { return (j - i < -reach ? -reach : j - i > reach ? reach : j - i) + reach; };
        Values weight;
        double total = 0;
        for (int64_t j = kOffsets[b]; j < end; ++j) {
          double score = 0;
          for (int64_t c = 0; c < kWidth; ++c)
            score +=
                qkv[i * 3 * kColumns + h * kWidth + c] * (qkv[j * 3 * kColumns + kColumns + h * kWidth + c] + of_keys[row(j) * kWidth + c]);
          total += weight.emplace_back(std::exp(score / 2));  // the root of kWidth
        }
        for (int64_t j = kOffsets[b]; j < end; ++j)
          for (int64_t c = 0; c < kWidth; ++c)
            y[i * kColumns + h * kWidth + c] +=
                weight[j - kOffsets[b]] / total * (qkv[j * 3 * kColumns + 2 * kColumns + h * kWidth + c] + of_values[row(j) * kWidth + c]);
      }
  return y;
}

TEST(RelativePositions, FollowTheFormula) {
  for (const BackendCase& b : kBackends)
    for (const int64_t reach : {1, 4, 20})
      for (const bool causal : {false, true}) {
        const auto backend = make(b);
        ParameterStore store(*backend);
        const Shape shape{2 * reach + 1, kWidth};
        Parameter &keys = store.add("keys", shape, {Initializer::normal, 1}),
                  &values = store.add("values", shape, {Initializer::normal, 1});
        store.allocate(5, false);
        Random random(3, 3);
        Values qkv(kRows * 3 * kColumns);
        for (double& x : qkv) x = widen(round_to_bf16(static_cast<float>(random.normal())));
        Arena arena(backend->memory());
        Tape tape(store, arena);
        const Tensor in = tape.allocate({kRows, 3 * kColumns}, backend->activation());
        in.from_doubles(qkv);
        const Ints offsets = tape.upload(kOffsets);
        const Var y = self_attention(tape.record(in, {}), {offsets, offsets, kHeads, causal}, {}, {&keys, &values});
        const Values expected = by_formula(qkv, keys.value.to_doubles(), values.value.to_doubles(), reach, causal),
                     found = y.value.to_doubles();
        const double tolerance = backend->activation() == DType::bf16 ? 0.06 : 1e-5;
        for (size_t i = 0; i < expected.size(); ++i)
          ASSERT_NEAR(found[i], expected[i], tolerance) << backend->describe() << " reach " << reach << " element " << i;
      }
}

}  // namespace
}  // namespace starling
