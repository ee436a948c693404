#include "tests/queued/queued_backend.h"

#include <optional>
#include <utility>

namespace starling {
namespace {

// A weight that is packed when its turn comes. In the next packing of it, the queue's, the form before is used again.
struct QueuedPacked : Packed {
  std::shared_ptr<std::shared_ptr<Packed>> form = std::make_shared<std::shared_ptr<Packed>>();
};
std::shared_ptr<std::shared_ptr<Packed>> form_of(const Packed& w) {
  const auto* queued = dynamic_cast<const QueuedPacked*>(&w);
  CHECK(queued, "a weight that another backend has packed");
  return queued->form;
}

}  // namespace

Tensor QueuedDevice::inner(const Tensor& x) const {
  if (!x) return {};
  CHECK(&x.memory() == &memory, "an op gets a tensor {} that does not lie in its backend's memory", x.shape().text());
  static const auto kHost = std::make_shared<Storage>(0);
  return Tensor(kHost, x.raw(), x.shape(), x.dtype());
}

Dropout QueuedDevice::inner(Dropout d) const {
  if (d.active()) d.rows = {inner(d.rows.sentence), inner(d.rows.position)};
  return d;
}

QueuedBackend::QueuedBackend(std::unique_ptr<Backend> inner, std::shared_ptr<QueuedDevice> device)
    : device_(std::move(device)), inner_(std::move(inner)), flat_(make_queued_flat_ops(inner_->flat(), *device_)) {}

// The inner backend must outlive its queued ops, whose failures nobody can wait for any more.
QueuedBackend::~QueuedBackend() { device_->queue.finish(); }

std::shared_ptr<Packed> QueuedBackend::pack(const Tensor& w, bool transposed, std::shared_ptr<Packed> reuse) {
  auto packed = reuse ? std::static_pointer_cast<QueuedPacked>(reuse) : std::make_shared<QueuedPacked>();
  packed->in = transposed ? w.columns() : w.rows(), packed->out = transposed ? w.rows() : w.columns();
  packed->quantized = false;
  later([this, w = inner(w), transposed, form = packed->form] { *form = inner_->pack(w, transposed, std::move(*form)); });
  return packed;
}

void QueuedBackend::linear(const Tensor& x, const Packed& w, const Tensor& b, const Tensor& y, Activation a, Write write) {
  later([this, x = inner(x), form = form_of(w), b = inner(b), y = inner(y), a, write] { inner_->linear(x, **form, b, y, a, write); });
}

std::shared_ptr<Packed> QueuedBackend::pack_constant(const Tensor& w, bool transposed) {
  auto packed = std::make_shared<QueuedPacked>();
  device_->now([&, w = inner(w)] { *packed->form = inner_->pack_constant(w, transposed); });
  static_cast<Packed&>(*packed) = **packed->form;
  return packed;
}

std::shared_ptr<Packed> QueuedBackend::pack_int8(const Tensor& w, bool transposed, double input_bound) {
  auto packed = std::make_shared<QueuedPacked>();
  device_->now([&, w = inner(w)] { *packed->form = inner_->pack_int8(w, transposed, input_bound); });
  static_cast<Packed&>(*packed) = **packed->form;
  return packed;
}

void QueuedBackend::weight_gradient(const Tensor& a, const Tensor& c, const Tensor& dw, Write write) {
  later([this, a = inner(a), c = inner(c), dw = inner(dw), write] { inner_->weight_gradient(a, c, dw, write); });
}

void QueuedBackend::column_sums(const Tensor& dy, const Tensor& db, Write write) {
  later([this, dy = inner(dy), db = inner(db), write] { inner_->column_sums(dy, db, write); });
}

void QueuedBackend::embed(const Ints& tokens, const Ints& positions, const Tensor& table, double scale, const Dropout& d, const Tensor& y) {
  later([this, tokens = inner(tokens), positions = inner(positions), table = inner(table), scale, d = inner(d), y = inner(y)] {
    inner_->embed(tokens, positions, table, scale, d, y);
  });
}

void QueuedBackend::embed_backward(const Ints& tokens, double scale, const Dropout& d, const Tensor& dy, const Tensor& dtable) {
  later([this, tokens = inner(tokens), scale, d = inner(d), dy = inner(dy), dtable = inner(dtable)] {
    inner_->embed_backward(tokens, scale, d, dy, dtable);
  });
}

void QueuedBackend::layer_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, double epsilon, const Tensor& y,
                               const Tensor& statistics) {
  later([this, x = inner(x), gamma = inner(gamma), beta = inner(beta), epsilon, y = inner(y), statistics = inner(statistics)] {
    inner_->layer_norm(x, gamma, beta, epsilon, y, statistics);
  });
}

