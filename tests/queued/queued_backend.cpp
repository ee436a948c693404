#include "tests/queued/queued_backend.h"

#include <tuple>
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

QueuedDevice::LatePacked::operator const Packed&() const { return **form; }
QueuedDevice::LateCompression::operator Compression() const {
  Compression own = task;
  own.layout = &layout;
  return own;
}

QueuedDevice::LatePacked QueuedDevice::inner(const Packed& w) const { return {form_of(w)}; }

QueuedDevice::LateCompression QueuedDevice::inner(const Compression& c) const {
  return {inner_of(c, {&Compression::x, &Compression::residual, &Compression::velocity, &Compression::code, &Compression::bad}), *c.layout};
}

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
  device_->queue.push([this, w = inner(w), transposed, form = packed->form] { *form = inner_->pack(w, transposed, std::move(*form)); });
  return packed;
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

// Every op comes in its turn, with tensors of the host's in place of the device's.
template <class... Parameters, class... Arguments>
void QueuedBackend::defer(void (Backend::*op)(Parameters...), const Arguments&... arguments) {
  device_->queue.push([this, op, own = std::make_tuple(device_->inner(arguments)...)] {
    std::apply([&](const auto&... each) { (inner_.get()->*op)(each...); }, own);
  });
}
#define STARLING_OP(name, parameters, bytes, ...) \
  void QueuedBackend::name parameters { defer(&Backend::name, __VA_ARGS__); }
#define STARLING_NOTED_OP(name, parameters, ...) \
  void QueuedBackend::name parameters { defer(&Backend::name, __VA_ARGS__); }
#include "backend/ops.inc"

}  // namespace starling
