#include "backend/cpu/cpu.h"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <functional>

#include "backend/cpu/dispatch.h"
#include "backend/cpu/products.h"
#include "backend/dropout.h"
#include "backend/reference/reference.h"

namespace starling {
namespace {

kernels::Mask mask_of(const Dropout& d) {
  if (!d.active()) return {};
  return {d.key, d.threshold(), d.scale(), d.rows->sentence.data(), d.rows->position.data()};
}

class CpuBackend : public Backend {
 public:
  CpuBackend(DType activation, int threads)
      : activation_(activation),
        threads_(threads),
        kernels_(kernel_table(activation)),
        wide_(kernel_table(DType::f32)),
        products_(activation),
        scratch_(threads) {}

  std::string describe() const override {
    return fmt::format("cpu, {} activations, {} thread{}, {}", name_of(activation_), threads_, threads_ == 1 ? "" : "s",
                       cpu_instruction_set());
  }
  DType activation() const override { return activation_; }
  DType parameter() const override { return DType::f32; }
  int threads() const override { return threads_; }
  bool multiplies_int8() const override { return products_.multiplies_int8(); }

  std::shared_ptr<Packed> pack(const Tensor& w, bool transposed, std::shared_ptr<Packed> reuse) override {
    enter();
    return products_.pack(w, transposed, std::move(reuse));
  }
  void linear(const Tensor& x, const Packed& w, const Tensor& b, const Tensor& y, Activation activation, Write write) override {
    enter();
    if (w.quantized) return linear_int8(x, static_cast<const PackedInt8&>(w), b, y, activation, write);
    products_.linear(x, w, b, y, activation, write);
  }
  std::shared_ptr<Packed> pack_int8(const Tensor& w, bool transposed, double input_bound) override {
    enter();
    return products_.pack_int8(w, transposed, input_bound);
  }
  void weight_gradient(const Tensor& a, const Tensor& c, const Tensor& dw, Write write) override {
    enter();
    products_.weight_gradient(a, c, dw, write);
  }

  void column_sums(const Tensor& dy, const Tensor& db, Write write) override {
    if (write == Write::overwrite) db.zero();
    ranges(dy.columns(), 64,
           [&](int64_t begin, int64_t end, int) { kernels_.column_sums(dy.raw(), db.data<float>(), dy.rows(), dy.columns(), begin, end); });
  }

  void embed(std::span<const int32_t> tokens, std::span<const int32_t> positions, const Tensor& table, double scale, const Dropout& d,
             const Tensor& y) override {
    const int64_t D = y.columns();
    if (!positions.empty()) extend_signal(*std::max_element(positions.begin(), positions.end()) + 1, D);
    ranges(tokens.size(), 16, [&](int64_t begin, int64_t end, int) {
      kernels_.embed(tokens.data(), positions.empty() ? nullptr : positions.data(), table.data<float>(), signal_.data(),
                     static_cast<float>(scale), mask_of(d), y.raw(), D, begin, end);
    });
  }

  void embed_backward(std::span<const int32_t> tokens, double scale, const Dropout& d, const Tensor& dy, const Tensor& dtable) override {
    ranges(dy.columns(), 128, [&](int64_t begin, int64_t end, int) {
      kernels_.embed_backward(tokens.data(), tokens.size(), static_cast<float>(scale), mask_of(d), dy.raw(), dtable.data<float>(),
                              dy.columns(), begin, end);
    });
  }

  void layer_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, const Tensor& y, const Tensor& statistics) override {
    ranges(x.rows(), 8, [&](int64_t begin, int64_t end, int) {
      kernels_.layer_norm(x.raw(), gamma.data<float>(), beta.data<float>(), y.raw(), statistics.data<float>(), x.columns(), begin, end);
    });
  }

  void layer_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& gamma, const Tensor& statistics, const Tensor& dx,
                           Write dx_write, const Tensor& dgamma, const Tensor& dbeta, Write parameter_write) override {
    const int64_t D = x.columns();
    std::vector<float>& parts = partial_;
    parts.assign(static_cast<size_t>(2 * D * threads_), 0.0f);
    ranges(x.rows(), 8, [&](int64_t begin, int64_t end, int thread) {
      kernels_.layer_norm_backward(dy.raw(), x.raw(), gamma.data<float>(), statistics.data<float>(), dx.raw(),
                                   dx_write == Write::accumulate, parts.data() + 2 * D * thread, parts.data() + 2 * D * thread + D, D,
                                   begin, end);
    });
    if (parameter_write == Write::overwrite) dgamma.zero(), dbeta.zero();
    for (int t = 0; t < threads_; ++t)
      for (int64_t c = 0; c < D; ++c) {
        dgamma.data<float>()[c] += parts[2 * D * t + c];
        dbeta.data<float>()[c] += parts[2 * D * t + D + c];
      }
  }

