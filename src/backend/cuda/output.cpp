// Ops on logits: losses with their gradients, the best tokens, samples.
#include "backend/cuda/kernels/output.h"

#include <cmath>

#include "backend/cuda/cuda_backend.h"

namespace starling::STARLING_CUDA {

kernels::Loss CudaBackend::loss_of(const Tensor& logits, const LossRows& rows, const Tensor& row_loss, const Tensor& dlogits) const {
  kernels::Loss t{};
  t.logits = at<float>(logits);
  t.targets = at(rows.targets);
  t.weights = at(rows.weights);
  t.smoothing = static_cast<float>(rows.smoothing);
  t.bound = rows.logit_bound > 0 ? static_cast<float>(rows.logit_bound) : INFINITY;
  t.r_drop = static_cast<float>(rows.r_drop);
  t.row_loss = at<float>(row_loss);
  t.dlogits = at(dlogits);
  t.rows = static_cast<int64_t>(rows.targets.size());
  t.columns = logits ? logits.columns() : 0;
  t.vocabulary = t.columns;
  CHECK(!dlogits || dlogits.columns() == t.columns, "the gradient {} of logits {}", dlogits.shape().text(), logits.shape().text());
  CHECK(rows.weights.empty() || rows.weights.size() == rows.targets.size(), "{} weights of {} rows", rows.weights.size(), t.rows);
  return t;
}

kernels::Loss CudaBackend::loss_of(const LogitsShard& s, const LossRows& rows, const Tensor& row_loss, const Tensor& dlogits) const {
  kernels::Loss t = loss_of(s.logits, rows, row_loss, dlogits);
  t.first = s.first;
  t.vocabulary = s.vocabulary;
  t.top = at<float>(s.top);
  t.sums = at<float>(s.sums);
  return t;
}

void CudaBackend::smoothed_loss(const Tensor& logits, const LossRows& rows, const Tensor& row_loss, const Tensor& dlogits) {
  const kernels::Loss t = loss_of(logits, rows, row_loss, dlogits);
  if (rows.r_drop > 0)
    kernels::paired_loss(type(), t, stream());
  else
    kernels::smoothed_loss(type(), t, static_cast<int64_t>(device_->properties().sharedMemPerBlockOptin), stream());
}

void CudaBackend::shard_exponentials(const LogitsShard& s, const LossRows& rows) {
  kernels::shard_exponentials(loss_of(s, rows, {}, {}), stream());
}

void CudaBackend::rescale_shard(const LogitsShard& s, const Tensor& group_top) {
  kernels::Loss t = loss_of(s, {}, {}, {});
  t.group_top = at<float>(group_top);
  t.rows = s.top.count();
  kernels::rescale_shard(t, stream());
}

void CudaBackend::shard_loss(const LogitsShard& s, const Tensor& group_top, const LossRows& rows, const Tensor& row_loss,
                             const Tensor& dlogits) {
  kernels::Loss t = loss_of(s, rows, row_loss, dlogits);
  t.group_top = at<float>(group_top);
  kernels::shard_loss(type(), t, stream());
}

void CudaBackend::loss_sums(const Tensor& row_loss, const LossRows& rows, const Tensor& sums) {
  kernels::loss_sums({at<float>(row_loss), at(rows.targets), at(rows.weights), at<double>(sums), static_cast<int64_t>(rows.targets.size()),
                      rows.columns()},
                     stream());
}

void CudaBackend::top_logits(const Tensor& logits, int64_t k, const Tensor& values, const Tensor& indices, const Tensor& denominator) {
  CHECK(k <= logits.columns(), "the best {} of {} tokens", k, logits.columns());
  kernels::best({at<float>(logits), at<float>(values), at<int32_t>(indices), at<double>(denominator), logits.rows(), logits.columns(), k},
                stream());
}

void CudaBackend::linear_top_logits(const Tensor& x, const Packed& w, const Tensor& b, double bound, int64_t k, const Tensor& values,
                                    const Tensor& indices, const Tensor& denominator) {
  const int64_t rows = values.rows(), padded = x.rows();
  if (!logits_ || logits_.columns() != w.out || logits_.rows() < padded) logits_ = Tensor({padded, w.out}, DType::f32, memory());
  linear(x, w, b, logits_.rows(0, padded), Activation::none, Write::overwrite);
  const Tensor logits = logits_.rows(0, rows);
  if (bound > 0) clamp(logits, bound, logits, {});
  top_logits(logits, k, values, indices, denominator);
}

void CudaBackend::sample(const Tensor& logits, const HostDeviceArray<double>& uniform, const Tensor& tokens) {
  CHECK(static_cast<int64_t>(uniform.size()) >= logits.rows(), "{} random numbers for {} rows", uniform.size(), logits.rows());
  kernels::sample({at<float>(logits), at(uniform), at<int32_t>(tokens), logits.rows(), logits.columns()}, stream());
}

}  // namespace starling::STARLING_CUDA
