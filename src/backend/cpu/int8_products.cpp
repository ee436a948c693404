// Products of 8-bit weights: our own if the processor has AVX512-VNNI, else oneDNN's with loops before and after.
#include <cstring>

#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/panels.h"
#include "backend/int8.h"

namespace starling {
namespace {

std::shared_ptr<Packed> pack_panels(const Tensor& w, bool transposed, double input_bound) {
  const Int8Matrix rounded = round_to_int8(w, transposed);
  auto packed = std::make_shared<Int8Panels>();
  const int64_t in = w.dim(transposed ? 1 : 0), out = w.dim(transposed ? 0 : 1), depth = vnni::padded_in(in), wide = vnni::padded_out(out);
  packed->in = in;
  packed->out = out;
  packed->quantized = packed->integers = packed->panels = true;
  packed->input_bound = static_cast<float>(input_bound);
  packed->values = std::make_unique<Storage>(depth * wide);
  packed->offsets = std::make_unique<Storage>(wide * 4);
  packed->padded_scales = std::make_unique<Storage>(wide * 4);
  auto* values = reinterpret_cast<int8_t*>(packed->values->data());
  auto* offsets = reinterpret_cast<int32_t*>(packed->offsets->data());
  std::memcpy(packed->padded_scales->data(), rounded.scales.data(), static_cast<size_t>(out) * 4);
  for (int64_t o = 0; o < out; ++o)
    for (int64_t i = 0; i < in; ++i) {
      const int8_t q = rounded.values[static_cast<size_t>(transposed ? o * in + i : i * out + o)];
      values[o / vnni::kPanel * vnni::kPanel * depth + (i / vnni::kDepth * vnni::kPanel + o % vnni::kPanel) * vnni::kDepth +
             i % vnni::kDepth] = q;
      offsets[o] -= 128 * q;
    }
  return packed;
}

}  // namespace

std::shared_ptr<Packed> CpuBackend::pack_int8(const Tensor& w, bool transposed, double input_bound) {
  enter();
  const int64_t in = w.dim(transposed ? 1 : 0);
  CHECK(in <= 1 << 17, "{} products of 8-bit integers do not fit a sum of 32 bits", in);
  if (vnni_) return pack_panels(w, transposed, input_bound);
  return products_.pack_int8(w, transposed, input_bound);
}

void CpuBackend::linear_int8(const Tensor& x, const PackedInt8& w, const Tensor& b, const Tensor& y, Activation activation, Write write) {
  CHECK(x.columns() == w.in && y.columns() == w.out && y.rows() == x.rows(), "{} times [{}, {}] into {}", x.shape().text(), w.in, w.out,
        y.shape().text());
  if (!w.panels) return linear_integers(x, w, b, y, activation, write);
  const auto& weight = static_cast<const Int8Panels&>(w);
  const RoundedRows rounded = round_rows(x, weight);
  const vnni::Output out{
      b ? b.data<float>() : nullptr, activation == Activation::relu, write == Write::accumulate, y.dtype() == DType::bf16, y.raw(), w.out};
  fixed_ranges(vnni::padded_out(w.out) / vnni::kPanel, 1, [&](int64_t begin, int64_t end, int) {
    vnni::multiply(rounded.integers, rounded.units, x.rows(), weight.part(0, w.out), out, begin, end, tiles_);
  });
}

CpuBackend::RoundedRows CpuBackend::round_rows(const Tensor& x, const PackedInt8& w) {
  int8_arena_.release({});
  const Tensor q = int8_arena_.allocate({x.rows() + vnni::kSpareRows, vnni::padded_in(w.in)}, DType::i8);
  const Tensor units = int8_arena_.allocate({x.rows()}, DType::f32);
  auto* const integers = reinterpret_cast<uint8_t*>(q.raw());
  ranges(x.rows(), 8, [&](int64_t begin, int64_t end, int) {
    vnni::quantize(x.raw(), x.dtype() == DType::bf16, w.input_bound, integers, units.data<float>(), w.in, begin, end);
  });
  return {integers, units.data<float>()};
}

// Three passes: rows to integers, the product, integers to the result, in place if both have the same size. oneDNN could do the third pass
// itself only with scales built into the generated code, one primitive per weight.
void CpuBackend::linear_integers(const Tensor& x, const PackedInt8& w, const Tensor& b, const Tensor& y, Activation activation,
                                 Write write) {
  const int64_t N = x.rows(), in = w.in, out = w.out;
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

}  // namespace starling