void QueuedBackend::layer_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& gamma, const Tensor& statistics, const Tensor& dx,
                                        Write dx_write, const Tensor& dgamma, const Tensor& dbeta, Write parameter_write) {
  later([this, dy = inner(dy), x = inner(x), gamma = inner(gamma), statistics = inner(statistics), dx = inner(dx), dx_write,
         dgamma = inner(dgamma), dbeta = inner(dbeta),
         parameter_write] { inner_->layer_norm_backward(dy, x, gamma, statistics, dx, dx_write, dgamma, dbeta, parameter_write); });
}

void QueuedBackend::add_dropout(const Tensor& x, const Tensor& s, const Dropout& d, const Tensor& y) {
  later([this, x = inner(x), s = inner(s), d = inner(d), y = inner(y)] { inner_->add_dropout(x, s, d, y); });
}

void QueuedBackend::dropout_backward(const Tensor& dy, const Dropout& d, const Tensor& ds, Write write) {
  later([this, dy = inner(dy), d = inner(d), ds = inner(ds), write] { inner_->dropout_backward(dy, d, ds, write); });
}

void QueuedBackend::relu_dropout_backward(const Tensor& h, double scale, const Tensor& dh) {
  later([this, h = inner(h), scale, dh = inner(dh)] { inner_->relu_dropout_backward(h, scale, dh); });
}

void QueuedBackend::activate(const Tensor& x, Activation a, const Tensor& y) {
  later([this, x = inner(x), a, y = inner(y)] { inner_->activate(x, a, y); });
}

void QueuedBackend::activate_backward(const Tensor& x, Activation a, const Tensor& dy) {
  later([this, x = inner(x), a, dy = inner(dy)] { inner_->activate_backward(x, a, dy); });
}

void QueuedBackend::add(const Tensor& x, const Tensor& y) {
  later([this, x = inner(x), y = inner(y)] { inner_->add(x, y); });
}

void QueuedBackend::gather_rows(const Tensor& x, const Ints& index, const Tensor& y, Write write) {
  later([this, x = inner(x), index = inner(index), y = inner(y), write] { inner_->gather_rows(x, index, y, write); });
}

void QueuedBackend::scatter_rows(const Tensor& x, int64_t x_column, const Ints& index, const Tensor& y) {
  later([this, x = inner(x), x_column, index = inner(index), y = inner(y)] { inner_->scatter_rows(x, x_column, index, y); });
}

void QueuedBackend::copy_columns(const Tensor& x, int64_t x_column, const Tensor& y, int64_t y_column, int64_t width, Write write) {
  later([this, x = inner(x), x_column, y = inner(y), y_column, width, write] {
    inner_->copy_columns(x, x_column, y, y_column, width, write);
  });
}

void QueuedBackend::clamp(const Tensor& x, double bound, const Tensor& y, const Tensor& clipped) {
  later([this, x = inner(x), bound, y = inner(y), clipped = inner(clipped)] { inner_->clamp(x, bound, y, clipped); });
}

void QueuedBackend::clamp_backward(const Tensor& x, double bound, const Tensor& dy, const Tensor& dx, Write write) {
  later([this, x = inner(x), bound, dy = inner(dy), dx = inner(dx), write] { inner_->clamp_backward(x, bound, dy, dx, write); });
}

