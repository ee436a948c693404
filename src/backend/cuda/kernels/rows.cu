#include "backend/cuda/kernels/device.cuh"
#include "backend/cuda/kernels/rows.h"
#include "backend/cuda/kernels/wide.cuh"

namespace starling::STARLING_CUDA::kernels {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kClampEach = 4096;  // elements a block counts

// This thread's position among the stretches of all rows.
struct Place {
  int64_t row, stretch;
  int part;
};
__device__ __forceinline__ Place place_here(int64_t first, int64_t stretches) {
  const int64_t t = global_thread() / kStretchThreads;
  return {t / stretches, first + t % stretches, static_cast<int>(threadIdx.x % kStretchThreads)};
}

template <class Task>
struct OfStretches {
  Task task;
  Stretches stretches;
};
template <class Task>
void launch_stretches(void (*kernel)(OfStretches<Task>), const Task& t, int64_t rows, cudaStream_t stream) {
  const Stretches s = stretches_of(t.mask, t.columns);
  launch(kernel, blocks_for(rows * s.count, kThreads / kStretchThreads), kThreads, 0, stream, OfStretches<Task>{t, s});
}

template <class T>
__global__ void embed_kernel(OfStretches<Embed> all) {
  const Embed& t = all.task;
  const Place p = place_here(all.stretches.first, all.stretches.count);
  if (p.row >= t.rows) return;
  const int32_t token = t.tokens[p.row];
  T* const y = static_cast<T*>(t.y) + p.row * t.columns;
  if (token < 0 && (token == t.padding || !t.positions)) {
    Mask none;
    none.first_column = t.mask.first_column;
    for_masked_columns(none, p.row, p.stretch, p.part, t.columns, [&](int, int64_t c, float) { y[c] = narrow<T>(0); });
    return;
  }
  const float* const x = token < 0 ? nullptr : t.table + token * t.columns;
  const float* const signal = t.positions ? t.signal + t.positions[p.row] * t.columns : nullptr;
  for_masked_columns(t.mask, p.row, p.stretch, p.part, t.columns, [&](int, int64_t c, float factor) {
    y[c] = narrow<T>(factor * ((x ? t.scale * x[c] : 0.0f) + (signal ? signal[c] : 0.0f)));
  });
}

template <class T>
__global__ void embed_backward_kernel(OfStretches<EmbedBackward> all) {
  const EmbedBackward& t = all.task;
  const Place p = place_here(all.stretches.first, all.stretches.count);
  if (p.row >= t.groups) return;
  float sums[8] = {};
  for (int32_t i = t.first[p.row]; i < t.first[p.row + 1]; ++i) {
    const int64_t n = t.order[i];
    const T* const dy = static_cast<const T*>(t.dy) + n * t.columns;
    for_masked_columns(t.mask, n, p.stretch, p.part, t.columns, [&](int h, int64_t c, float factor) { sums[h] += factor * widen(dy[c]); });
  }
  const int32_t part = t.part[p.row];
  float* const y = part < 0 ? t.table + t.token[p.row] * t.columns : t.sums + part * t.columns;
  Mask none;
  none.first_column = t.mask.first_column;
  for_masked_columns(none, 0, p.stretch, p.part, t.columns,
                     [&](int h, int64_t c, float) { y[c] = part < 0 ? y[c] + t.scale * sums[h] : sums[h]; });
}

__global__ void add_to_table_kernel(AddToTable t) {
  const int64_t i = global_thread(), g = i / t.columns, c = i % t.columns;
  if (g >= t.groups) return;
  float sum = 0;
  for (int64_t p = t.first[g]; p < t.first[g + 1]; ++p) sum += t.sums[p * t.columns + c];
  t.table[t.token[g] * t.columns + c] += t.scale * sum;
}

template <class T>
__global__ void add_dropout_kernel(OfStretches<AddDropout> all) {
  const AddDropout& t = all.task;
  const Place p = place_here(all.stretches.first, all.stretches.count);
  if (p.row >= t.rows) return;
  const T* const s = static_cast<const T*>(t.s) + p.row * t.columns;
  const T* const x = t.x ? static_cast<const T*>(t.x) + p.row * t.columns : nullptr;
  T* const y = static_cast<T*>(t.y) + p.row * t.columns;
  for_masked_columns(t.mask, p.row, p.stretch, p.part, t.columns,
                     [&](int, int64_t c, float factor) { y[c] = narrow<T>((x ? widen(x[c]) : 0.0f) + factor * widen(s[c])); });
}

// The same for rows of whole, aligned eights: a thread has eight neighbouring columns. The threads that have drawn the random bits know
// which columns are kept and tell the others by votes, of which the h-th is about columns [16 h, 16 h + 16) of the warp's two stretches.
template <class T>
__global__ void add_dropout_eights_kernel(OfStretches<AddDropout> all) {
  const AddDropout& t = all.task;
  const auto thread = static_cast<uint32_t>(global_thread()) / kStretchThreads;
  const auto count = static_cast<uint32_t>(all.stretches.count);
  const uint32_t row = thread / count, stretch = static_cast<uint32_t>(all.stretches.first) + thread % count;
  const int part = static_cast<int>(threadIdx.x % kStretchThreads);
  const bool here = row < t.rows;
  uint32_t words[4] = {0xffffffffu, 0xffffffffu, 0xffffffffu, 0xffffffffu};
  if (here && t.mask.threshold > 0)
    dropout_words(t.mask.key, t.mask.sentence[row], t.mask.position[row], stretch * kStretchThreads + static_cast<uint32_t>(part), words);
  unsigned stay = 0;  // a bit for each of this thread's columns
#pragma unroll
  for (int h = 0; h < 8; ++h) {
    const unsigned vote = __ballot_sync(kAllLanes, (words[h / 2] >> (16 * (h % 2)) & 0xffffu) >= t.mask.threshold);
    if (h == part / 2) stay = vote >> (lane() / kStretchThreads * kStretchThreads + part % 2 * kWide);
  }
  const int64_t c = int64_t{stretch} * kStretch + part * kWide - t.mask.first_column;
  if (!here || c < 0 || c >= t.columns) return;
  const int64_t at = row * t.columns + c;
  Eight y = load_eight(static_cast<const T*>(t.s) + at);
#pragma unroll
  for (int i = 0; i < kWide; ++i) y.at[i] = stay >> i & 1 ? t.mask.scale * y.at[i] : 0.0f;
  if (t.x) {
    const Eight x = load_eight(static_cast<const T*>(t.x) + at);
#pragma unroll
    for (int i = 0; i < kWide; ++i) y.at[i] += x.at[i];
  }
  store_eight(static_cast<T*>(t.y) + at, y);
}

// y = f(x, y), one thread per eight elements; remainders and unaligned elements are processed one by one.
template <class T, class F>
__device__ __forceinline__ void for_elements(const Elements& t, F f) {
  const T* const x = static_cast<const T*>(t.x);
  T* const y = static_cast<T*>(t.y);
  const int64_t begin = global_thread() * kWide, end = begin + kWide < t.count ? begin + kWide : t.count;
  if (t.aligned && begin + kWide <= t.count) {
    const Eight a = load_eight(x + begin);
    Eight b = load_eight(y + begin);
#pragma unroll
    for (int i = 0; i < kWide; ++i) b.at[i] = f(a.at[i], b.at[i]);
    store_eight(y + begin, b);
    return;
  }
  for (int64_t i = begin; i < end; ++i) y[i] = narrow<T>(f(widen(x[i]), widen(y[i])));
}
template <class T>
__global__ void add_kernel(Elements t) {
  for_elements<T>(t, [](float x, float y) { return y + x; });
}
template <class T>
__global__ void relu_dropout_backward_kernel(Elements t) {
  for_elements<T>(t, [&](float x, float y) { return x > 0 ? t.factor * y : 0.0f; });
}

template <Activation A>
__device__ __forceinline__ float activated(float x) {
  if constexpr (A == Activation::relu) {
    return x > 0 ? x : 0.0f;
  } else if constexpr (A == Activation::swish) {
    return x / (1 + expf(-x));
  } else if constexpr (A == Activation::gelu) {
    return x * (0.5f + 0.5f * erff(x * 0.70710678f));
  } else if constexpr (A == Activation::gelu_tanh) {
    return x * (0.5f + 0.5f * tanhf(0.79788456f * (x + 0.044715f * x * x * x)));
  } else if constexpr (A == Activation::gelu_sigmoid) {
    return x / (1 + expf(-1.702f * x));
  } else {
    static_assert(A == Activation::none, "an activation that cards do not know");
    return x;
  }
}
template <Activation A>
__device__ __forceinline__ float slope_of(float x) {
  if constexpr (A == Activation::relu) {
    return x > 0 ? 1.0f : 0.0f;
  } else if constexpr (A == Activation::gelu) {
    return 0.5f + 0.5f * erff(x * 0.70710678f) + x * 0.39894228f * expf(-0.5f * x * x);
  } else if constexpr (A == Activation::gelu_tanh) {
    const float t = tanhf(0.79788456f * (x + 0.044715f * x * x * x));
    return 0.5f + 0.5f * t + 0.5f * x * (1 - t * t) * 0.79788456f * (1 + 0.134145f * x * x);
  } else if constexpr (A == Activation::swish || A == Activation::gelu_sigmoid) {
    const float factor = A == Activation::swish ? 1.0f : 1.702f, s = 1 / (1 + expf(-factor * x));
    return s + x * factor * s * (1 - s);
  } else {
    static_assert(A == Activation::none, "an activation that cards do not know");
    return 1;
  }
}
template <class T, Activation A>
__global__ void activate_kernel(Elements t) {
  for_elements<T>(t, [](float x, float) { return activated<A>(x); });
}
template <class T, Activation A>
__global__ void activate_backward_kernel(Elements t) {
  for_elements<T>(t, [](float x, float y) { return y * slope_of<A>(x); });
}
template <class From, class To>
__global__ void convert_kernel(Elements t) {
  const From* const x = static_cast<const From*>(t.x);
  To* const y = static_cast<To*>(t.y);
  const int64_t begin = global_thread() * kWide, end = begin + kWide < t.count ? begin + kWide : t.count;
  if (t.aligned && begin + kWide <= t.count) return store_eight(y + begin, load_eight(x + begin));
  for (int64_t i = begin; i < end; ++i) y[i] = narrow<To>(widen(x[i]));
}

template <class Unit>
__global__ void copy_rows_kernel(CopyRows t) {
  const int64_t i = global_thread(), r = i / t.width, c = i % t.width;
  if (r >= t.rows) return;
  const int64_t from = t.from ? t.from[r] : r, to = t.to ? t.to[r] : r;
  Unit value{};
  if (from >= 0) value = static_cast<const Unit*>(t.x)[from * t.x_stride + t.x_column + c];
  static_cast<Unit*>(t.y)[to * t.y_stride + t.y_column + c] = value;
}
template <class T>
__global__ void add_rows_kernel(CopyRows t) {
  const int64_t i = global_thread(), r = i / t.width, c = i % t.width;
  if (r >= t.rows) return;
  const int64_t from = t.from ? t.from[r] : r, to = t.to ? t.to[r] : r;
  if (from < 0) return;
  T& y = static_cast<T*>(t.y)[to * t.y_stride + t.y_column + c];
  y = narrow<T>(widen(y) + widen(static_cast<const T*>(t.x)[from * t.x_stride + t.x_column + c]));
}

template <class T>
__global__ void clamp_kernel(Clamp t) {
  int beyond = 0;
  for (int64_t i = blockIdx.x * kClampEach + threadIdx.x; i < t.count && i < (blockIdx.x + 1) * kClampEach; i += kThreads) {
    const T x = static_cast<const T*>(t.x)[i];
    const float v = widen(x);
    beyond += fabsf(v) > t.bound;
    static_cast<T*>(t.y)[i] = narrow<T>(v > t.bound ? t.bound : v < -t.bound ? -t.bound : v);
  }
  beyond = block_reduce(beyond, Sum{}, shared<int>());
  if (threadIdx.x == 0) t.parts[blockIdx.x] = beyond;
}
template <class T>
__global__ void clamp_backward_kernel(ClampBackward t) {
  const int64_t i = global_thread();
  if (i >= t.count) return;
  T& dx = static_cast<T*>(t.dx)[i];
  const float gradient = fabsf(widen(static_cast<const T*>(t.x)[i])) <= t.bound ? widen(static_cast<const T*>(t.dy)[i]) : 0.0f;
  dx = narrow<T>(t.accumulate ? widen(dx) + gradient : gradient);
}

}  // namespace

