// The optimizers' steps over ranges of the flat buffers.
#include "backend/cpu/kernels/arithmetic.h"
#include "backend/cpu/kernels/table_parts.h"

namespace starling::kernels::STARLING_ISA {
namespace {

// Blocks of 4096 are summed in f32, and the blocks' sums in double. Elements above about 1e18 make the sum infinite, and the step is
// refused: Adam's squares, which are f32 too, would never recover from them.
double sum_of_squares(const float* x, int64_t begin, int64_t end) {
  double total = 0;
  for (int64_t block = begin; block < end; block += 4096) {
    vf squares{};
    blocks(block, std::min(end, block + 4096), [&](int64_t c, auto w) {
      const vf v = load(x + c, w);
      squares += v * v;
    });
    total += sum(squares);
  }
  return total;
}

template <class Step>
void take_step(const void* numbers, float* value, const float* gradient, float* const* states, int64_t begin, int64_t end) {
  constexpr int n = Step::kStates;
  const auto step = *static_cast<const typename Step::F32*>(numbers);
  blocks(begin, end, [&](int64_t c, auto w) {
    vf x = load(value + c, w), state[std::max(n, 1)];
    for (int i = 0; i < n; ++i) state[i] = load(states[i] + c, w);
    step(x, load(gradient + c, w), state);
    for (int i = 0; i < n; ++i) store(states[i] + c, state[i], w);
    store(value + c, x, w);
  });
}

template <class... Steps>
void set_steps(Table& t, const std::variant<Steps...>*) {
  size_t i = 0;
  ((t.optimizer_steps[i++] = take_step<Steps>), ...);
}

void moving_average(const float* value, float* average, float decay, int64_t begin, int64_t end) {
  blocks(begin, end, [&](int64_t c, auto w) { store(average + c, decay * load(average + c, w) + (1 - decay) * load(value + c, w), w); });
}

}  // namespace

void set_optimizer_steps(Table& t) {
  t.sum_of_squares = sum_of_squares;
  set_steps(t, static_cast<const OptimizerStep*>(nullptr));
  t.moving_average = moving_average;
}

}  // namespace starling::kernels::STARLING_ISA