void QueuedBackend::lstm_step(const LstmStep& s) {
  LstmStep step = s;
  for (Tensor* t : {&step.gates, &step.recurrent, &step.cell_before, &step.cell, &step.hidden, &step.clipped}) *t = inner(*t);
  later([this, step] { inner_->lstm_step(step); });
}

void QueuedBackend::lstm_step_backward(const LstmStepBackward& s) {
  LstmStepBackward step = s;
  for (Tensor* t : {&step.gates, &step.cell_before, &step.cell, &step.dhidden, &step.drecurrent, &step.dcell}) *t = inner(*t);
  later([this, step] { inner_->lstm_step_backward(step); });
}

void QueuedBackend::ssru(const Ssru& s) {
  Ssru own = s;
  own.offsets = inner(s.offsets);
  for (Tensor* t : {&own.candidate, &own.forget, &own.before, &own.cell, &own.hidden}) *t = inner(*t);
  later([this, own] { inner_->ssru(own); });
}

void QueuedBackend::ssru_backward(const SsruBackward& s) {
  SsruBackward own = s;
  own.offsets = inner(s.offsets);
  for (Tensor* t : {&own.candidate, &own.forget, &own.cell, &own.dhidden, &own.dcandidate, &own.dforget}) *t = inner(*t);
  later([this, own] { inner_->ssru_backward(own); });
}

void QueuedBackend::attention(const AttentionInput& in, const AttentionLayout& layout, const Dropout& d, const Tensor& y,
                              const Tensor& lse) {
  later([this, own = inner(in), layout = inner(layout), d = inner(d), y = inner(y), lse = inner(lse)] {
    inner_->attention(own, layout, d, y, lse);
  });
}

void QueuedBackend::attention_backward(const AttentionInput& in, const AttentionLayout& layout, const Dropout& d, const Tensor& lse,
                                       const Tensor& dy, const Tensor& dq, const Tensor& dkv) {
  later([this, own = inner(in), layout = inner(layout), d = inner(d), lse = inner(lse), dy = inner(dy), dq = inner(dq), dkv = inner(dkv)] {
    inner_->attention_backward(own, layout, d, lse, dy, dq, dkv);
  });
}

void QueuedBackend::attend_cached(const AttentionInput& in, const Ints& index, const Ints& offsets, int64_t heads, const Tensor& y,
                                  const Tensor& weights) {
  later([this, own = inner(in), index = inner(index), offsets = inner(offsets), heads, y = inner(y), weights = inner(weights)] {
    inner_->attend_cached(own, index, offsets, heads, y, weights);
  });
}

void QueuedBackend::global_attention(const GlobalAttention& in, const AttentionLayout& layout, const Tensor& y, const Tensor& weights) {
  const GlobalAttention own{inner(in.q), inner(in.k), inner(in.v), inner(in.memory)};
  later([this, own, layout = inner(layout), y = inner(y), weights = inner(weights)] { inner_->global_attention(own, layout, y, weights); });
}

void QueuedBackend::global_attention_backward(const GlobalAttention& in, const AttentionLayout& layout, const Tensor& weights,
                                              const Tensor& dy, const Tensor& dweights, const Tensor& dq, const Tensor& dk,
                                              const Tensor& dmemory, Write dmemory_write, const Tensor& dv, Write dv_write) {
  const GlobalAttention own{inner(in.q), inner(in.k), inner(in.v), inner(in.memory)};
  later([this, own, layout = inner(layout), weights = inner(weights), dy = inner(dy), dweights = inner(dweights), dq = inner(dq),
         dk = inner(dk), dmemory = inner(dmemory), dmemory_write, dv = inner(dv), dv_write] {
    inner_->global_attention_backward(own, layout, weights, dy, dweights, dq, dk, dmemory, dmemory_write, dv, dv_write);
  });
}

void QueuedBackend::smoothed_loss(const Tensor& logits, const LossRows& rows, const Tensor& row_loss, const Tensor& dlogits) {
  later([this, logits = inner(logits), rows = inner(rows), row_loss = inner(row_loss), dlogits = inner(dlogits)] {
    inner_->smoothed_loss(logits, rows, row_loss, dlogits);
  });
}

