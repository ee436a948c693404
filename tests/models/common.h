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

// A few elements of every parameter, in double precision. Dropout stays on: its masks depend on keys alone, so the loss is a smooth
// function of the parameters almost everywhere.
inline void expect_gradients(Model& model, const Batch& batch, int minimum = 100) {
  run(model, batch, true);
  const std::vector<double> gradient = model.parameters().gradients().to_doubles();
  const Tensor& values = model.parameters().values();
  Random random(5, 5);
  int checked = 0;
  for (Parameter& p : model.parameters().all()) {
    for (int trial = 0; trial < 6; ++trial) {
      const int64_t at = p.offset + static_cast<int64_t>(random.below(p.shape.count()));
      const double saved = element(values, at), h = 1e-5;
      const auto loss_at = [&](double x) {
        set_element(values, at, x);
        model.parameters().changed();
        const LossSums sums = run(model, batch, true);
        return sums.smoothed + batch.r_drop / 2 * sums.consistency + batch.guide * sums.alignment;
      };
      const double numeric = (loss_at(saved + h) - loss_at(saved - h)) / (2 * h);
      set_element(values, at, saved);
      model.parameters().changed();
      EXPECT_NEAR(numeric, gradient[at], 1e-6 * std::max(1.0, std::abs(gradient[at]))) << p.name << " element " << at - p.offset;
      ++checked;
    }
  }
  EXPECT_GT(checked, minimum);
}

}  // namespace starling
