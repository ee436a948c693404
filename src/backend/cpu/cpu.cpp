// The CPU backend itself, and who computes its matrix products.
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

// oneDNN and the loops share OpenMP's threads; another backend of this process may have set a different number.
void CpuBackend::enter() const {
  if (omp_get_max_threads() != threads_) omp_set_num_threads(threads_);
}

std::shared_ptr<Packed> CpuBackend::pack(const Tensor& w, bool transposed, std::shared_ptr<Packed> reuse) {
  enter();
  if (own_products(w.dim(transposed ? 1 : 0))) return pack_own(w, transposed, std::move(reuse));
  return products_.pack(w, transposed, std::move(reuse));
}

std::shared_ptr<Packed> CpuBackend::pack_constant(const Tensor& w, bool transposed) {
  enter();
  if (activation_ != DType::f32 && !own_products(w.dim(transposed ? 1 : 0))) return products_.pack(w, transposed, nullptr, true);
  auto packed = pack_own(w, transposed, nullptr);
  packed->constant = true;
  return packed;
}

void CpuBackend::linear(const Tensor& x, const Packed& w, const Tensor& b, const Tensor& y, Activation activation, Write write) {
  enter();
  if (w.quantized) return linear_int8(x, static_cast<const PackedInt8&>(w), b, y, activation, write);
  if (own_products(w)) return multiply(x, w, b, y, activation, write);
  products_.linear(x, w, b, y, activation, write);
}

void CpuBackend::weight_gradient(const Tensor& a, const Tensor& c, const Tensor& dw, Write write) {
  enter();
  if (own_products(2)) return own_weight_gradient(a, c, dw, write, {}, write);
  products_.weight_gradient(a, c, dw, write);
}

void CpuBackend::layer_gradients(const Tensor& x, const Tensor& dy, const Tensor& dw, Write dw_write, const Tensor& db, Write db_write) {
  if (!own_products(2)) return Backend::layer_gradients(x, dy, dw, dw_write, db, db_write);
  enter();
  own_weight_gradient(x, dy, dw, dw_write, db, db_write);
}

void CpuBackend::column_sums(const Tensor& dy, const Tensor& db, Write write) {
  if (write == Write::overwrite) db.zero();
  fixed_ranges(dy.columns(), 64, [&](int64_t begin, int64_t end, int) {
    kernels_.column_sums(dy.raw(), db.data<float>(), dy.rows(), dy.columns(), begin, end);
  });
}

std::unique_ptr<Backend> make_cpu_backend(DType activation, int threads) {
  if (threads <= 0) threads = omp_get_num_procs();
  // oneDNN would assign work to threads that OMP_THREAD_LIMIT forbids, and that work would never be done.
  threads = std::min(threads, omp_get_thread_limit());
  require_threads(threads - 1);  // OpenMP's runtime would end the program
  omp_set_num_threads(threads);
  omp_set_dynamic(0);
  return std::make_unique<CpuBackend>(activation, threads);
}

}  // namespace starling