void QueuedBackend::shard_exponentials(const LogitsShard& s, const LossRows& rows) {
  later([this, s = inner(s), rows = inner(rows)] { inner_->shard_exponentials(s, rows); });
}

void QueuedBackend::rescale_shard(const LogitsShard& s, const Tensor& group_top) {
  later([this, s = inner(s), group_top = inner(group_top)] { inner_->rescale_shard(s, group_top); });
}

void QueuedBackend::shard_loss(const LogitsShard& s, const Tensor& group_top, const LossRows& rows, const Tensor& row_loss,
                               const Tensor& dlogits) {
  later([this, s = inner(s), group_top = inner(group_top), rows = inner(rows), row_loss = inner(row_loss), dlogits = inner(dlogits)] {
    inner_->shard_loss(s, group_top, rows, row_loss, dlogits);
  });
}

void QueuedBackend::loss_sums(const Tensor& row_loss, const LossRows& rows, const Tensor& sums) {
  later([this, row_loss = inner(row_loss), rows = inner(rows), sums = inner(sums)] { inner_->loss_sums(row_loss, rows, sums); });
}

void QueuedBackend::top_logits(const Tensor& logits, int64_t k, const Tensor& values, const Tensor& indices, const Tensor& denominator) {
  later([this, logits = inner(logits), k, values = inner(values), indices = inner(indices), denominator = inner(denominator)] {
    inner_->top_logits(logits, k, values, indices, denominator);
  });
}

void QueuedBackend::linear_top_logits(const Tensor& x, const Packed& w, const Tensor& b, double bound, int64_t k, const Tensor& values,
                                      const Tensor& indices, const Tensor& denominator) {
  later([this, x = inner(x), form = form_of(w), b = inner(b), bound, k, values = inner(values), indices = inner(indices),
         denominator = inner(denominator)] { inner_->linear_top_logits(x, **form, b, bound, k, values, indices, denominator); });
}

void QueuedBackend::sample(const Tensor& logits, const HostDeviceArray<double>& uniform, const Tensor& tokens) {
  later([this, logits = inner(logits), uniform = inner(uniform), tokens = inner(tokens)] { inner_->sample(logits, uniform, tokens); });
}

void QueuedBackend::sum_of_squares(const Tensor& x, const Tensor& sum) {
  later([this, x = inner(x), sum = inner(sum)] { inner_->sum_of_squares(x, sum); });
}

void QueuedBackend::adam(const Tensor& value, const Tensor& gradient, const Tensor& m, const Tensor& v, const AdamStep& step) {
  later([this, value = inner(value), gradient = inner(gradient), m = inner(m), v = inner(v), step] {
    inner_->adam(value, gradient, m, v, step);
  });
}

void QueuedBackend::adagrad(const Tensor& value, const Tensor& gradient, const Tensor& v, const AdagradStep& step) {
  later([this, value = inner(value), gradient = inner(gradient), v = inner(v), step] { inner_->adagrad(value, gradient, v, step); });
}

void QueuedBackend::sgd(const Tensor& value, const Tensor& gradient, const SgdStep& step) {
  later([this, value = inner(value), gradient = inner(gradient), step] { inner_->sgd(value, gradient, step); });
}

void QueuedBackend::moving_average(const Tensor& value, const Tensor& average, double decay) {
  later([this, value = inner(value), average = inner(average), decay] { inner_->moving_average(value, average, decay); });
}

void QueuedBackend::compress(const Compression& c) {
  Compression task = c;
  for (Tensor* t : {&task.x, &task.residual, &task.velocity, &task.code, &task.bad}) *t = inner(*t);
  later([this, task, layout = *c.layout]() mutable {
    task.layout = &layout;
    inner_->compress(task);
  });
}

void QueuedBackend::decompress(const CodeLayout& layout, const Tensor& codes, double scale, const Tensor& sum) {
  later([this, layout, codes = inner(codes), scale, sum = inner(sum)] { inner_->decompress(layout, codes, scale, sum); });
}

}  // namespace starling
