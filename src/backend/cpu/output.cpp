// Ops on logits: losses with their gradients, the best tokens, samples.
#include <cmath>
#include <cstring>

#include "backend/cpu/cpu_backend.h"

namespace starling {

void CpuBackend::smoothed_loss(const Tensor& logits, const LossRows& rows, const Tensor& row_loss, const Tensor& dlogits) {
  const int64_t V = logits.columns(), each = rows.r_drop > 0 ? 2 : 1;
  const auto task = [&](int64_t n) {
    return kernels::LossTask{logits.data<float>() + n * V,
                             rows.targets[n],
                             static_cast<float>(rows.smoothing),
                             static_cast<float>(rows.logit_bound),
                             rows.weights.empty() ? 1.0f : rows.weights[n],
                             row_loss.data<float>() + rows.columns() * n,
                             dlogits ? element(dlogits, n, 0) : nullptr};
  };
  ranges(static_cast<int64_t>(rows.targets.size()) / each, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i)
      if (each == 2)
        kernels_.paired_loss({task(2 * i), task(2 * i + 1)}, V, static_cast<float>(rows.r_drop));
      else
        kernels_.smoothed_loss(task(i), V);
  });
}

void CpuBackend::shard_exponentials(const LogitsShard& s, const LossRows& rows) {
  const int64_t V = s.logits.columns();
  ranges(rows.targets.size(), 1, [&](int64_t begin, int64_t end, int) {
    kernels::LossTask t{};
    t.bound = static_cast<float>(rows.logit_bound);
    for (int64_t n = begin; n < end; ++n) {
      float *const top = s.top.data<float>() + n, *const sums = s.sums.data<float>() + 3 * n;
      t.logits = s.logits.data<float>() + n * V;
      t.target = s.column_of(rows.targets[n]);
      if (rows.targets[n] >= 0)
        kernels_.shard_exponentials(t, V, top, sums);
      else
        *top = sums[0] = sums[1] = sums[2] = 0;
    }
  });
}

void CpuBackend::rescale_shard(const LogitsShard& s, const Tensor& group_top) {
  float *const top = s.top.data<float>(), *const sums = s.sums.data<float>();
  for (int64_t n = 0; n < s.top.count(); ++n) {
    top[n] = std::exp(top[n] - group_top.data<float>()[n]);
    sums[3 * n] *= top[n];
  }
}

void CpuBackend::shard_loss(const LogitsShard& s, const Tensor& group_top, const LossRows& rows, const Tensor& row_loss,
                            const Tensor& dlogits) {
  const float *const top = s.top.data<float>(), *const sums = s.sums.data<float>();
  for (size_t n = 0; n < rows.targets.size(); ++n)
    write_row_loss(group_top.data<float>()[n], sums + 3 * n, rows.targets[n], static_cast<float>(rows.smoothing),
                   static_cast<float>(s.vocabulary), row_loss.data<float>() + 3 * n);
  if (!dlogits) return;
  const int64_t V = s.logits.columns();
  ranges(rows.targets.size(), 1, [&](int64_t begin, int64_t end, int) {
    kernels::LossTask t{};
    t.smoothing = static_cast<float>(rows.smoothing);
    t.bound = static_cast<float>(rows.logit_bound);
    for (int64_t n = begin; n < end; ++n) {
      t.logits = s.logits.data<float>() + n * V;
      t.target = s.column_of(rows.targets[n]);
      t.weight = rows.weights.empty() ? 1.0f : rows.weights[n];
      t.dlogits = element(dlogits, n, 0);
      if (rows.targets[n] >= 0)
        kernels_.shard_gradient(t, V, t.weight * top[n] / sums[3 * n], s.vocabulary);
      else
        std::memset(t.dlogits, 0, V * size_of(activation_));
    }
  });
}

void CpuBackend::loss_sums(const Tensor& row_loss, const LossRows& rows, const Tensor& sums) {
  add_loss_sums(row_loss.data<float>(), rows, sums.data<double>());
}

void CpuBackend::top_logits(const Tensor& logits, int64_t k, const Tensor& values, const Tensor& indices, const Tensor& denominator) {
  const int64_t V = logits.columns();
  ranges(logits.rows(), 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r)
      kernels_.top_logits(logits.data<float>() + r * V, V, 0, k, values.data<float>() + r * k, indices.data<int32_t>() + r * k,
                          denominator.data<double>() + 2 * r);
  });
}

void CpuBackend::sample(const Tensor& logits, const HostDeviceArray<double>& uniform, const Tensor& tokens) {
  const int64_t V = logits.columns();
  ranges(logits.rows(), 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) tokens.data<int32_t>()[r] = kernels_.sample(logits.data<float>() + r * V, V, uniform[r]);
  });
}

}  // namespace starling