  void add_dropout(const Tensor& x, const Tensor& s, const Dropout& d, const Tensor& y) override {
    ranges(s.rows(), 8,
           [&](int64_t begin, int64_t end, int) { kernels_.add_dropout(x.raw(), s.raw(), mask_of(d), y.raw(), s.columns(), begin, end); });
  }

  void dropout_backward(const Tensor& dy, const Dropout& d, const Tensor& ds, Write write) override {
    add_dropout(write == Write::accumulate ? ds : Tensor(), dy, d, ds);
  }

  void relu_dropout_backward(const Tensor& h, double scale, const Tensor& dh) override {
    ranges(h.count(), 1024, [&](int64_t begin, int64_t end, int) {
      kernels_.relu_dropout_backward(h.raw(), static_cast<float>(scale), dh.raw(), begin, end);
    });
  }

  void add(const Tensor& x, const Tensor& y) override {
    ranges(x.count(), 1024, [&](int64_t begin, int64_t end, int) { kernels_.add(x.raw(), y.raw(), begin, end); });
  }

  void gather_rows(const Tensor& x, std::span<const int32_t> index, const Tensor& y, Write write) override {
    CHECK(x.dtype() == y.dtype() && x.columns() == y.columns(), "rows of {} into {}", x.shape().text(), y.shape().text());
    const int64_t D = x.columns(), bytes = D * size_of(x.dtype());
    const auto add = write == Write::accumulate ? loops(x).add : nullptr;
    ranges(index.size(), 1 + kBytes / (bytes + 1), [&](int64_t begin, int64_t end, int) {
      for (int64_t n = begin; n < end; ++n) {
        std::byte* out = y.raw() + n * bytes;
        if (add) {
          if (index[n] >= 0) add(x.raw() + index[n] * bytes, out, 0, D);
        } else if (index[n] < 0) {
          std::memset(out, 0, bytes);
        } else {
          std::memcpy(out, x.raw() + index[n] * bytes, bytes);
        }
      }
    });
  }

  void copy_columns(const Tensor& x, int64_t x_column, const Tensor& y, int64_t y_column, int64_t width, Write write) override {
    CHECK(x.dtype() == y.dtype() && x.rows() <= y.rows() && x_column + width <= x.columns() && y_column + width <= y.columns(),
          "{} columns from {} of {} to {} of {}", width, x_column, x.shape().text(), y_column, y.shape().text());
    const int64_t element = size_of(x.dtype());
    const auto add = write == Write::accumulate ? loops(x).add : nullptr;
    ranges(x.rows(), 1 + kBytes / (width * element + 1), [&](int64_t begin, int64_t end, int) {
      for (int64_t n = begin; n < end; ++n) {
        const std::byte* in = x.raw() + (n * x.columns() + x_column) * element;
        std::byte* out = y.raw() + (n * y.columns() + y_column) * element;
        if (add)
          add(in, out, 0, width);
        else
          std::memcpy(out, in, width * element);
      }
    });
  }

  int64_t clamp(const Tensor& x, double bound, const Tensor& y) override {
    CHECK(x.dtype() == y.dtype(), "clamp of {} into {}", name_of(x.dtype()), name_of(y.dtype()));
    const auto clamp = loops(x).clamp;
    return counted(x.count(), 4096,
                   [&](int64_t begin, int64_t end) { return clamp(x.raw(), static_cast<float>(bound), y.raw(), begin, end); });
  }

  void clamp_backward(const Tensor& x, double bound, const Tensor& dy, const Tensor& dx, Write write) override {
    CHECK(x.dtype() == dx.dtype() && x.dtype() == dy.dtype(), "clamp of {}, gradients {} and {}", name_of(x.dtype()), name_of(dy.dtype()),
          name_of(dx.dtype()));
    const auto backward = loops(x).clamp_backward;
    ranges(x.count(), 4096, [&](int64_t begin, int64_t end, int) {
      backward(x.raw(), static_cast<float>(bound), dy.raw(), dx.raw(), write == Write::accumulate, begin, end);
    });
  }