void embed(Type type, const Embed& t, cudaStream_t stream) {
  by_type(type, [&](auto e) { launch_stretches(embed_kernel<decltype(e)>, t, t.rows, stream); });
}
void embed_backward(Type type, const EmbedBackward& t, cudaStream_t stream) {
  by_type(type, [&](auto e) { launch_stretches(embed_backward_kernel<decltype(e)>, t, t.groups, stream); });
}
void add_to_table(const AddToTable& t, cudaStream_t stream) {
  launch(add_to_table_kernel, blocks_for(t.groups * t.columns, kThreads), kThreads, 0, stream, t);
}
void add_dropout(Type type, const AddDropout& t, cudaStream_t stream) {
  const bool eights = whole_eights({t.columns, t.mask.first_column}, {t.x, t.s, t.y});
  const bool small = t.rows * stretches_of(t.mask, t.columns).count < int64_t{1} << 27;  // threads are counted in 32 bits
  by_type(type, [&](auto e) {
    using T = decltype(e);
    launch_stretches(eights && small ? add_dropout_eights_kernel<T> : add_dropout_kernel<T>, t, t.rows, stream);
  });
}

namespace {

void launch_eights(void (*kernel)(Elements), const Elements& task, cudaStream_t stream) {
  Elements t = task;
  t.aligned = whole_eights({}, {t.x, t.y});
  launch(kernel, blocks_for(t.count, kThreads * kWide), kThreads, 0, stream, t);
}

}  // namespace

