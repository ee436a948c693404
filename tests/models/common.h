// What the tests of all models share: random batches, one pass, the whole gradient against central differences.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "models/model.h"
#include "tests/elements.h"

namespace starling {

inline Batch random_batch(int64_t sentences, int64_t vocabulary, uint64_t seed, int64_t longest = 7) {
  Random random(seed, 3);
  Batch batch;
  for (int64_t b = 0; b < sentences; ++b) {
    for (PackedTokens* side : {&batch.source, &batch.target}) {
      std::vector<int32_t> tokens(1 + random.below(longest));
      for (auto& t : tokens) t = static_cast<int32_t>(3 + random.below(vocabulary - 3));
      tokens.push_back(2);
      side->append(tokens.data(), tokens.data() + tokens.size());
    }
    batch.sample_ids.push_back(1000 + b);
  }
  return batch;
}

inline LossSums run(Model& model, const Batch& batch, bool training, std::vector<float>* nll = nullptr) {
  Arena arena(model.parameters().backend().memory());
  GradientSum sum(model.parameters());
  Tape tape = training ? Tape(model.parameters(), arena, sum, 11, 5) : Tape(model.parameters(), arena);
  const Loss loss = model.loss(tape, batch, 0.1);
  if (training) tape.backward(), sum.complete();
  if (nll) *nll = loss.read_nll();
  return loss.read();
}

// The loss of a training pass that ends before its gradients.
inline double loss_of(Model& model, const Batch& batch) {
  Arena arena(model.parameters().backend().memory());
  GradientSum sum(model.parameters());
  Tape tape(model.parameters(), arena, sum, 11, 5);
  const LossSums sums = model.loss(tape, batch, 0.1).read();
  return sums.smoothed + batch.r_drop / 2 * sums.consistency + batch.guide * sums.alignment;
}

// Every parameter along two random directions, in which each of its elements moves up or down, in double precision. Dropout stays on: its
// masks depend on keys alone, so the loss is a smooth function of the parameters almost everywhere.
inline void expect_gradients(Model& model, const Batch& batch, int minimum = 100) {
  run(model, batch, true);
  const std::vector<double> gradient = model.parameters().gradients().to_doubles();
  const Tensor& values = model.parameters().values();
  const std::vector<double> saved = values.to_doubles();
  constexpr double h = 1e-7;
  Random random(5, 5);
  int64_t checked = 0;  // elements
  for (const Parameter& p : model.parameters().all()) {
    const int64_t count = p.shape.count();
    for (int trial = 0; trial < 2; ++trial) {
      std::vector<double> direction(static_cast<size_t>(count));
      double expected = 0;
      for (int64_t i = 0; i < count; ++i) {
        direction[i] = random.below(2) == 0 ? -1 : 1;
        expected += direction[i] * gradient[p.offset + i];
      }
      const auto move = [&](double distance) {
        std::vector<double> moved(direction);
        for (int64_t i = 0; i < count; ++i) moved[i] = saved[p.offset + i] + distance * direction[i];
        values.slice(p.offset, Shape{count}).from_doubles(moved);
        model.parameters().changed();
      };
      const auto loss_at = [&](double distance) {
        move(distance);
        return loss_of(model, batch);
      };
      EXPECT_NEAR((loss_at(h) - loss_at(-h)) / (2 * h), expected, 1e-6 * std::max(1.0, std::abs(expected))) << p.name;
      move(0);
      checked += count;
    }
  }
  EXPECT_GT(checked, minimum);
}

}  // namespace starling