  int64_t lstm_step(const LstmStep& s) override {
    CHECK(s.past == 0 || s.cell.dtype() == s.cell_before.dtype(), "cells of {} after {}", name_of(s.cell.dtype()),
          name_of(s.cell_before.dtype()));
    kernels::LstmTask t{};
    t.gates = s.gates.raw(), t.recurrent = s.past > 0 ? s.recurrent.data<float>() : nullptr, t.cell_before = s.cell_before.raw();
    t.cell = s.cell.raw(), t.hidden = s.hidden.raw();
    t.width = s.hidden.columns(), t.past = s.past;
    t.narrow_cell = s.cell.dtype() == DType::i16, t.tanh_output = s.tanh_output, t.bound = static_cast<float>(s.bound);
    return counted(s.hidden.count(), kCells, [&](int64_t begin, int64_t end) { return kernels_.lstm_step(t, begin, end); });
  }

  void lstm_step_backward(const LstmStepBackward& s) override {
    kernels::LstmBackwardTask t{};
    t.gates = s.gates.raw(), t.cell_before = s.past > 0 ? s.cell_before.data<float>() : nullptr, t.cell = s.cell.data<float>();
    t.dhidden = s.dhidden.raw(), t.drecurrent = s.next > 0 ? s.drecurrent.data<float>() : nullptr, t.dcell = s.dcell.data<float>();
    t.width = s.dhidden.columns(), t.past = s.past, t.next = s.next;
    t.tanh_output = s.tanh_output, t.bound = static_cast<float>(s.bound);
    ranges(s.dhidden.count(), kCells, [&](int64_t begin, int64_t end, int) { kernels_.lstm_step_backward(t, begin, end); });
  }

  void global_attention(const GlobalAttention& in, const AttentionLayout& layout, const Tensor& y, const Tensor& weights) override {
    clear_outside(y, layout.query);
    each_sentence(in, layout, weights, [&](kernels::GlobalAttentionTask& t, int64_t b, float* scratch) {
      if (t.queries == 0) return;  // a sentence that is finished while others are decoded
      if (t.keys == 0) return clear_rows(y, layout.query[b], layout.query[b + 1]);
      t.y = element(y, layout.query[b], 0);
      kernels_.global_attention(t, scratch);
    });
  }

  void global_attention_backward(const GlobalAttention& in, const AttentionLayout& layout, const Tensor& weights, const Tensor& dy,
                                 const Tensor& dq, const Tensor& dk, const Tensor& dmemory, Write dmemory_write, const Tensor& dv,
                                 Write dv_write) override {
    CHECK(bool(in.v) == bool(dv), "global attention {} v and {} its gradient", in.v ? "with" : "without", dv ? "with" : "without");
    const int64_t sentences = static_cast<int64_t>(layout.query.size()) - 1, A = in.q.columns();
    clear_outside(dq, layout.query), clear_outside(dk, layout.key);
    if (dmemory_write == Write::overwrite) clear_outside(dmemory, layout.key);
    partial_.assign(static_cast<size_t>(dv ? sentences * A : 0), 0.0f);  // dv of each sentence, summed below in their order
    each_sentence(in, layout, weights, [&](kernels::GlobalAttentionTask& t, int64_t b, float* scratch) {
      const int64_t query = layout.query[b], key = layout.key[b];
      if (t.queries == 0 || t.keys == 0) {
        clear_rows(dq, query, layout.query[b + 1]), clear_rows(dk, key, layout.key[b + 1]);
        if (dmemory_write == Write::overwrite) clear_rows(dmemory, key, layout.key[b + 1]);
        return;
      }
      t.dy = element(dy, query, 0), t.dq = element(dq, query, 0), t.dk = element(dk, key, 0), t.dmemory = element(dmemory, key, 0);
      t.accumulate = dmemory_write == Write::accumulate;
      t.dv = dv ? partial_.data() + b * A : nullptr;
      kernels_.global_attention_backward(t, scratch);
    });
    if (!dv) return;
    if (dv_write == Write::overwrite) dv.zero();
    ranges(A, 64, [&](int64_t begin, int64_t end, int) { wide_.column_sums(partial_.data(), dv.data<float>(), sentences, A, begin, end); });
  }

