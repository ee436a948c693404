#include "backend/profiled.h"

#include <algorithm>
#include <chrono>
#include <type_traits>

#include "backend/cpu/product_times.h"

namespace starling {

namespace {

// Bytes that an op reads or writes once each.
template <class... Tensors>
int64_t traffic(const Tensors&... tensors) {
  return (... + tensors.bytes());
}
// Of a tensor that is written, or added to.
int64_t traffic(const Tensor& x, Write write) { return (write == Write::accumulate ? 2 : 1) * x.bytes(); }

int64_t rows_here(const Ints& tokens) {
  return std::count_if(tokens.begin(), tokens.end(), [](int32_t token) { return token >= 0; });
}

}  // namespace

template <class F>
auto ProfiledBackend::timed(const char* name, int64_t bytes, F f) {
  const auto start = std::chrono::steady_clock::now();
  const auto ended = [&] {
    Memory& memory = inner_.memory();  // of a card: an op has only begun, and is waited for
    if (!memory.host() && &memory != &meta_memory()) memory.download(nullptr, nullptr, 0);
    OpTime& time = times[name];
    time.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), ++time.calls,
        time.bytes += static_cast<double>(bytes);
  };
  if constexpr (std::is_void_v<decltype(f())>) {
    f();
    ended();
  } else {
    auto result = f();
    ended();
    return result;
  }
}

double ProfiledBackend::note(const AttentionLayout& layout, int64_t heads, int64_t head_width, int products) {
  double flops = 0;
  for (size_t b = 0; b + 1 < layout.query.size(); ++b) {
    const AttentionShape shape{layout.query[b + 1] - layout.query[b], layout.key[b + 1] - layout.key[b], head_width, products};
    attentions[shape] += heads;
    flops += static_cast<double>(heads) * attention_product_flops(shape);
  }
  return flops;
}
// The products with the memory and, where scores are dot products, as many with the keys. Additive scores are no product.
void ProfiledBackend::note(const GlobalAttention& in, const AttentionLayout& layout, int products) {
  note(layout, 1, in.memory.columns(), products);
  if (!in.v) note(layout, 1, in.q.columns(), products);
}

std::shared_ptr<Packed> ProfiledBackend::pack(const Tensor& w, bool transposed, std::shared_ptr<Packed> reuse) {
  return timed("pack", packed_bytes(w), [&] { return inner_.pack(w, transposed, std::move(reuse)); });
}
std::shared_ptr<Packed> ProfiledBackend::pack_other_way(const Tensor& w, bool transposed, std::shared_ptr<Packed> reuse,
                                                        const std::shared_ptr<Packed>& other) {
  return timed("pack", 0, [&] { return inner_.pack_other_way(w, transposed, std::move(reuse), other); });
}
std::shared_ptr<Packed> ProfiledBackend::pack_constant(const Tensor& w, bool transposed) {
  return timed("pack", 0, [&] { return inner_.pack_constant(w, transposed); });
}
std::shared_ptr<Packed> ProfiledBackend::pack_int8(const Tensor& w, bool transposed, double input_bound) {
  return timed("pack", 0, [&] { return inner_.pack_int8(w, transposed, input_bound); });
}
void ProfiledBackend::linear(const Tensor& x, const Packed& w, const Tensor& b, const Tensor& y, Activation a, Write write) {
  const ProductShape shape{ProductKind::linear, x.rows(), w.in, w.out, y.dtype() != activation(), w.quantized};
  ++products[shape];
  times["linear"].flops += product_flops(shape);
  timed("linear", traffic(x, b) + w.in * w.out * size_of(activation()) + traffic(y, write), [&] { inner_.linear(x, w, b, y, a, write); });
}
void ProfiledBackend::note_gradient(const Tensor& a, const Tensor& c) {
  const ProductShape shape{ProductKind::weight_gradient, a.columns(), a.rows(), c.columns(), true};
  ++products[shape];
  times["weight_gradient"].flops += product_flops(shape);
}
void ProfiledBackend::weight_gradient(const Tensor& a, const Tensor& c, const Tensor& dw, Write write) {
  note_gradient(a, c);
  timed("weight_gradient", traffic(a, c) + traffic(dw, write), [&] { inner_.weight_gradient(a, c, dw, write); });
}
void ProfiledBackend::layer_gradients(const Tensor& x, const Tensor& dy, const Tensor& dw, Write dw_write, const Tensor& db,
                                      Write db_write) {
  note_gradient(x, dy);
  timed("weight_gradient", traffic(x, dy) + traffic(dw, dw_write) + traffic(db, db_write),
        [&] { inner_.layer_gradients(x, dy, dw, dw_write, db, db_write); });
}
void ProfiledBackend::attention(const AttentionInput& in, const AttentionLayout& layout, const Dropout& d, const Tensor& y,
                                const Tensor& lse) {
  times["attention"].flops += note(layout, layout.heads, y.columns() / layout.heads, 2);
  timed("attention", 4 * traffic(y) + traffic(lse, in.relative.scores, in.relative.mass), [&] { inner_.attention(in, layout, d, y, lse); });
}
void ProfiledBackend::attention_backward(const AttentionInput& in, const AttentionLayout& layout, const Dropout& d, const Tensor& lse,
                                         const Tensor& dy, const Tensor& dq, const Tensor& dkv) {
  times["attention_backward"].flops += note(layout, layout.heads, dy.columns() / layout.heads, 4);
  timed("attention_backward", 5 * traffic(dy) + traffic(dq, dkv, lse) + traffic(in.relative.scores, in.relative.dmass, in.relative.dscores),
        [&] { inner_.attention_backward(in, layout, d, lse, dy, dq, dkv); });
}
void ProfiledBackend::global_attention(const GlobalAttention& in, const AttentionLayout& layout, const Tensor& y, const Tensor& weights) {
  note(in, layout, 1);
  timed("global_attention", 0, [&] { inner_.global_attention(in, layout, y, weights); });
}
void ProfiledBackend::global_attention_backward(const GlobalAttention& in, const AttentionLayout& layout, const Tensor& weights,
                                                const Tensor& dy, const Tensor& dweights, const Tensor& dq, const Tensor& dk,
                                                const Tensor& dmemory, Write dmemory_write, const Tensor& dv, Write dv_write) {
  note(in, layout, 2);
  timed("global_attention_backward", 0,
        [&] { inner_.global_attention_backward(in, layout, weights, dy, dweights, dq, dk, dmemory, dmemory_write, dv, dv_write); });
}
void ProfiledBackend::linear_top_logits(const Tensor& x, const Packed& w, const Tensor& b, double bound, int64_t k, const Tensor& values,
                                        const Tensor& indices, const Tensor& denominator) {
  ++products[{ProductKind::linear, x.rows(), w.in, w.out, activation() != DType::f32, w.quantized}];
  timed("linear_top_logits", 0, [&] { inner_.linear_top_logits(x, w, b, bound, k, values, indices, denominator); });
}
void ProfiledBackend::optimizer_step(const Tensor& value, const Tensor& gradient, const StepStates& states, const OptimizerStep& step) {
  const auto [name, count] = std::visit([](const auto& s) { return std::pair(s.kName, s.kStates); }, step);
  timed(name, 2 * (1 + count) * traffic(value) + traffic(gradient), [&] { inner_.optimizer_step(value, gradient, states, step); });
}

#define STARLING_OP(name, parameters, bytes, ...)           \
  void ProfiledBackend::name parameters {                   \
    timed(#name, bytes, [&] { inner_.name(__VA_ARGS__); }); \
  }
#define STARLING_NOTED_OP(...)  // above
#include "backend/ops.inc"

}  // namespace starling
