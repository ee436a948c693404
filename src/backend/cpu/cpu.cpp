// The CPU backend itself, and its matrix products: oneDNN's, and 8-bit ones with loops before and after.
#include "backend/cpu/cpu.h"

#include <algorithm>

#include "backend/cpu/cpu_backend.h"
#include "base/start_threads.h"

namespace starling {

CpuBackend::CpuBackend(DType activation, int threads)
    : activation_(activation),
      threads_(threads),
      kernels_(kernel_table(activation)),
      wide_(kernel_table(DType::f32)),
      products_(activation),
      scratch_(threads) {}

std::string CpuBackend::describe() const {
  return fmt::format("cpu, {} activations, {} thread{}, {}", name_of(activation_), threads_, threads_ == 1 ? "" : "s",
                     cpu_instruction_set());
}

// oneDNN and the loops share OpenMP's threads; another backend of this process may have set another number.
void CpuBackend::enter() const {
  if (omp_get_max_threads() != threads_) omp_set_num_threads(threads_);
}

std::shared_ptr<Packed> CpuBackend::pack(const Tensor& w, bool transposed, std::shared_ptr<Packed> reuse) {
  enter();
  return products_.pack(w, transposed, std::move(reuse));
}

void CpuBackend::linear(const Tensor& x, const Packed& w, const Tensor& b, const Tensor& y, Activation activation, Write write) {
  enter();
  if (w.quantized) return linear_int8(x, static_cast<const PackedInt8&>(w), b, y, activation, write);
  products_.linear(x, w, b, y, activation, write);
}

std::shared_ptr<Packed> CpuBackend::pack_int8(const Tensor& w, bool transposed, double input_bound) {
  enter();
  return products_.pack_int8(w, transposed, input_bound);
}

void CpuBackend::weight_gradient(const Tensor& a, const Tensor& c, const Tensor& dw, Write write) {
  enter();
  products_.weight_gradient(a, c, dw, write);
}

void CpuBackend::column_sums(const Tensor& dy, const Tensor& db, Write write) {
  if (write == Write::overwrite) db.zero();
  ranges(dy.columns(), 64,
         [&](int64_t begin, int64_t end, int) { kernels_.column_sums(dy.raw(), db.data<float>(), dy.rows(), dy.columns(), begin, end); });
}

// Three passes: rows to integers, the product, integers to the result, in place where they are of one size. oneDNN can do the third
// itself only with scales that are built into the generated code, one primitive a weight.
void CpuBackend::linear_int8(const Tensor& x, const PackedInt8& w, const Tensor& b, const Tensor& y, Activation activation, Write write) {
  const int64_t N = x.rows(), in = w.in, out = w.out;
  CHECK(x.columns() == in && y.columns() == out && y.rows() == N, "{} times [{}, {}] into {}", x.shape().text(), in, out, y.shape().text());
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

std::unique_ptr<Backend> make_cpu_backend(DType activation, int threads) {
  if (threads <= 0) threads = omp_get_num_procs();
  // oneDNN would hand out work for threads that OMP_THREAD_LIMIT forbids, and nobody would do it.
  threads = std::min(threads, omp_get_thread_limit());
  require_threads(threads - 1);  // OpenMP's runtime would end the program
  omp_set_num_threads(threads);
  omp_set_dynamic(0);
  return std::make_unique<CpuBackend>(activation, threads);
}

}  // namespace starling
