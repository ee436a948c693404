// Attention with heads: by sentence and head in training, by row over cached keys in decoding.
#include <cmath>
#include <cstring>

#include "backend/cpu/cpu_backend.h"
#include "backend/dropout.h"

namespace starling {
namespace {

void clear_idle(const Tensor& t, int64_t first, int64_t column, int64_t D) {
  const int64_t element = size_of(t.dtype());
  for (int64_t n = first; n < t.rows(); ++n) std::memset(t.raw() + (n * t.columns() + column) * element, 0, D * element);
}

}  // namespace

// From a row and a head on.
kernels::RelativeTask CpuBackend::relative_task(const RelativeBins& r, int64_t row, int64_t head) const {
  if (r.reach == 0) return {};
  const int64_t column = head * r.bins(), at = row * r.scores.columns() + column;
  return {r.reach,
          r.scores.columns(),
          r.scores.data<float>() + at,
          r.mass ? element(r.mass, row, column) : nullptr,
          r.dmass ? r.dmass.data<float>() + at : nullptr,
          r.dscores ? element(r.dscores, row, column) : nullptr};
}

// One task per sentence and head; tasks write disjoint memory, so their order does not matter. `dy` may be empty.
template <class F>
void CpuBackend::each_head(const AttentionInput& in, const AttentionLayout& layout, const Dropout& d, const Tensor& dy, int64_t D, F f) {
  const int64_t sentences = static_cast<int64_t>(layout.query.size()) - 1, heads = layout.heads;
  int64_t largest = 0;
  const kernels::AttentionLoops& loops = fast_pairs_ && D / heads % 2 == 0 ? kernels_.pair_attention : kernels_.attention;
  for (int64_t b = 0; b < sentences; ++b)
    largest = std::max(largest, loops.scratch(layout.query[b + 1] - layout.query[b], layout.key[b + 1] - layout.key[b], D / heads));
  reserve_scratch(largest);
  CHECK(d.first_column == 0, "a head's mask begins at column {}", d.first_column);
  const auto rows_of = [&](int64_t task) -> kernels::AttentionRows {
    if (task >= sentences * heads) return {};
    const int64_t b = task / heads, column = task % heads * (D / heads), query = layout.query[b], key = layout.key[b];
    return {element(in.q, query, in.q_column + column),
            element(in.kv, key, in.k_column + column),
            element(in.kv, key, in.v_column + column),
            dy ? element(dy, query, column) : nullptr,
            layout.query[b + 1] - query,
            layout.key[b + 1] - key};
  };
  take_chunks(threads_, sentences * heads, [&](int64_t task, int thread) {
    const int64_t b = task / heads, h = task % heads, first = layout.query[b];
    const kernels::AttentionRows here = rows_of(task);
    if (here.queries == 0 || here.keys == 0) return;
    kernels::AttentionTask t{};
    t.q = here.q, t.k = here.k, t.v = here.v, t.dy = here.dy;
    t.queries = here.queries, t.keys = here.keys;
    t.next = rows_of(task + 1);
    t.head_width = D / heads;
    t.causal = layout.causal;
    t.scale = 1.0f / std::sqrt(static_cast<float>(t.head_width));
    t.ldq = in.q.columns();
    t.ldkv = in.kv.columns();
    t.ldy = D;
    t.lse_stride = heads;
    t.relative = relative_task(in.relative, first, h);
    t.mask = mask_of(d);
    if (d.active()) {
      t.mask.key = dropout_head_key(d.key, layout.first_head + h);
      t.mask.sentence += first;
      t.mask.position += first;
    }
    f(loops, t, first, h, scratch(thread));
  });
}

void CpuBackend::attention(const AttentionInput& in, const AttentionLayout& layout, const Dropout& d, const Tensor& y, const Tensor& lse) {
  const int64_t D = y.columns();
  const int64_t used = layout.query.back();
  clear_idle(y, used, 0, D);
  if (in.relative.reach > 0) clear_idle(in.relative.mass, used, 0, in.relative.mass.columns());
  each_head(in, layout, d, {}, D,
            [&](const kernels::AttentionLoops& loops, kernels::AttentionTask& t, int64_t first, int64_t head, float* scratch) {
              t.lse = lse.data<float>() + first * layout.heads + head;
              t.y = element(y, first, head * t.head_width);
              loops.forward(t, scratch);
            });
}

void CpuBackend::attention_backward(const AttentionInput& in, const AttentionLayout& layout, const Dropout& d, const Tensor& lse,
                                    const Tensor& dy, const Tensor& dq, const Tensor& dkv) {
  const int64_t D = dy.columns();
  clear_idle(dq, layout.query.back(), in.q_column, D);
  clear_idle(dkv, layout.key.back(), in.k_column, D);
  clear_idle(dkv, layout.key.back(), in.v_column, D);
  if (in.relative.reach > 0) clear_idle(in.relative.dscores, layout.query.back(), 0, in.relative.dscores.columns());
  each_head(in, layout, d, dy, D,
            [&](const kernels::AttentionLoops& loops, kernels::AttentionTask& t, int64_t first, int64_t head, float* scratch) {
              const int64_t first_key = (static_cast<const std::byte*>(t.k) - in.kv.raw()) / size_of(activation_) / in.kv.columns();
              const int64_t column = head * t.head_width;
              t.lse = lse.data<float>() + first * layout.heads + head;
              t.dq = element(dq, first, in.q_column + column);
              t.ld_dq = dq.columns();
              t.dk = element(dkv, first_key, in.k_column + column);
              t.dv = element(dkv, first_key, in.v_column + column);
              t.ld_dkv = dkv.columns();
              loops.backward(t, scratch);
            });
}

void CpuBackend::attend_cached(const AttentionInput& in, const Ints& index, const Ints& offsets, int64_t heads, const Tensor& y,
                               const Tensor& weights) {
  const int64_t D = y.columns();
  int32_t longest = 0;
  for (size_t r = 0; r + 1 < offsets.size(); ++r) longest = std::max(longest, offsets[r + 1] - offsets[r]);
  reserve_scratch(heads * (longest + 1) + 16);  // scores in whole vectors, a share a head
  ranges(static_cast<int64_t>(offsets.size()) - 1, 1, [&](int64_t begin, int64_t end, int thread) {
    for (int64_t r = begin; r < end; ++r) {
      const int64_t length = offsets[r + 1] - offsets[r], next = r + 1 < end ? offsets[r + 2] - offsets[r + 1] : 0;
      if (length == 0) {
        y.rows(r, r + 1).zero();
        if (in.relative.reach > 0) in.relative.mass.rows(r, r + 1).zero();
        continue;
      }
      kernels::CachedTask t{};
      t.q = element(in.q, r, in.q_column);
      t.k = element(in.kv, 0, in.k_column);
      t.v = element(in.kv, 0, in.v_column);
      t.ldkv = in.kv.columns();
      t.index = index.data() + offsets[r];
      t.length = length;
      t.next = index.data() + offsets[r + 1];
      t.next_length = next;
      t.head_width = D / heads;
      t.heads = heads;
      t.y = element(y, r, 0);
      t.weights = weights ? weights.data<float>() + offsets[r] : nullptr;
      t.relative = relative_task(in.relative, r, 0);
      kernels_.attend_cached(t, scratch(thread));
    }
  });
}

}  // namespace starling
