// Attention with heads: by sentence and head in training, by row over cached keys in decoding.
#include "backend/cuda/kernels/attention.h"

#include <algorithm>

#include "backend/cuda/cuda_backend.h"

namespace starling::STARLING_CUDA {
namespace {

int64_t longest(const Ints& offsets) {
  int64_t most = 0;
  for (size_t b = 0; b + 1 < offsets.size(); ++b) most = std::max<int64_t>(most, offsets[b + 1] - offsets[b]);
  return most;
}
int64_t used(const Ints& offsets) { return offsets.back() - offsets.front(); }

}  // namespace

kernels::Attention CudaBackend::attention_task(const AttentionInput& in, const AttentionLayout& layout, const Dropout& d, const Tensor& lse,
                                               int64_t rows, int64_t D) const {
  const auto& [query, key, heads, causal, first_head] = layout;
  CHECK(D % heads == 0 && query.size() == key.size() && !query.empty() && query.back() <= rows && key.back() <= in.kv.rows(),
        "attention of {} heads of {} columns, {} queries of {} rows and {} keys of {}", heads, D, query.empty() ? 0 : query.back(), rows,
        key.empty() ? 0 : key.back(), in.kv.rows());
  CHECK(in.q_column + D <= in.q.columns() && in.k_column + D <= in.kv.columns() && in.v_column + D <= in.kv.columns() &&
            in.q.rows() >= rows && lse.count() >= query.back() * heads && in.q.dtype() == activation_ && in.kv.dtype() == activation_,
        "attention of {} from column {} to {} from {} and {}, width {}, denominators {}", in.q.shape().text(), in.q_column,
        in.kv.shape().text(), in.k_column, in.v_column, D, lse.shape().text());
  CHECK(!d.active() || d.first_column == 0, "masks of attention begin with column {}, which is a key", d.first_column);
  return {.q = element(in.q, 0, in.q_column),
          .k = element(in.kv, 0, in.k_column),
          .v = element(in.kv, 0, in.v_column),
          .q_stride = in.q.columns(),
          .kv_stride = in.kv.columns(),
          .query = at(query),
          .key = at(key),
          .sentences = static_cast<int64_t>(query.size()) - 1,
          .heads = heads,
          .first_head = layout.first_head,
          .width = D / heads,
          .longest_query = longest(query),
          .longest_key = longest(key),
          .idle = rows - used(query),
          .causal = layout.causal,
          .mask = mask_of(d),
          .y = nullptr,
          .lse = at<float>(lse),
          .relative = relative_task(in.relative, rows, heads)};
}

kernels::Relative CudaBackend::relative_task(const RelativeBins& r, int64_t rows, int64_t heads) const {
  if (r.reach == 0) return {};
  for (const Tensor* t : {&r.scores, &r.mass, &r.dmass, &r.dscores})
    CHECK(!*t || (t->columns() == heads * r.bins() && t->rows() >= rows), "{} of relative positions for {} rows, {} heads and {} bins",
          t->shape().text(), rows, heads, r.bins());
  return {.reach = r.reach,
          .stride = heads * r.bins(),
          .scores = at<float>(r.scores),
          .mass = at(r.mass),
          .dmass = at<float>(r.dmass),
          .dscores = at(r.dscores)};
}

void CudaBackend::attention(const AttentionInput& in, const AttentionLayout& layout, const Dropout& d, const Tensor& y, const Tensor& lse) {
  kernels::Attention t = attention_task(in, layout, d, lse, y.rows(), y.columns());
  t.y = at(y);
  kernels::attention(type(), t, stream());
  if (t.relative.reach > 0) kernels::relative_mass(type(), t, stream());
}

void CudaBackend::attention_backward(const AttentionInput& in, const AttentionLayout& layout, const Dropout& d, const Tensor& lse,
                                     const Tensor& dy, const Tensor& dq, const Tensor& dkv) {
  const int64_t rows = dq.rows(), D = dy.columns();
  CHECK(
      dq.columns() == in.q.columns() && dkv.columns() == in.kv.columns() && dkv.rows() == in.kv.rows() && dy.rows() >= layout.query.back(),
      "gradients {} and {} of attention of {} to {} from {}", dq.shape().text(), dkv.shape().text(), in.q.shape().text(),
      in.kv.shape().text(), dy.shape().text());
  kernels::AttentionBackward t{.of = attention_task(in, layout, d, lse, rows, D),
                               .rows = rows,
                               .dy = at(dy),
                               .dq = element(dq, 0, in.q_column),
                               .dk = element(dkv, 0, in.k_column),
                               .dv = element(dkv, 0, in.v_column),
                               .dq_stride = dq.columns(),
                               .dkv_stride = dkv.columns(),
                               .idle_keys = dkv.rows() - used(layout.key),
                               .dots = nullptr,
                               .sums = nullptr};
  if (kernels::many_keys(t.of.longest_key)) {
    t.dots = scratch<float>(0, kernels::dot_parts(t.of.width) * rows * layout.heads);
    t.sums = scratch<float>(1, rows * D);
  }
  kernels::attention_backward(type(), t, stream());
}

void CudaBackend::attend_cached(const AttentionInput& in, const Ints& index, const Ints& offsets, int64_t heads, const Tensor& y,
                                const Tensor& weights) {
  const auto& [q, kv, q_column, k_column, v_column, relative] = in;
  const int64_t D = y.columns(), rows = static_cast<int64_t>(offsets.size()) - 1;
  CHECK(rows >= 0 && D % heads == 0 && q_column + D <= q.columns() && k_column + D <= kv.columns() && v_column + D <= kv.columns() &&
            q.rows() >= rows && y.rows() >= rows && q.dtype() == activation_ && kv.dtype() == activation_,
        "attention of {} rows of {} from column {} to {} from {} and {}, into {} in {} heads", rows, q.shape().text(), q_column,
        kv.shape().text(), k_column, v_column, y.shape().text(), heads);
  kernels::attend_cached(type(),
                         {.q = element(q, 0, q_column),
                          .k = element(kv, 0, k_column),
                          .v = element(kv, 0, v_column),
                          .q_stride = q.columns(),
                          .kv_stride = kv.columns(),
                          .index = at(index),
                          .offsets = at(offsets),
                          .rows = rows,
                          .heads = heads,
                          .width = D / heads,
                          .y = at(y),
                          .weights = at<float>(weights),
                          .relative = relative_task(relative, rows, heads)},
                         stream());
}

}  // namespace starling::STARLING_CUDA
