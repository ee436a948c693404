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

void adam(float* value, const float* gradient, float* m, float* v, float rate, float beta1, float beta2, float epsilon, float coupled_decay,
          float decoupled_decay, float scale, float correction1, float correction2, int64_t begin, int64_t end) {
  const float step = rate / correction1, root = 1.0f / std::sqrt(correction2);
  blocks(begin, end, [&](int64_t c, auto w) {
    vf x = load(value + c, w);
    const vf g = load(gradient + c, w) * scale + coupled_decay * x;
    const vf first = beta1 * load(m + c, w) + (1 - beta1) * g, second = beta2 * load(v + c, w) + (1 - beta2) * g * g;
    vf deviation;
    for (int i = 0; i < L; ++i) deviation[i] = __builtin_sqrtf(second[i]);
    x = x - step * first / (deviation * root + epsilon) - rate * decoupled_decay * x;
    store(m + c, first, w);
    store(v + c, second, w);
    store(value + c, x, w);
  });
}

void adagrad(float* value, const float* gradient, float* v, float rate, float epsilon, float weight_decay, float scale, int64_t begin,
             int64_t end) {
  blocks(begin, end, [&](int64_t c, auto w) {
    const vf x = load(value + c, w), g = load(gradient + c, w) * scale + weight_decay * x, squares = load(v + c, w) + g * g;
    vf root;
    for (int i = 0; i < L; ++i) root[i] = __builtin_sqrtf(squares[i]);
    store(v + c, squares, w);
    store(value + c, x - rate * g / (root + epsilon), w);
  });
}

void sgd(float* value, const float* gradient, float rate, float weight_decay, float scale, int64_t begin, int64_t end) {
  blocks(begin, end, [&](int64_t c, auto w) {
    const vf x = load(value + c, w);
    store(value + c, x - rate * (scale * load(gradient + c, w) + weight_decay * x), w);
  });
}

void moving_average(const float* value, float* average, float decay, int64_t begin, int64_t end) {
  blocks(begin, end, [&](int64_t c, auto w) { store(average + c, decay * load(average + c, w) + (1 - decay) * load(value + c, w), w); });
}

}  // namespace

void set_optimizer_steps(Table& t) {
  t.sum_of_squares = sum_of_squares;
  t.adam = adam;
  t.adagrad = adagrad;
  t.sgd = sgd;
  t.moving_average = moving_average;
}

}  // namespace starling::kernels::STARLING_ISA