void add(Type type, const Elements& t, cudaStream_t stream) {
  by_type(type, [&](auto e) { launch_eights(add_kernel<decltype(e)>, t, stream); });
}
void relu_dropout_backward(Type type, const Elements& t, cudaStream_t stream) {
  by_type(type, [&](auto e) { launch_eights(relu_dropout_backward_kernel<decltype(e)>, t, stream); });
}
namespace {

// Calls f with the constant for a, which is at most `none`.
template <int last = static_cast<int>(Activation::none), class F>
void by_activation(Activation a, F f) {
  if (static_cast<int>(a) == last) return f(std::integral_constant<Activation, static_cast<Activation>(last)>());
  if constexpr (last > 0) by_activation<last - 1>(a, f);
}

}  // namespace

void activate(Type type, Activation activation, const Elements& t, cudaStream_t stream) {
  by_type(type, [&](auto e) { by_activation(activation, [&](auto a) { launch_eights(activate_kernel<decltype(e), a()>, t, stream); }); });
}
void activate_backward(Type type, Activation activation, const Elements& t, cudaStream_t stream) {
  by_type(type, [&](auto e) {
    by_activation(activation, [&](auto a) { launch_eights(activate_backward_kernel<decltype(e), a()>, t, stream); });
  });
}
void convert(Type from, Type to, const Elements& t, cudaStream_t stream) {
  by_type(from, [&](auto a) { by_type(to, [&](auto b) { launch_eights(convert_kernel<decltype(a), decltype(b)>, t, stream); }); });
}

