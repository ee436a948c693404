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
void ProfiledBackend::linear(const Tensor& x, const Packed& w, const Tensor& b, const Tensor& y, Activation a, Write write) {
  const ProductShape shape{ProductKind::linear, x.rows(), w.in, w.out, y.dtype() != activation(), w.quantized};
  ++products[shape];
  times["linear"].flops += product_flops(shape);
  timed("linear", traffic(x, b) + w.in * w.out * size_of(activation()) + traffic(y, write), [&] { inner_.linear(x, w, b, y, a, write); });
}
std::shared_ptr<Packed> ProfiledBackend::pack_int8(const Tensor& w, bool transposed, double input_bound) {
  return timed("pack", 0, [&] { return inner_.pack_int8(w, transposed, input_bound); });
}
void ProfiledBackend::weight_gradient(const Tensor& a, const Tensor& c, const Tensor& dw, Write write) {
  const ProductShape shape{ProductKind::weight_gradient, a.columns(), a.rows(), c.columns(), true};
  ++products[shape];
  times["weight_gradient"].flops += product_flops(shape);
  timed("weight_gradient", traffic(a, c) + traffic(dw, write), [&] { inner_.weight_gradient(a, c, dw, write); });
}
void ProfiledBackend::column_sums(const Tensor& dy, const Tensor& db, Write write) {
  timed("column_sums", traffic(dy) + traffic(db, write), [&] { inner_.column_sums(dy, db, write); });
}
void ProfiledBackend::embed(const Ints& tokens, const Ints& positions, const Tensor& table, double scale, const Dropout& d,
                            const Tensor& y) {
  timed("embed", 2 * traffic(y), [&] { inner_.embed(tokens, positions, table, scale, d, y); });
}
void ProfiledBackend::embed_backward(const Ints& tokens, double scale, const Dropout& d, const Tensor& dy, const Tensor& dtable) {
  timed("embed_backward", traffic(dy) + 2 * rows_here(tokens) * dtable.columns() * size_of(dtable.dtype()),
        [&] { inner_.embed_backward(tokens, scale, d, dy, dtable); });
}
void ProfiledBackend::layer_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, double epsilon, const Tensor& y,
                                 const Tensor& statistics) {
  timed("layer_norm", traffic(x, gamma, beta, y, statistics), [&] { inner_.layer_norm(x, gamma, beta, epsilon, y, statistics); });
}
void ProfiledBackend::layer_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& gamma, const Tensor& statistics,
                                          const Tensor& dx, Write dx_write, const Tensor& dgamma, const Tensor& dbeta,
                                          Write parameter_write) {
  timed("layer_norm_backward",
        traffic(dy, x, gamma, statistics) + traffic(dx, dx_write) + traffic(dgamma, parameter_write) + traffic(dbeta, parameter_write),
        [&] { inner_.layer_norm_backward(dy, x, gamma, statistics, dx, dx_write, dgamma, dbeta, parameter_write); });
}
void ProfiledBackend::add_dropout(const Tensor& x, const Tensor& s, const Dropout& d, const Tensor& y) {
  timed("add_dropout", traffic(x, s, y), [&] { inner_.add_dropout(x, s, d, y); });
}
void ProfiledBackend::dropout_backward(const Tensor& dy, const Dropout& d, const Tensor& ds, Write write) {
  timed("dropout_backward", traffic(dy) + traffic(ds, write), [&] { inner_.dropout_backward(dy, d, ds, write); });
}
void ProfiledBackend::relu_dropout_backward(const Tensor& h, double scale, const Tensor& dh) {
  timed("relu_dropout_backward", traffic(h) + 2 * traffic(dh), [&] { inner_.relu_dropout_backward(h, scale, dh); });
}
void ProfiledBackend::activate(const Tensor& x, Activation a, const Tensor& y) {
  timed("activate", traffic(x, y), [&] { inner_.activate(x, a, y); });
}
void ProfiledBackend::activate_backward(const Tensor& x, Activation a, const Tensor& dy) {
  timed("activate_backward", traffic(x) + 2 * traffic(dy), [&] { inner_.activate_backward(x, a, dy); });
}
void ProfiledBackend::add(const Tensor& x, const Tensor& y) {
  timed("add", traffic(x) + 2 * traffic(y), [&] { inner_.add(x, y); });
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
void ProfiledBackend::gather_rows(const Tensor& x, const Ints& index, const Tensor& y, Write write) {
  timed("gather_rows", traffic(y) + traffic(y, write), [&] { inner_.gather_rows(x, index, y, write); });
}
void ProfiledBackend::scatter_rows(const Tensor& x, int64_t x_column, const Ints& index, const Tensor& y) {
  timed("scatter_rows", 2 * traffic(y), [&] { inner_.scatter_rows(x, x_column, index, y); });
}
void ProfiledBackend::copy_columns(const Tensor& x, int64_t x_column, const Tensor& y, int64_t y_column, int64_t width, Write write) {
  timed("copy_columns", (write == Write::accumulate ? 3 : 2) * x.rows() * width * size_of(x.dtype()),
        [&] { inner_.copy_columns(x, x_column, y, y_column, width, write); });
}
void ProfiledBackend::clamp(const Tensor& x, double bound, const Tensor& y, const Tensor& clipped) {
  timed("clamp", traffic(x, y), [&] { inner_.clamp(x, bound, y, clipped); });
}
void ProfiledBackend::clamp_backward(const Tensor& x, double bound, const Tensor& dy, const Tensor& dx, Write write) {
  timed("clamp_backward", traffic(x, dy) + traffic(dx, write), [&] { inner_.clamp_backward(x, bound, dy, dx, write); });
}
void ProfiledBackend::lstm_step(const LstmStep& s) {
  timed("lstm_step", 2 * traffic(s.gates) + traffic(s.recurrent, s.cell_before, s.cell, s.hidden), [&] { inner_.lstm_step(s); });
}
void ProfiledBackend::lstm_step_backward(const LstmStepBackward& s) {
  timed("lstm_step_backward", 2 * traffic(s.gates, s.dcell) + traffic(s.cell_before, s.cell, s.dhidden, s.drecurrent),
        [&] { inner_.lstm_step_backward(s); });
}
void ProfiledBackend::ssru(const Ssru& s) {
  timed("ssru", traffic(s.candidate, s.forget, s.cell, s.hidden), [&] { inner_.ssru(s); });
}
void ProfiledBackend::ssru_backward(const SsruBackward& s) {
  timed("ssru_backward", traffic(s.candidate, s.forget, s.cell, s.dhidden, s.dcandidate, s.dforget), [&] { inner_.ssru_backward(s); });
}
void ProfiledBackend::attend_cached(const AttentionInput& in, const Ints& index, const Ints& offsets, int64_t heads, const Tensor& y,
                                    const Tensor& weights) {
  timed("attend_cached", 0, [&] { inner_.attend_cached(in, index, offsets, heads, y, weights); });
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
void ProfiledBackend::smoothed_loss(const Tensor& logits, const LossRows& rows, const Tensor& row_loss, const Tensor& dlogits) {
  timed("smoothed_loss", traffic(logits, row_loss, dlogits), [&] { inner_.smoothed_loss(logits, rows, row_loss, dlogits); });
}
void ProfiledBackend::shard_exponentials(const LogitsShard& s, const LossRows& rows) {
  timed("shard_exponentials", 0, [&] { inner_.shard_exponentials(s, rows); });
}
void ProfiledBackend::rescale_shard(const LogitsShard& s, const Tensor& group_top) {
  timed("rescale_shard", 0, [&] { inner_.rescale_shard(s, group_top); });
}
void ProfiledBackend::shard_loss(const LogitsShard& s, const Tensor& group_top, const LossRows& rows, const Tensor& row_loss,
                                 const Tensor& dlogits) {
  timed("shard_loss", 0, [&] { inner_.shard_loss(s, group_top, rows, row_loss, dlogits); });
}
void ProfiledBackend::loss_sums(const Tensor& row_loss, const LossRows& rows, const Tensor& sums) {
  timed("loss_sums", 0, [&] { inner_.loss_sums(row_loss, rows, sums); });
}
void ProfiledBackend::top_logits(const Tensor& logits, int64_t k, const Tensor& values, const Tensor& indices, const Tensor& denominator) {
  timed("top_logits", traffic(logits), [&] { inner_.top_logits(logits, k, values, indices, denominator); });
}
void ProfiledBackend::linear_top_logits(const Tensor& x, const Packed& w, const Tensor& b, double bound, int64_t k, const Tensor& values,
                                        const Tensor& indices, const Tensor& denominator) {
  ++products[{ProductKind::linear, x.rows(), w.in, w.out, activation() != DType::f32, w.quantized}];
  timed("linear_top_logits", 0, [&] { inner_.linear_top_logits(x, w, b, bound, k, values, indices, denominator); });
}
void ProfiledBackend::sample(const Tensor& logits, const HostDeviceArray<double>& uniform, const Tensor& tokens) {
  timed("sample", traffic(logits), [&] { inner_.sample(logits, uniform, tokens); });
}
void ProfiledBackend::sum_of_squares(const Tensor& x, const Tensor& sum) {
  timed("sum_of_squares", traffic(x), [&] { inner_.sum_of_squares(x, sum); });
}
void ProfiledBackend::adam(const Tensor& value, const Tensor& gradient, const Tensor& m, const Tensor& v, const AdamStep& s) {
  timed("adam", 2 * traffic(value, m, v) + traffic(gradient), [&] { inner_.adam(value, gradient, m, v, s); });
}
void ProfiledBackend::adagrad(const Tensor& value, const Tensor& gradient, const Tensor& v, const AdagradStep& s) {
  timed("adagrad", 2 * traffic(value, v) + traffic(gradient), [&] { inner_.adagrad(value, gradient, v, s); });
}
void ProfiledBackend::sgd(const Tensor& value, const Tensor& gradient, const SgdStep& s) {
  timed("sgd", 2 * traffic(value) + traffic(gradient), [&] { inner_.sgd(value, gradient, s); });
}
void ProfiledBackend::moving_average(const Tensor& value, const Tensor& average, double decay) {
  timed("moving_average", traffic(value) + 2 * traffic(average), [&] { inner_.moving_average(value, average, decay); });
}
void ProfiledBackend::compress(const Compression& c) {
  timed("compress", 0, [&] { inner_.compress(c); });
}
void ProfiledBackend::decompress(const CodeLayout& layout, const Tensor& codes, double scale, const Tensor& sum) {
  timed("decompress", 0, [&] { inner_.decompress(layout, codes, scale, sum); });
}

}  // namespace starling