  void attention(const AttentionInput& in, const AttentionLayout& layout, const Dropout& d, const Tensor& y, const Tensor& lse) override {
    const int64_t D = y.columns();
    const int64_t used = layout.query.back();
    std::memset(y.raw() + used * D * size_of(activation_), 0, (y.rows() - used) * D * size_of(activation_));
    each_head(in, layout, d, D, [&](kernels::AttentionTask& t, int64_t first, int64_t head, float* scratch) {
      t.lse = lse.data<float>() + first * layout.heads + head;
      t.y = element(y, first, head * t.head_width), t.ldy = D;
      kernels_.attention(t, scratch);
    });
  }

  void attention_backward(const AttentionInput& in, const AttentionLayout& layout, const Dropout& d, const Tensor& lse, const Tensor& dy,
                          const Tensor& dq, const Tensor& dkv) override {
    const int64_t D = dy.columns();
    clear_idle(dq, layout.query.back(), in.q_column, D);
    clear_idle(dkv, layout.key.back(), in.k_column, D);
    clear_idle(dkv, layout.key.back(), in.v_column, D);
    each_head(in, layout, d, D, [&](kernels::AttentionTask& t, int64_t first, int64_t head, float* scratch) {
      const int64_t first_key = (static_cast<const std::byte*>(t.k) - in.kv.raw()) / size_of(activation_) / in.kv.columns();
      const int64_t column = head * t.head_width;
      t.lse = lse.data<float>() + first * layout.heads + head;
      t.dy = element(dy, first, column), t.ldy = D;
      t.dq = element(dq, first, in.q_column + column), t.ld_dq = dq.columns();
      t.dk = element(dkv, first_key, in.k_column + column), t.dv = element(dkv, first_key, in.v_column + column), t.ld_dkv = dkv.columns();
      kernels_.attention_backward(t, scratch);
    });
  }

  void attend_cached(const Tensor& q, int64_t q_column, const Tensor& kv, int64_t k_column, int64_t v_column,
                     std::span<const int32_t> index, std::span<const int32_t> offsets, int64_t heads, const Tensor& y,
                     std::span<float> weights) override {
    const int64_t D = y.columns();
    int32_t longest = 0;
    for (size_t r = 0; r + 1 < offsets.size(); ++r) longest = std::max(longest, offsets[r + 1] - offsets[r]);
    reserve_scratch(heads * longest + 64);
    ranges(static_cast<int64_t>(offsets.size()) - 1, 1, [&](int64_t begin, int64_t end, int thread) {
      for (int64_t r = begin; r < end; ++r) {
        const int64_t length = offsets[r + 1] - offsets[r];
        kernels_.attend_cached(element(q, r, q_column), kv.raw(), kv.columns(), k_column, v_column, index.data() + offsets[r], length,
                               D / heads, heads, element(y, r, 0), weights.empty() ? nullptr : weights.data() + offsets[r],
                               scratch(thread));
      }
    });
  }

