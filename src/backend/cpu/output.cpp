// What is done with logits: losses with their gradients, the best tokens, samples.
#include "backend/cpu/cpu_backend.h"

namespace starling {

void CpuBackend::smoothed_loss(const Tensor& logits, const LossRows& rows, const Tensor& row_loss, const Tensor& dlogits) {
  const int64_t V = logits.columns();
  ranges(rows.targets.size(), 1, [&](int64_t begin, int64_t end, int) {
    kernels::LossTask t{};
    t.smoothing = static_cast<float>(rows.smoothing), t.bound = static_cast<float>(rows.logit_bound);
    for (int64_t n = begin; n < end; ++n) {
      t.logits = logits.data<float>() + n * V, t.target = rows.targets[n], t.weight = rows.weights.empty() ? 1.0f : rows.weights[n];
      t.out = row_loss.data<float>() + 3 * n, t.dlogits = dlogits ? element(dlogits, n, 0) : nullptr;
      kernels_.smoothed_loss(t, V);
    }
  });
}

void CpuBackend::loss_sums(const Tensor& row_loss, const LossRows& rows, const Tensor& sums) {
  add_loss_sums(row_loss.data<float>(), rows, sums.data<double>());
}

void CpuBackend::log_softmax_top_k(const Tensor& logits, int64_t k, const Tensor& values, const Tensor& indices) {
  const int64_t V = logits.columns();
  ranges(logits.rows(), 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r)
      kernels_.log_softmax_top_k(logits.data<float>() + r * V, V, k, values.data<float>() + r * k, indices.data<int32_t>() + r * k);
  });
}

void CpuBackend::sample(const Tensor& logits, const Placed<double>& uniform, const Tensor& tokens) {
  const int64_t V = logits.columns();
  ranges(logits.rows(), 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) tokens.data<int32_t>()[r] = kernels_.sample(logits.data<float>() + r * V, V, uniform[r]);
  });
}

}  // namespace starling
