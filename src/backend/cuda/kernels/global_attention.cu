// Attention of recurrent models. A block has up to eight rows of one side of a sentence, its own rows, and goes through all rows of the
// other side. For scores, a warp takes one of the other rows and multiplies it with the own rows, lanes along the columns. For sums over
// the other rows, a thread has a column, and one sum for each own row. Scores and their gradients lie in global memory, so that a sentence
// may have any length.
#include "backend/cuda/kernels/device.cuh"
#include "backend/cuda/kernels/recurrent.h"

namespace starling::STARLING_CUDA::kernels {
namespace {

constexpr int kThreads = 256, kOwn = 8, kBlocks = 4;  // kBlocks: that share a processor, which leaves each thread 64 registers
constexpr int kStaged = kThreads / kOwn;              // other rows whose weights are in shared memory at a time
constexpr int64_t kSharedBytes = kThreads * sizeof(float);

// The sentence and the own rows of this block.
struct Part {
  int64_t own_row, other_row;  // the first ones
  int own, others;
  int64_t first_weight;         // of the sentence's first query
  int first_own, sentence_own;  // in the sentence
};
__device__ Part part_of(const GlobalAttention& t, bool by_query, int64_t tiles) {
  const int64_t b = blockIdx.x / tiles;
  int64_t pairs = 0;
  for (int64_t s = threadIdx.x; s < b; s += kThreads) pairs += int64_t{t.query[s + 1] - t.query[s]} * (t.key[s + 1] - t.key[s]);
  Part p{};
  p.first_weight = block_reduce(pairs, Sum{}, shared<int64_t>());
  const int32_t *const own = by_query ? t.query : t.key, *const other = by_query ? t.key : t.query;
  p.first_own = static_cast<int>(blockIdx.x % tiles) * kOwn;
  p.sentence_own = own[b + 1] - own[b];
  const int left = p.sentence_own - p.first_own;
  p.own = left < 0 ? 0 : left < kOwn ? left : kOwn;
  p.own_row = own[b] + p.first_own;
  p.other_row = other[b];
  p.others = p.own > 0 ? other[b + 1] - other[b] : 0;
  return p;
}

// Numbers of pairs: of own row o and other row j.
template <class Number>
struct Pairs {
  Number* at;
  int64_t own, other;
  __device__ Number& operator()(int64_t o, int64_t j) const { return at[o * own + j * other]; }
};
template <class Number>
__device__ Pairs<Number> by_query(Number* all, const Part& p) {
  return {all + p.first_weight + int64_t{p.first_own} * p.others, p.others, 1};
}
template <class Number>
__device__ Pairs<Number> by_key(Number* all, const Part& p) {
  return {all + p.first_weight + p.first_own, 1, p.sentence_own};
}

// scores(o, j) = v . tanh(x_o + y_j), or scale x_o . y_j without v.
template <class T>
__device__ void score(const T* x, const T* y, const Part& p, int64_t width, const float* v, float scale, Pairs<float> scores) {
  for (int j = warp(); j < p.others; j += kThreads / kWarp) {
    float sums[kOwn] = {};
    for (int64_t c = lane(); c < width; c += kWarp) {
      const float other = widen(y[j * width + c]), factor = v ? v[c] : 0;
#pragma unroll
      for (int o = 0; o < kOwn; ++o) {
        if (o >= p.own) break;
        const float own = widen(x[o * width + c]);
        sums[o] += v ? factor * tanhf(own + other) : own * other;
      }
    }
#pragma unroll
    for (int o = 0; o < kOwn; ++o) {
      const float sum = warp_reduce(sums[o], Sum{});
      if (lane() == 0 && o < p.own) scores(o, j) = v ? sum : scale * sum;
    }
  }
}

// For each column calls term(sums, j, c, w) for the other rows j in their order, w the weights of the own rows, then done(sums, c).
template <class Term, class Done>
__device__ void sum_others(const Part& p, Pairs<const float> weights, int64_t columns, Term term, Done done) {
  float* const staged = shared<float>();  // [kStaged, kOwn]
  const int place = static_cast<int>(threadIdx.x) / kOwn, o = static_cast<int>(threadIdx.x) % kOwn;
  for (int64_t c0 = 0; c0 < columns; c0 += kThreads) {
    const int64_t c = c0 + threadIdx.x;
    float sums[kOwn] = {};
    for (int j0 = 0; j0 < p.others; j0 += kStaged) {
      __syncthreads();
      staged[threadIdx.x] = o < p.own && j0 + place < p.others ? weights(o, j0 + place) : 0;
      __syncthreads();
      for (int j = j0; j < j0 + kStaged && j < p.others && c < columns; ++j) term(sums, j, c, staged + (j - j0) * kOwn);
    }
    if (c < columns) done(sums, c);
  }
}
// out_o (+)= the sum over j of weights(o, j) y_j, times scale.
template <class T>
__device__ void weighted_rows(const Part& p, Pairs<const float> weights, const T* y, int64_t columns, float scale, T* out,
                              bool accumulate) {
  sum_others(
      p, weights, columns,
      [&](float(&sums)[kOwn], int64_t j, int64_t c, const float* w) {
        const float value = widen(y[j * columns + c]);
#pragma unroll
        for (int o = 0; o < kOwn; ++o) sums[o] = fmaf(w[o], value, sums[o]);
      },
      [&](float(&sums)[kOwn], int64_t c) {
#pragma unroll
        for (int o = 0; o < kOwn; ++o) {
          if (o >= p.own) break;
          T& to = out[o * columns + c];
          to = narrow<T>(accumulate ? widen(to) + scale * sums[o] : scale * sums[o]);
        }
      });
}
// dx_o = v times the sum over j of dscores(o, j) (1 - tanh(x_o + y_j)^2), and dv = the sum of dscores(o, j) tanh(x_o + y_j), if given.
template <class T>
__device__ void additive_gradient(const Part& p, Pairs<const float> dscores, const T* x, const T* y, const float* v, int64_t columns, T* dx,
                                  float* dv) {
  float sum_v = 0;
  sum_others(
      p, dscores, columns,
      [&](float(&sums)[kOwn], int64_t j, int64_t c, const float* w) {
        const float other = widen(y[j * columns + c]);
#pragma unroll
        for (int o = 0; o < kOwn; ++o) {
          if (o >= p.own) break;
          const float squashed = tanhf(widen(x[o * columns + c]) + other);
          sums[o] = fmaf(w[o], 1 - squashed * squashed, sums[o]);
          sum_v = fmaf(w[o], squashed, sum_v);
        }
      },
      [&](float(&sums)[kOwn], int64_t c) {
#pragma unroll
        for (int o = 0; o < kOwn; ++o)
          if (o < p.own) dx[o * columns + c] = narrow<T>(v[c] * sums[o]);
        if (dv) dv[c] = sum_v;
        sum_v = 0;
      });
}

// A warp has an own row: scores become probabilities.
__device__ void softmax(const Part& p, Pairs<float> scores) {
  const int o = warp();
  if (o >= p.own) return;
  float top = -INFINITY, sum = 0;
  for (int j = lane(); j < p.others; j += kWarp) top = fmaxf(top, scores(o, j));
  top = warp_reduce(top, Largest{});
  for (int j = lane(); j < p.others; j += kWarp) {
    const float e = expf(scores(o, j) - top);
    scores(o, j) = e;
    sum += e;
  }
  sum = warp_reduce(sum, Sum{});
  for (int j = lane(); j < p.others; j += kWarp) scores(o, j) /= sum;
}
// And gradients of probabilities, to which more are added if given, those of scores.
__device__ void softmax_backward(const Part& p, Pairs<const float> probabilities, Pairs<const float> more, Pairs<float> gradients) {
  const int o = warp();
  if (o >= p.own) return;
  if (more.at)
    for (int j = lane(); j < p.others; j += kWarp) gradients(o, j) += more(o, j);
  float product = 0;
  for (int j = lane(); j < p.others; j += kWarp) product = fmaf(probabilities(o, j), gradients(o, j), product);
  product = warp_reduce(product, Sum{});
  for (int j = lane(); j < p.others; j += kWarp) gradients(o, j) = probabilities(o, j) * (gradients(o, j) - product);
}
static_assert(kThreads / kWarp == kOwn, "a warp has an own row");

// Zeroes a row that belongs to no sentence, among those before and behind the rows of the sentences.
template <class T>
__device__ void clear_idle(const int32_t* offsets, int64_t sentences, int64_t idle, void* x, int64_t columns) {
  const int64_t row = idle < offsets[0] ? idle : idle + offsets[sentences] - offsets[0];
  for (int64_t c = threadIdx.x; c < columns; c += kThreads) static_cast<T*>(x)[row * columns + c] = narrow<T>(0);
}
template <class T>
__device__ __forceinline__ T* rows_from(const void* x, int64_t row, int64_t columns) {
  return static_cast<T*>(const_cast<void*>(x)) + row * columns;
}

template <class Task>
struct Tiled {
  Task task;
  int64_t tiles;  // of the own rows of a sentence
  float scale;    // of dot products
};

template <class T>
__global__ void __launch_bounds__(kThreads, kBlocks) global_attention_kernel(Tiled<GlobalAttentionForward> all) {
  const GlobalAttention& t = all.task.of;
  const int64_t work = t.sentences * all.tiles;
  if (blockIdx.x >= work) return clear_idle<T>(t.query, t.sentences, blockIdx.x - work, all.task.y, t.columns);
  const Part p = part_of(t, true, all.tiles);
  if (p.own == 0) return;
  const Pairs<float> weights = by_query(all.task.weights, p);
  score(rows_from<const T>(t.q, p.own_row, t.width), rows_from<const T>(t.k, p.other_row, t.width), p, t.width, t.v, all.scale, weights);
  __syncthreads();
  softmax(p, weights);
  weighted_rows<T>(p, {weights.at, weights.own, weights.other}, rows_from<const T>(t.memory, p.other_row, t.columns), t.columns, 1,
                   rows_from<T>(all.task.y, p.own_row, t.columns), false);
}

// The gradients of scores, of queries and of v; own rows are queries.
template <class T>
__global__ void __launch_bounds__(kThreads, kBlocks) query_gradient_kernel(Tiled<GlobalAttentionBackward> all) {
  const GlobalAttentionBackward& g = all.task;
  const GlobalAttention& t = g.of;
  const int64_t work = t.sentences * all.tiles;
  if (blockIdx.x >= work) return clear_idle<T>(t.query, t.sentences, blockIdx.x - work, g.dq, t.width);
  const Part p = part_of(t, true, all.tiles);
  const Pairs<float> dscores = by_query(g.dscores, p);
  if (p.own > 0) {
    score<T>(rows_from<const T>(g.dy, p.own_row, t.columns), rows_from<const T>(t.memory, p.other_row, t.columns), p, t.columns, nullptr, 1,
             dscores);
    __syncthreads();
    const Pairs<const float> more = g.dweights ? by_query(g.dweights, p) : Pairs<const float>{};
    softmax_backward(p, by_query(g.weights, p), more, dscores);
  }
  const Pairs<const float> ready{dscores.at, dscores.own, dscores.other};
  const T *const q = rows_from<const T>(t.q, p.own_row, t.width), *const k = rows_from<const T>(t.k, p.other_row, t.width);
  T* const dq = rows_from<T>(g.dq, p.own_row, t.width);
  if (t.v)
    additive_gradient(p, ready, q, k, t.v, t.width, dq, g.dv_parts + blockIdx.x * t.width);
  else
    weighted_rows(p, ready, k, t.width, all.scale, dq, false);
}

// The gradients of keys and of memory; own rows are keys.
template <class T>
__global__ void __launch_bounds__(kThreads, kBlocks) key_gradient_kernel(Tiled<GlobalAttentionBackward> all) {
  const GlobalAttentionBackward& g = all.task;
  const GlobalAttention& t = g.of;
  const int64_t work = t.sentences * all.tiles;
  if (blockIdx.x >= work) {
    if (!g.accumulate_memory) clear_idle<T>(t.key, t.sentences, blockIdx.x - work, g.dmemory, t.columns);
    return clear_idle<T>(t.key, t.sentences, blockIdx.x - work, g.dk, t.width);
  }
  const Part p = part_of(t, false, all.tiles);
  if (p.own == 0) return;
  weighted_rows<T>(p, by_key(g.weights, p), rows_from<const T>(g.dy, p.other_row, t.columns), t.columns, 1,
                   rows_from<T>(g.dmemory, p.own_row, t.columns), g.accumulate_memory);
  const Pairs<const float> dscores = by_key<const float>(g.dscores, p);
  const T *const q = rows_from<const T>(t.q, p.other_row, t.width), *const k = rows_from<const T>(t.k, p.own_row, t.width);
  T* const dk = rows_from<T>(g.dk, p.own_row, t.width);
  if (t.v)
    additive_gradient<T>(p, dscores, k, q, t.v, t.width, dk, nullptr);
  else
    weighted_rows(p, dscores, q, t.width, all.scale, dk, false);
}

template <class Task>
void launch_tiles(void (*kernel)(Tiled<Task>), const Task& task, int64_t longest, int64_t idle, cudaStream_t stream) {
  const int64_t tiles = blocks_for(longest, kOwn);
  launch(kernel, task.of.sentences * tiles + idle, kThreads, kSharedBytes, stream,
         Tiled<Task>{task, tiles, 1 / std::sqrt(static_cast<float>(task.of.width))});
}

}  // namespace

void global_attention(Type type, const GlobalAttentionForward& t, cudaStream_t stream) {
  by_type(type, [&](auto e) { launch_tiles(global_attention_kernel<decltype(e)>, t, t.of.longest_query, t.of.idle_queries, stream); });
}
int64_t dv_parts(int64_t sentences, int64_t longest_query) { return sentences * blocks_for(longest_query, kOwn); }
void global_attention_backward(Type type, const GlobalAttentionBackward& t, cudaStream_t stream) {
  by_type(type, [&](auto e) {
    launch_tiles(query_gradient_kernel<decltype(e)>, t, t.of.longest_query, t.of.idle_queries, stream);
    launch_tiles(key_gradient_kernel<decltype(e)>, t, t.of.longest_key, t.of.idle_keys, stream);
  });
}

}  // namespace starling::STARLING_CUDA::kernels
