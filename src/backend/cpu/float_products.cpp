// Products of constant f32 weights, in panels of our own: oneDNN generates code for each number of rows, and takes twice as long for a
// single row.
#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/panels.h"

namespace starling {
std::shared_ptr<Packed> CpuBackend::pack_constant(const Tensor& w, bool transposed) {
  if (by_pairs(w.dim(transposed ? 1 : 0))) return pack_in_pairs(w, transposed, nullptr);
  if (activation_ != DType::f32) return products_.pack(w, transposed, nullptr, true);
  const int64_t in = w.dim(transposed ? 1 : 0), out = w.dim(transposed ? 0 : 1), panel = wide_.float_panel();
  auto packed = std::make_shared<FloatPanels>();
  packed->in = in;
  packed->out = out;
  packed->constant = true;
  const int64_t panels = (out + panel - 1) / panel;
  packed->storage = std::make_unique<Storage>(panels * panel * in * 4);
  auto* const values = reinterpret_cast<float*>(packed->storage->data());
  const float* const from = w.data<float>();
  ranges(panels, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t p = begin; p < end; ++p)
      for (int64_t i = 0; i < in; ++i)
        for (int64_t c = 0; c < panel; ++c) {
          const int64_t o = p * panel + c;
          values[(p * in + i) * panel + c] = o >= out ? 0 : from[transposed ? o * in + i : i * out + o];
        }
  });
  return packed;
}

void CpuBackend::linear_floats(const Tensor& x, const Packed& w, const Tensor& b, const Tensor& y, Activation activation, Write write) {
  CHECK(x.columns() == w.in && y.columns() == w.out && y.rows() == x.rows(), "{} times [{}, {}] into {}", x.shape().text(), w.in, w.out,
        y.shape().text());
  const kernels::FloatProduct product{x.data<float>(),
                                      x.rows(),
                                      w.in,
                                      static_cast<const FloatPanels&>(w).values(),
                                      w.out,
                                      b ? b.data<float>() : nullptr,
                                      activation == Activation::relu,
                                      write == Write::accumulate,
                                      y.data<float>()};
  fixed_ranges((w.out + wide_.float_panel() - 1) / wide_.float_panel(), 1,
               [&](int64_t begin, int64_t end, int) { wide_.multiply_floats(product, begin, end); });
}

}  // namespace starling
