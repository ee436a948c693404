#include "train/cross_entropy.h"

namespace starling {

CrossEntropy cross_entropy(Model& model, std::span<const Batch> batches, size_t first, size_t step) {
  CrossEntropy total;
  Arena arena(model.parameters().backend().memory());
  for (size_t i = first; i < batches.size(); i += step) {
    arena.release({});
    Tape tape(model.parameters(), arena);
    const LossSums sums = model.loss(tape, batches[i], 0.0).read();
    total.nll += sums.nll, total.tokens += sums.tokens;
  }
  return total;
}

}  // namespace starling