  void smoothed_loss(const Tensor& logits, const LossRows& rows, const Tensor& row_loss, const Tensor& dlogits) override {
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

  void log_softmax_top_k(const Tensor& logits, int64_t k, std::span<float> values, std::span<int32_t> indices) override {
    const int64_t V = logits.columns();
    ranges(logits.rows(), 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t r = begin; r < end; ++r)
        kernels_.log_softmax_top_k(logits.data<float>() + r * V, V, k, values.data() + r * k, indices.data() + r * k);
    });
  }

  void sample(const Tensor& logits, std::span<const double> uniform, std::span<int32_t> tokens) override {
    const int64_t V = logits.columns();
    ranges(logits.rows(), 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t r = begin; r < end; ++r) tokens[r] = kernels_.sample(logits.data<float>() + r * V, V, uniform[r]);
    });
  }

  double sum_of_squares(const Tensor& x) override {
    std::vector<double> parts(threads_, 0.0);
    ranges(x.count(), 4096, [&](int64_t begin, int64_t end, int t) { parts[t] = kernels_.sum_of_squares(x.data<float>(), begin, end); });
    double total = 0;
    for (double p : parts) total += p;
    return total;
  }

  void adam(const Tensor& value, const Tensor& gradient, const Tensor& m, const Tensor& v, const AdamStep& s) override {
    const auto correction = [&](double beta) { return static_cast<float>(1 - std::pow(beta, static_cast<double>(s.update))); };
    ranges(value.count(), 4096, [&](int64_t begin, int64_t end, int) {
      kernels_.adam(value.data<float>(), gradient.data<float>(), m.data<float>(), v.data<float>(), static_cast<float>(s.rate),
                    static_cast<float>(s.beta1), static_cast<float>(s.beta2), static_cast<float>(s.epsilon),
                    s.decoupled ? 0.0f : static_cast<float>(s.weight_decay), s.decoupled ? static_cast<float>(s.weight_decay) : 0.0f,
                    static_cast<float>(s.scale), correction(s.beta1), correction(s.beta2), begin, end);
    });
  }

  void adagrad(const Tensor& value, const Tensor& gradient, const Tensor& v, const AdagradStep& s) override {
    ranges(value.count(), 4096, [&](int64_t begin, int64_t end, int) {
      kernels_.adagrad(value.data<float>(), gradient.data<float>(), v.data<float>(), static_cast<float>(s.rate),
                       static_cast<float>(s.epsilon), static_cast<float>(s.weight_decay), static_cast<float>(s.scale), begin, end);
    });
  }

  void sgd(const Tensor& value, const Tensor& gradient, const SgdStep& s) override {
    ranges(value.count(), 4096, [&](int64_t begin, int64_t end, int) {
      kernels_.sgd(value.data<float>(), gradient.data<float>(), static_cast<float>(s.rate), static_cast<float>(s.weight_decay),
                   static_cast<float>(s.scale), begin, end);
    });
  }

  void moving_average(const Tensor& value, const Tensor& average, double decay) override {
    ranges(value.count(), 4096, [&](int64_t begin, int64_t end, int) {
      kernels_.moving_average(value.data<float>(), average.data<float>(), static_cast<float>(decay), begin, end);
    });
  }

  int64_t compress(const Compression& c) override {
    const CodeLayout& layout = *c.layout;
    const kernels::CompressionTask task{c.layout,
                                        c.x.data<float>(),
                                        c.residual.data<float>(),
                                        c.velocity ? c.velocity.data<float>() : nullptr,
                                        static_cast<float>(c.decay),
                                        static_cast<float>(c.momentum),
                                        c.local,
                                        static_cast<float>(c.local_scale),
                                        reinterpret_cast<uint8_t*>(c.code.data<int8_t>())};
    if (!layout.by_tensor)
      return first_bad(0, layout.chunks.size(), [&](size_t begin, size_t end, int) { return compression_.compress(task, begin, end); });
    for (const CodePart& part : layout.parts)
      if (const int64_t bad = compress_tensor(task, part); bad >= 0) return bad;
    return -1;
  }

  void decompress(const CodeLayout& layout, const Tensor& codes, double scale, const Tensor& sum) override {
    const auto* code = reinterpret_cast<const uint8_t*>(codes.data<int8_t>());
    std::vector<std::vector<int64_t>> places;
    for (int64_t at = 0; at + layout.bytes <= codes.count() && layout.bytes > 0; at += layout.bytes)
      places.push_back(code_places(layout, code + at));
    ranges(static_cast<int64_t>(layout.chunks.size()), 1, [&](int64_t begin, int64_t end, int) {
      compression_.decompress(layout, code, places, static_cast<float>(scale), sum.data<float>(), static_cast<size_t>(begin),
                              static_cast<size_t>(end));
    });
  }

 private:
  // The first of what f(begin, end, thread) returns over ranges of chunks, or -1.
  template <class F>
  int64_t first_bad(size_t first, size_t last, F f) const {
    std::vector<int64_t> bad(threads_, -1);
    ranges(static_cast<int64_t>(last - first), 1,
           [&](int64_t begin, int64_t end, int t) { bad[t] = f(first + static_cast<size_t>(begin), first + static_cast<size_t>(end), t); });
    for (const int64_t b : bad)
      if (b >= 0) return b;
    return -1;
  }

  // Below the part.keep-th largest magnitude of a tensor with near certainty, and not by much: from at most 100,000 of its elements.
  static int32_t sampled_threshold(const kernels::CompressionTask& t, int64_t begin, int64_t n, int64_t keep) {
    const int64_t stride = std::max<int64_t>(1, n / 100000) | 1;
    std::vector<float> sample;
    for (int64_t i = begin; i < begin + n; i += stride)
      sample.push_back(std::abs(t.decay * t.residual[i] + t.x[i] + (t.velocity ? t.momentum * t.velocity[i] : 0)));
    const double expected = static_cast<double>(keep) * static_cast<double>(sample.size()) / static_cast<double>(n);
    const auto rank = static_cast<size_t>(1.1 * expected + 4 * std::sqrt(expected) + 4);
    if (rank >= sample.size()) return 1;
    std::nth_element(sample.begin(), sample.begin() + static_cast<int64_t>(rank), sample.end(),
                     [](float a, float b) { return a > b || (std::isnan(a) && !std::isnan(b)); });
    int32_t bits;
    std::memcpy(&bits, &sample[rank], sizeof bits);
    return std::clamp(bits, 1, 0x7f7fffff);
  }

  // The part.keep largest of a tensor: gather candidates above a threshold that is low enough, find the exact one among them, send.
  int64_t compress_tensor(const kernels::CompressionTask& task, const CodePart& part) const {
    const std::vector<CodeChunk>& chunks = task.layout->chunks;
    const size_t first = part.first, n = part.last - part.first;
    if (n == 0) return -1;
    const int64_t begin = chunks[first].begin, end = chunks[part.last - 1].begin + chunks[part.last - 1].count;
    std::vector<int32_t> magnitudes, counts(n), ties(n);
    int32_t threshold = sampled_threshold(task, begin, end - begin, part.keep);
    if (const int64_t bad = gather(task, part, threshold, false, magnitudes, counts); bad >= 0) return bad;
    if (static_cast<int64_t>(magnitudes.size()) < part.keep && threshold > 1)  // the sample was not like the rest
      gather(task, part, threshold = 1, true, magnitudes, counts);
    if (static_cast<int64_t>(magnitudes.size()) > part.keep)
      threshold = cut(magnitudes, part.keep, counts, ties);
    else
      ties = counts;
    for (size_t c = 0; c < n; ++c) put(task.code + chunks[first + c].header, static_cast<uint16_t>(counts[c]));
    const std::vector<int64_t> places = code_places(*task.layout, task.code, part);
    ranges(static_cast<int64_t>(n), 1, [&](int64_t b, int64_t e, int) {
      compression_.send(task, first + static_cast<size_t>(b), first + static_cast<size_t>(e), threshold, ties.data() + b,
                        places.data() + b);
    });
    return -1;
  }

  // The magnitudes of at least the threshold, in the order of the chunks, and how many of each chunk; again: the residual has it all.
  int64_t gather(const kernels::CompressionTask& task, const CodePart& part, int32_t threshold, bool again,
                 std::vector<int32_t>& magnitudes, std::vector<int32_t>& counts) const {
    std::vector<std::vector<int32_t>> parts(threads_);
    const int64_t bad = first_bad(part.first, part.last, [&](size_t begin, size_t end, int t) {
      return compression_.gather(task, begin, end, threshold, again, parts[t], counts.data() + (begin - part.first));
    });
    magnitudes.clear();
    for (const auto& p : parts) magnitudes.insert(magnitudes.end(), p.begin(), p.end());
    return bad;
  }

  // The keep-th largest magnitude; counts become those of the chunks' entries, of which ties lie at that threshold.
  static int32_t cut(const std::vector<int32_t>& magnitudes, int64_t keep, std::vector<int32_t>& counts, std::vector<int32_t>& ties) {
    std::vector<int32_t> ordered = magnitudes;
    std::nth_element(ordered.begin(), ordered.begin() + keep, ordered.end(), std::greater<>());
    const int32_t next = ordered[static_cast<size_t>(keep)];  // the largest that stays behind
    const int32_t threshold = keep == 0 ? next : *std::min_element(ordered.begin(), ordered.begin() + keep);
    int64_t left = keep - std::count_if(ordered.begin(), ordered.begin() + keep, [&](int32_t m) { return m > threshold; });
    auto m = magnitudes.begin();
    for (size_t c = 0; c < counts.size(); ++c) {
      const auto last = m + counts[c];
      for (counts[c] = 0; m != last; ++m) {
        const bool tie = *m == threshold && left > 0;
        ties[c] += tie, left -= tie, counts[c] += tie || *m > threshold;
      }
    }
    return threshold;
  }

  // Three passes: rows to integers, the product, integers to the result, in place where they are of one size. oneDNN can do the third
  // itself only with scales that are built into the generated code, one primitive a weight.
  void linear_int8(const Tensor& x, const PackedInt8& w, const Tensor& b, const Tensor& y, Activation activation, Write write) {
    const int64_t N = x.rows(), in = w.in, out = w.out;
    CHECK(x.columns() == in && y.columns() == out && y.rows() == N, "{} times [{}, {}] into {}", x.shape().text(), in, out,
          y.shape().text());
    const bool wide = y.dtype() == DType::f32, accumulate = write == Write::accumulate, in_place = wide && !accumulate;
    const DType narrow = w.integers ? DType::i8 : DType::f32, sum = w.integers ? DType::i32 : DType::f32;
    int8_arena_.release({});
    const Tensor q = int8_arena_.allocate({N, in}, narrow), units = int8_arena_.allocate({N}, DType::f32);
    const Tensor sums = in_place ? y : int8_arena_.allocate({N, out}, sum);
    ranges(N, 8, [&](int64_t begin, int64_t end, int) {
      kernels_.quantize_rows(x.raw(), w.input_bound, q.raw(), w.integers, units.data<float>(), in, begin, end);
    });
    products_.multiply_int8(q, w, sums);
    ranges(N, 8, [&](int64_t begin, int64_t end, int) {
      kernels_.scale_products(sums.raw(), w.integers, units.data<float>(), w.scales.data(), b ? b.data<float>() : nullptr,
                              activation == Activation::relu, accumulate, y.raw(), wide, out, begin, end);
    });
  }

  // oneDNN and the loops share OpenMP's threads; another backend of this process may have set another number.
  void enter() const {
    if (omp_get_max_threads() != threads_) omp_set_num_threads(threads_);
  }

  // f(begin, end, thread) over [0, n) in one contiguous, fixed range per thread, cut at multiples of `grain`.
  template <class F>
  void ranges(int64_t n, int64_t grain, F f) const {
    const int64_t pieces = (n + grain - 1) / grain;
    const int threads = static_cast<int>(std::min<int64_t>(threads_, pieces));
    if (threads <= 1) return f(int64_t{0}, n, 0);
#pragma omp parallel num_threads(threads)
    {
      const int t = omp_get_thread_num(), count = omp_get_num_threads();
      const int64_t begin = pieces * t / count * grain, end = std::min(n, pieces * (t + 1) / count * grain);
      if (begin < end) f(begin, end, t);
    }
  }

  // The sum of what f(begin, end) counts in the ranges.
  template <class F>
  int64_t counted(int64_t n, int64_t grain, F f) const {
    std::atomic<int64_t> total = 0;
    ranges(n, grain, [&](int64_t begin, int64_t end, int) { total += f(begin, end); });
    return total;
  }

  const kernels::Table& loops(const Tensor& t) const {
    CHECK(t.dtype() == DType::f32 || t.dtype() == activation_, "arithmetic on {}", name_of(t.dtype()));
    return t.dtype() == DType::f32 ? wide_ : kernels_;
  }

  std::byte* element(const Tensor& t, int64_t row, int64_t column) const {
    return t.raw() + (row * t.columns() + column) * size_of(activation_);
  }

  void clear_idle(const Tensor& t, int64_t first, int64_t column, int64_t D) const {
    for (int64_t n = first; n < t.rows(); ++n) std::memset(element(t, n, column), 0, D * size_of(activation_));
  }

  static void clear_rows(const Tensor& t, int64_t begin, int64_t end) {
    const int64_t row = t.columns() * size_of(t.dtype());
    std::memset(t.raw() + begin * row, 0, (end - begin) * row);
  }
  // Rows of no sentence.
  static void clear_outside(const Tensor& t, std::span<const int32_t> offsets) {
    clear_rows(t, 0, offsets.front()), clear_rows(t, offsets.back(), t.rows());
  }

  // Before a parallel region, since an exception (no memory) must not leave one.
  void reserve_scratch(int64_t floats) {
    for (auto& buffer : scratch_)
      if (!buffer || buffer->bytes() < floats * 4) buffer.reset(), buffer = std::make_unique<Storage>(floats * 4);
  }
  float* scratch(int thread) const { return reinterpret_cast<float*>(scratch_[thread]->data()); }

  // One task per sentence and head; tasks write disjoint memory, so their order does not matter.
  template <class F>
  void each_head(const AttentionInput& in, const AttentionLayout& layout, const Dropout& d, int64_t D, F f) {
    const int64_t sentences = static_cast<int64_t>(layout.query.size()) - 1, heads = layout.heads;
    int64_t largest = 0;
    for (int64_t b = 0; b < sentences; ++b)
      largest = std::max(largest,
                         kernels_.attention_scratch(layout.query[b + 1] - layout.query[b], layout.key[b + 1] - layout.key[b], D / heads));
    reserve_scratch(largest);
#pragma omp parallel for schedule(dynamic, 8) num_threads(threads_)
    for (int64_t task = 0; task < sentences * heads; ++task) {
      const int64_t b = task / heads, h = task % heads, first = layout.query[b];
      kernels::AttentionTask t{};
      t.queries = layout.query[b + 1] - first, t.keys = layout.key[b + 1] - layout.key[b], t.head_width = D / heads;
      if (t.queries == 0 || t.keys == 0) continue;
      t.causal = layout.causal;
      t.scale = 1.0f / std::sqrt(static_cast<float>(t.head_width));
      t.q = element(in.q, first, in.q_column + h * t.head_width), t.ldq = in.q.columns();
      t.k = element(in.kv, layout.key[b], in.k_column + h * t.head_width);
      t.v = element(in.kv, layout.key[b], in.v_column + h * t.head_width), t.ldkv = in.kv.columns();
      t.lse_stride = heads;
      t.mask = mask_of(d);
      if (d.active()) t.mask.key = dropout_head_key(d.key, h), t.mask.sentence += first, t.mask.position += first;
      f(t, first, h, scratch(omp_get_thread_num()));
    }
  }

  // One task per sentence of global attention; f also gets those without queries or keys.
  template <class F>
  void each_sentence(const GlobalAttention& in, const AttentionLayout& layout, const Tensor& weights, F f) {
    const int64_t sentences = static_cast<int64_t>(layout.query.size()) - 1, A = in.q.columns(), D = in.memory.columns();
    int64_t largest = 0;
    first_weight_.assign(1, 0);
    for (int64_t b = 0; b < sentences; ++b) {
      const int64_t queries = layout.query[b + 1] - layout.query[b], keys = layout.key[b + 1] - layout.key[b];
      largest = std::max(largest, kernels_.global_attention_scratch(queries, keys, A, D));
      first_weight_.push_back(first_weight_.back() + queries * keys);
    }
    CHECK(weights.count() >= first_weight_.back() && in.k.columns() == A && in.q.dtype() == activation_ && in.k.dtype() == activation_ &&
              in.memory.dtype() == activation_,
          "global attention of {} {} to {} {} over {} {} with {} weights for {}", name_of(in.q.dtype()), in.q.shape().text(),
          name_of(in.k.dtype()), in.k.shape().text(), name_of(in.memory.dtype()), in.memory.shape().text(), weights.count(),
          first_weight_.back());
    reserve_scratch(largest);
    float* const p = weights.data<float>();
    const float* const v = in.v ? in.v.data<float>() : nullptr;
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads_) if (first_weight_.back() * (A + D) > kPairs)
    for (int64_t b = 0; b < sentences; ++b) {
      kernels::GlobalAttentionTask t{};
      t.q = element(in.q, layout.query[b], 0), t.k = element(in.k, layout.key[b], 0), t.v = v,
      t.memory = element(in.memory, layout.key[b], 0);
      t.queries = layout.query[b + 1] - layout.query[b], t.keys = layout.key[b + 1] - layout.key[b], t.width = A, t.values = D;
      t.weights = p + first_weight_[b];
      f(t, b, scratch(omp_get_thread_num()));
    }
  }

  void extend_signal(int64_t positions, int64_t D) {
    if (signal_width_ == D && static_cast<int64_t>(signal_.size()) >= positions * D) return;
    positions = std::max<int64_t>(positions * 3 / 2, 256);
    signal_.resize(static_cast<size_t>(positions * D + 64));
    signal_width_ = D;
    for (int64_t p = 0; p < positions; ++p)
      for (int64_t c = 0; c < D; ++c) signal_[p * D + c] = static_cast<float>(sinusoid(p, c, D));
  }

  // Work of a few microseconds each: less is not worth a second thread.
  static constexpr int64_t kBytes = 32768;  // copied
  static constexpr int64_t kCells = 2048;   // of an LSTM step
  static constexpr int64_t kPairs = 65536;  // elements of queries with those of keys

  DType activation_;
  int threads_;
  const kernels::Table& kernels_;  // for activations
  const kernels::Table& wide_;     // for f32
  const kernels::CompressionTable& compression_ = compression_table();
  Products products_;
  Arena int8_arena_;  // working memory of one 8-bit product
  std::vector<std::unique_ptr<Storage>> scratch_;
  std::vector<float> signal_, partial_;
  std::vector<int64_t> first_weight_;
  int64_t signal_width_ = 0;
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(DType activation, int threads) {
  if (threads <= 0) threads = omp_get_num_procs();
  omp_set_num_threads(threads);
  omp_set_dynamic(0);
  return std::make_unique<CpuBackend>(activation, threads);
}

}  // namespace starling
