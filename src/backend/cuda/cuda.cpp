// The backend's class, and matrix products.
#include "backend/cuda/cuda.h"

#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/kernels/int8.h"
#include "backend/cuda/kernels/rows.h"

namespace starling::STARLING_CUDA {

std::unique_ptr<Backend> make_cuda_backend(int device, DType activation) {
  return std::make_unique<CudaBackend>(std::make_shared<CudaDevice>(device), activation);
}

CudaBackend::CudaBackend(std::shared_ptr<CudaDevice> device, DType activation)
    : device_(std::move(device)), activation_(activation), products_(*device_), flat_(make_cuda_flat_ops(*device_)) {}

std::string CudaBackend::describe() const {
  const cudaDeviceProp& p = device_->properties();
  return fmt::format("cuda:{} on {}, {} GiB", name_of(activation_), p.name, p.totalGlobalMem >> 30);
}

kernels::Type CudaBackend::type_of(DType t) {
  CHECK(t == DType::f32 || t == DType::bf16, "arithmetic on {}", name_of(t));
  return t == DType::f32 ? kernels::Type::f32 : kernels::Type::bf16;
}

kernels::Mask CudaBackend::mask_of(const Dropout& d) const {
  if (!d.active()) return {};
  return {d.key, d.threshold(), d.scale(), at(d.rows.sentence), at(d.rows.position), d.first_column};
}

const int32_t* CudaBackend::send(size_t slot, std::span<const int32_t> numbers) {
  auto* const there = scratch<int32_t>(slot, static_cast<int64_t>(numbers.size()));
  memory().upload(reinterpret_cast<std::byte*>(there), reinterpret_cast<const std::byte*>(numbers.data()),
                  static_cast<int64_t>(numbers.size_bytes()));
  return there;
}

void CudaBackend::add_counts(const double* parts, int64_t n, const Tensor& sum) {
  if (sum) kernels::add_counts({parts, n, at<double>(sum)}, stream());
}

std::shared_ptr<Packed> CudaBackend::pack(const Tensor& w, bool transposed, std::shared_ptr<Packed> reuse) {
  auto packed = std::dynamic_pointer_cast<PackedWeight>(reuse);
  if (!packed || packed->quantized || packed->transposed != transposed || packed->values.shape() != w.shape()) {
    packed = std::make_shared<PackedWeight>();
    packed->in = transposed ? w.columns() : w.rows();
    packed->out = transposed ? w.rows() : w.columns();
    packed->transposed = transposed;
    if (activation_ != DType::f32) packed->values = Tensor(w.shape(), activation_, memory());
  }
  if (activation_ == DType::f32)
    packed->values = w;
  else
    kernels::convert(kernels::Type::f32, type(), {at(w), at(packed->values), w.count()}, stream());
  return packed;
}

std::shared_ptr<Packed> CudaBackend::pack_constant(const Tensor& w, bool transposed) {
  std::shared_ptr<Packed> packed = pack(w, transposed, nullptr);
  packed->constant = true;
  return packed;
}

std::shared_ptr<Packed> CudaBackend::pack_other_way(const Tensor& w, bool transposed, std::shared_ptr<Packed>,
                                                    const std::shared_ptr<Packed>& other) {
  auto packed = std::make_shared<PackedWeight>();
  packed->in = transposed ? w.columns() : w.rows();
  packed->out = transposed ? w.rows() : w.columns();
  packed->transposed = transposed;
  packed->values = dynamic_cast<const PackedWeight&>(*other).values;
  return packed;
}

std::shared_ptr<Packed> CudaBackend::pack_int8(const Tensor& w, bool transposed, double input_bound) {
  auto packed = std::make_shared<PackedWeight>();
  packed->in = transposed ? w.columns() : w.rows();
  packed->out = transposed ? w.rows() : w.columns();
  packed->transposed = transposed;
  packed->quantized = true;
  packed->input_bound = static_cast<float>(input_bound);
  packed->values = Tensor(w.shape(), activation_, memory());
  packed->scales = Tensor({packed->out}, DType::f32, memory());
  kernels::quantize_weight(type(), {at<float>(w), transposed, packed->in, packed->out, at<float>(packed->scales), at(packed->values)},
                           stream());
  return packed;
}

// y [N, out] = x [N, in] w.
Product CudaBackend::product_of(const PackedWeight& w, const void* x, int64_t N, void* y, DType out) const {
  return {.a = at(w.values),
          .b = x,
          .d = y,
          .transpose_a = w.transposed,
          .m = w.out,
          .n = N,
          .k = w.in,
          .lda = w.transposed ? w.in : w.out,
          .ldb = w.in,
          .ldd = w.out,
          .in = activation_,
          .out = out};
}

// The library takes a bias in the output's type. That of a constant weight is converted once.
const void* CudaBackend::bias_of(const PackedWeight& w, const Tensor& b, DType type) {
  if (!b || type == DType::f32) return at(b);
  const auto convert = [&](void* to) { kernels::convert(kernels::Type::f32, type_of(type), {at(b), to, w.out}, stream()); };
  if (!w.constant || type != activation_) {
    void* const to = scratch<uint16_t>(0, w.out);
    convert(to);
    return to;
  }
  const std::lock_guard lock(w.mutex);
  CHECK(!w.bias || w.bias_from == at(b), "a constant weight is used with two biases");
  if (!w.bias) {
    const Tensor bias({w.out}, type, memory());
    convert(at(bias));
    w.bias = bias;
    w.bias_from = at(b);
  }
  return at(w.bias);
}

void CudaBackend::linear(const Tensor& x, const Packed& packed, const Tensor& b, const Tensor& y, Activation activation, Write write) {
  const auto& w = dynamic_cast<const PackedWeight&>(packed);
  const int64_t N = x.rows();
  CHECK(x.columns() == w.in && y.columns() == w.out && y.rows() >= N, "linear of {} with [{}, {}] into {}", x.shape().text(), w.in, w.out,
        y.shape().text());
  if (w.quantized) return linear_int8(x, w, b, y, activation, write);
  const bool relu = activation == Activation::relu, accumulate = write == Write::accumulate;
  CHECK(!relu || !accumulate, "relu of a sum");
  Product p = product_of(w, at(x), N, at(y), y.dtype());
  p.bias = bias_of(w, b, y.dtype());
  p.relu = relu;
  p.accumulate = accumulate;
  products_.multiply(p);
}

void CudaBackend::linear_int8(const Tensor& x, const PackedWeight& w, const Tensor& b, const Tensor& y, Activation activation,
                              Write write) {
  const int64_t N = x.rows();
  float *const sums = scratch<float>(0, N * w.out), *const bounds = scratch<float>(1, N);
  void* const integers = scratch<std::byte>(2, x.bytes());
  kernels::quantize_rows(type(), {at(x), w.input_bound, integers, bounds, N, w.in}, stream());
  products_.multiply(product_of(w, integers, N, sums, DType::f32));
  kernels::scale_sums(
      type_of(y.dtype()),
      {sums, bounds, at<float>(w.scales), at<float>(b), activation == Activation::relu, write == Write::accumulate, at(y), N, w.out},
      stream());
}

void CudaBackend::weight_gradient(const Tensor& a, const Tensor& c, const Tensor& dw, Write write) {
  const int64_t N = a.rows(), P = a.columns(), Q = c.columns();
  CHECK(c.rows() == N && dw.rows() == P && dw.columns() == Q, "the gradient {} of a weight from {} and {}", dw.shape().text(),
        a.shape().text(), c.shape().text());
  products_.multiply({.a = at(c),
                      .b = at(a),
                      .d = at(dw),
                      .transpose_b = true,
                      .m = Q,
                      .n = P,
                      .k = N,
                      .lda = Q,
                      .ldb = P,
                      .ldd = Q,
                      .in = activation_,
                      .out = DType::f32,
                      .accumulate = write == Write::accumulate});
}

void CudaBackend::column_sums(const Tensor& dy, const Tensor& db, Write write) {
  add_columns({.x = at(dy), .parts = nullptr, .rows = dy.rows(), .columns = dy.columns()}, db, write);
}

void CudaBackend::add_columns(kernels::ColumnSums t, const Tensor& db, Write write) {
  const int64_t parts = kernels::sum_parts(t.rows);
  t.parts = scratch<float>(0, parts * t.columns);
  kernels::column_sums(type(), t, stream());
  kernels::add_parts({t.parts, parts, t.columns, at<float>(db), write == Write::accumulate}, stream());
}

}  // namespace starling::STARLING_CUDA