void copy_rows(int64_t element, const CopyRows& task, cudaStream_t stream) {
  // In the largest units that rows, columns and addresses are multiples of.
  const auto all = static_cast<uint64_t>(element * (task.x_stride | task.x_column | task.y_stride | task.y_column | task.width)) |
                   reinterpret_cast<uintptr_t>(task.x) | reinterpret_cast<uintptr_t>(task.y);
  CopyRows t = task;
  const auto go = [&](auto unit) {
    for (int64_t* n : {&t.x_stride, &t.x_column, &t.y_stride, &t.y_column, &t.width}) *n = *n * element / static_cast<int64_t>(sizeof unit);
    launch(copy_rows_kernel<decltype(unit)>, blocks_for(t.rows * t.width, kThreads), kThreads, 0, stream, t);
  };
  if (all % 16 == 0)
    go(uint4{});
  else if (all % 8 == 0)
    go(uint64_t{});
  else if (all % 4 == 0)
    go(uint32_t{});
  else if (all % 2 == 0)
    go(uint16_t{});
  else
    go(uint8_t{});
}
void add_rows(Type type, const CopyRows& t, cudaStream_t stream) {
  by_type(type, [&](auto e) { launch(add_rows_kernel<decltype(e)>, blocks_for(t.rows * t.width, kThreads), kThreads, 0, stream, t); });
}

int64_t clamp_parts(int64_t count) { return blocks_for(count, kClampEach); }
void clamp(Type type, const Clamp& t, cudaStream_t stream) {
  by_type(type,
          [&](auto e) { launch(clamp_kernel<decltype(e)>, clamp_parts(t.count), kThreads, kThreads / kWarp * sizeof(int), stream, t); });
}
void clamp_backward(Type type, const ClampBackward& t, cudaStream_t stream) {
  by_type(type, [&](auto e) { launch(clamp_backward_kernel<decltype(e)>, blocks_for(t.count, kThreads), kThreads, 0, stream, t); });
}

}  // namespace starling::STARLING_CUDA::kernels
