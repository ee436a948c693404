// The arithmetic of strategies, element by element, rounded as on the host: no product is fused with a sum.
#include "backend/cuda/kernels/flat.h"
#include "backend/cuda/kernels/fours.cuh"

namespace starling::STARLING_CUDA::kernels {
namespace {

constexpr int kThreads = 256;
constexpr float kLeastLinked = 1e-30f;  // as on the host
constexpr int64_t kPiece = 4096;        // elements that are added up one after the other, as on the host

__device__ __forceinline__ float plus_product(float a, float b, float c) { return __fadd_rn(a, __fmul_rn(b, c)); }  // a + b * c

// A block fetches a piece of numbers, which its first thread adds up in order.
template <class Number>
__device__ void add_piece(int64_t n, Number number, double& sum) {
  auto* const tile = shared<double>();
  for (int64_t i = threadIdx.x; i < n; i += kThreads) tile[i] = number(i);
  __syncthreads();
  if (threadIdx.x == 0) {
#pragma unroll 8
    for (int64_t i = 0; i < n; ++i) sum = __dadd_rn(sum, tile[i]);
  }
  __syncthreads();
}
__global__ void sum_pieces_kernel(OrderedSum t) {
  const int64_t begin = blockIdx.x * kPiece, left = t.count - begin;
  double sum = 0;
  add_piece(
      left < kPiece ? left : kPiece, [&](int64_t i) { return static_cast<double>(t.x[begin + i]) * static_cast<double>(t.y[begin + i]); },
      sum);
  if (threadIdx.x == 0) t.parts[blockIdx.x] = sum;
}
__global__ void sum_parts_kernel(OrderedSum t) {
  double sum = 0;
  const int64_t parts = (t.count + kPiece - 1) / kPiece;
  for (int64_t begin = 0; begin < parts; begin += kPiece)
    add_piece(
        parts - begin < kPiece ? parts - begin : kPiece, [&](int64_t i) { return t.parts[begin + i]; }, sum);
  if (threadIdx.x == 0) *t.sum = sum;
}

__device__ __forceinline__ double length(double squares) { return sqrt(squares < 1e-30 ? 1e-30 : squares); }

__global__ void rescale_kernel(Rescale t) {
  const int64_t i = global_thread();
  if (i >= t.count) return;
  const double factor = static_cast<double>(*t.scale) / length(*t.squares);
  t.y[i] = static_cast<float>(static_cast<double>(t.v[i]) * factor);
}
__global__ void rescale_backward_kernel(RescaleBackward t) {
  const int64_t i = global_thread();
  const double norm = length(*t.squares), along = *t.along;
  const auto put = [&](float& to, double g) { to = static_cast<float>(__dadd_rn(t.accumulate ? static_cast<double>(to) : 0.0, g)); };
  if (i < t.count) {
    const double part = __dmul_rn(static_cast<double>(t.v[i]), along) / __dmul_rn(norm, norm);
    put(t.dv[i], __dmul_rn(static_cast<double>(*t.scale) / norm, __dsub_rn(static_cast<double>(t.dy[i]), part)));
  }
  if (i == 0) put(*t.dscale, along / norm);
}

// One block, whose threads add up their links in the order of these.
__global__ void link_loss_kernel(LinkLoss t) {
  double sum = 0;
  for (int64_t l = threadIdx.x; l < t.links; l += kThreads) {
    const float p = fmaxf(t.p[t.place[l]], kLeastLinked), w = t.weight[l];
    sum -= static_cast<double>(w) * log(static_cast<double>(p));
    t.dp[t.place[l]] = __fdiv_rn(-w, p);
  }
  sum = block_reduce(sum, Sum{}, shared<double>());
  if (threadIdx.x == 0) *t.sum += sum;
}

template <int W>
__global__ void divide_kernel(Divide t) {
  for_several<W>(t.count, [&](auto w, int64_t begin) {
    Several<float, w()> x = load<w()>(t.x + begin);
#pragma unroll
    for (int i = 0; i < w(); ++i) x.at[i] = __fdiv_rn(x.at[i], t.divisor);
    store<w()>(t.x + begin, x);
  });
}
template <int W>
__global__ void scale_kernel(Scale t) {
  for_several<W>(t.count, [&](auto w, int64_t begin) {
    const Several<float, w()> x = load<w()>(t.x + begin);
    Several<float, w()> y{};
    if (t.accumulate) y = load<w()>(t.y + begin);
#pragma unroll
    for (int i = 0; i < w(); ++i) y.at[i] = t.accumulate ? plus_product(y.at[i], t.factor, x.at[i]) : __fmul_rn(t.factor, x.at[i]);
    store<w()>(t.y + begin, y);
  });
}

__global__ void displacement_kernel(Displacement t) {
  const int64_t i = global_thread();
  if (i >= t.count) return;
  const float value = t.value[i];
  t.displacement[i] = __fsub_rn(value, t.step && t.momentum != 0 ? plus_product(t.merged[i], t.momentum, t.step[i]) : t.merged[i]);
  if (t.sent) t.sent[i] = value;
}

__global__ void outer_step_kernel(OuterStep t) {
  const int64_t i = global_thread();
  if (i >= t.count) return;
  float move = __fmul_rn(t.rate, t.sum[i]);
  if (t.step) move = t.step[i] = __fadd_rn(__fmul_rn(t.momentum, t.step[i]), move);
  const float now = __fadd_rn(t.merged[i], move), merged = t.anchor != 0 ? plus_product(now, t.anchor, move) : now;
  const float start = t.ahead != 0 ? plus_product(merged, t.ahead, move) : merged;
  t.merged[i] = merged;
  if (!t.sent)
    t.value[i] = start;
  else if (t.corrected)
    t.value[i] = __fadd_rn(start, __fsub_rn(t.value[i], t.sent[i]));
  else
    t.value[i] = __fadd_rn(__fmul_rn(t.keep, t.value[i]), __fmul_rn(__fsub_rn(1.0f, t.keep), start));
}

__global__ void compensate_kernel(Compensate t) {
  const int64_t i = global_thread();
  if (i >= t.count) return;
  const float g = t.gradient[i];
  t.gradient[i] = plus_product(g, __fmul_rn(__fmul_rn(t.factor, g), g), __fsub_rn(t.now[i], t.then[i]));
}

__global__ void collect_kernel(Collect t) {
  const int64_t i = global_thread();
  if (i >= t.count) return;
  const float x = t.velocity ? __fadd_rn(__fmul_rn(t.momentum, t.velocity[i]), t.x[i]) : t.x[i];
  const float y = __fadd_rn(__fmul_rn(t.decay, t.residual[i]), x);
  t.y[i] = y;
  t.residual[i] = 0;
  if (t.velocity) t.velocity[i] = 0;
  if (!(fabsf(y) <= FLT_MAX)) raise_to(t.bad, static_cast<double>(t.first + i + 1));
}

__global__ void pack_rows_kernel(PackRows t) {
  const int64_t i = global_thread(), width = t.front + t.columns, r = i / width, c = i % width;
  if (r >= t.rows) return;
  float value = 0;
  if (c < t.front)
    value = c == 0 ? static_cast<float>(t.number[r]) : 0;
  else
    value = t.x[(t.from ? t.from[r] : r) * t.columns + c - t.front];
  t.wire[i] = value;
}

__global__ void add_to_rows_kernel(AddToRows t) {
  const int64_t i = global_thread(), g = i / t.columns, c = i % t.columns;
  if (g >= t.groups) return;
  float& y = t.y[t.place[g] * t.y_stride + c];
  float sum = y;
  for (int32_t k = t.first[g]; k < t.first[g + 1]; ++k) sum = __fadd_rn(sum, t.x[t.order[k] * t.x_stride + c]);
  y = sum;
}
__global__ void row_numbers_kernel(RowNumbers t) {
  const int64_t r = global_thread();
  if (r >= t.rows) return;
  const float number = t.wire[r * t.stride];
  t.numbers[r] = number >= 0 && number < 0x1p31f ? static_cast<int32_t>(number) : -1;
}

template <class Task>
void launch_elements(void (*kernel)(Task), const Task& t, int64_t count, cudaStream_t stream) {
  launch(kernel, blocks_for(count, kThreads), kThreads, 0, stream, t);
}

}  // namespace

int64_t ordered_parts(int64_t count) { return blocks_for(count, kPiece); }
void ordered_sum(const OrderedSum& t, cudaStream_t stream) {
  launch(sum_pieces_kernel, ordered_parts(t.count), kThreads, kPiece * sizeof(double), stream, t);
  launch(sum_parts_kernel, 1, kThreads, kPiece * sizeof(double), stream, t);
}
void rescale(const Rescale& t, cudaStream_t stream) { launch_elements(rescale_kernel, t, t.count, stream); }
void rescale_backward(const RescaleBackward& t, cudaStream_t stream) { launch_elements(rescale_backward_kernel, t, t.count, stream); }
void link_loss(const LinkLoss& t, cudaStream_t stream) { launch(link_loss_kernel, 1, kThreads, kThreads * sizeof(double), stream, t); }
void divide(const Divide& t, cudaStream_t stream) {
  if (whole_fours({t.x}))
    launch_several<kFour>(divide_kernel<kFour>, t, t.count, kThreads, stream);
  else
    launch_several<1>(divide_kernel<1>, t, t.count, kThreads, stream);
}
void scale(const Scale& t, cudaStream_t stream) {
  if (whole_fours({t.x, t.y}))
    launch_several<kFour>(scale_kernel<kFour>, t, t.count, kThreads, stream);
  else
    launch_several<1>(scale_kernel<1>, t, t.count, kThreads, stream);
}
void displacement(const Displacement& t, cudaStream_t stream) { launch_elements(displacement_kernel, t, t.count, stream); }
void outer_step(const OuterStep& t, cudaStream_t stream) { launch_elements(outer_step_kernel, t, t.count, stream); }
void compensate(const Compensate& t, cudaStream_t stream) { launch_elements(compensate_kernel, t, t.count, stream); }
void collect(const Collect& t, cudaStream_t stream) { launch_elements(collect_kernel, t, t.count, stream); }
void pack_rows(const PackRows& t, cudaStream_t stream) { launch_elements(pack_rows_kernel, t, t.rows * (t.front + t.columns), stream); }
void add_to_rows(const AddToRows& t, cudaStream_t stream) { launch_elements(add_to_rows_kernel, t, t.groups * t.columns, stream); }
void row_numbers(const RowNumbers& t, cudaStream_t stream) { launch_elements(row_numbers_kernel, t, t.rows, stream); }

}  // namespace starling::STARLING_CUDA::kernels
