// Attention of one sentence and head in products of bf16 with f32 sums. Scores and softmax are f32; probabilities and the gradients of
// scores are rounded to bf16 before they are multiplied. What a causal query does not see is not computed.
#include <array>
#include <utility>

#include "backend/cpu/kernels/attention_rows.h"
#include "backend/cpu/kernels/operands.h"
#include "backend/cpu/kernels/table_parts.h"

namespace starling::kernels::STARLING_ISA {
#if defined(__AVX512BF16__)
namespace {

struct Steps {
  int64_t first, last;
};

// Where the sums of a product go, times `scale`. By value, so that a tile keeps it in registers.
struct Scores {  // f32, whole vectors
  float* out;
  int64_t ld;
  float scale;
  void operator()(int64_t row, int64_t column, vf sums) const { store(out + row * ld + column, sums * scale); }
};
struct Rounded {  // bf16, of which a row has `width`
  bf16* out;
  int64_t ld, width;
  float scale;
  void operator()(int64_t row, int64_t column, vf sums) const {
    const auto half = (__m256i)_mm512_cvtneps_pbh((__m512)(sums * scale));
    if (column + L <= width) return _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + row * ld + column), half);
    _mm256_mask_storeu_epi16(out + row * ld + column, static_cast<__mmask16>((1u << std::max<int64_t>(width - column, 0)) - 1), half);
  }
};

template <int Rows, int Vectors, class To>
void tile(const bf16* a, int64_t row, int64_t step, const bf16* b, int64_t ldb, int64_t steps, To to, int64_t i, int64_t c) {
  vf sums[Rows][Vectors] = {};
  add_products<Pairs>(sums, a, row, step, b, ldb, steps);
#pragma GCC unroll 6
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) to(i + r, c + v * L, sums[r][v]);
}

template <class To, int... Kinds>
constexpr auto tiles_of(std::integer_sequence<int, Kinds...>) {
  return std::array{&tile<Kinds / 4 + 1, Kinds % 4 + 1, To>...};
}

// a [m, ...] b [..., n] in pairs: that of row i and step j is at a[i * row + j * step], those of step j at b + j * ldb. `seen`: the columns
// that the tile of rows from i on needs; `steps`: which it sums.
template <class Seen, class Sum, class To>
void product(int64_t m, int64_t n, const bf16* a, int64_t row, int64_t step, const bf16* b, int64_t ldb, Seen seen, Sum steps, To to) {
  static constexpr auto kTiles = tiles_of<To>(std::make_integer_sequence<int, kTileRows * 4>());
  for (int64_t i = 0, rows; i < m; i += rows) {
    rows = next_rows(m - i);
    const int64_t columns = std::min(n, seen(i));
    const Steps s = steps(i);
    for (int64_t c = 0; c < columns; c += 4 * L) {
      const int64_t vectors = std::min<int64_t>(4, (columns - c + L - 1) / L);
      kTiles[(rows - 1) * 4 + vectors - 1](a + i * row + s.first * step, row, step, b + s.first * ldb + 2 * c, ldb, s.last - s.first, to, i,
                                           c);
    }
  }
}

// Buffers, one after the other, each in lines of the cache.
struct Buffers {
  explicit Buffers(float* scratch) : next((reinterpret_cast<uintptr_t>(scratch) + 63) & ~uintptr_t{63}) {}
  template <class T>
  T* take(int64_t count) {
    T* const here = reinterpret_cast<T*>(next);
    next += static_cast<uintptr_t>(round_up(count * static_cast<int64_t>(sizeof(T)), 64));
    return here;
  }
  uintptr_t next;
};

// The sizes that both passes need.
struct Sizes {
  explicit Sizes(const AttentionTask& t) : Sizes(t.queries, t.keys, t.head_width) {}
  Sizes(int64_t queries, int64_t keys, int64_t width)
      : kp(padded(keys)),
        by_width(2 * round_up(width, 32)),
        by_keys(2 * round_up(keys, 32)),
        columns(width / 2 * 2 * kp),
        key_rows((keys + 1) / 2 * by_width),
        query_rows((queries + 1) / 2 * by_width),
        scores(queries * kp),
        score_rows((queries + 1) / 2 * by_keys) {}
  int64_t kp;                 // keys in whole vectors
  int64_t by_width, by_keys;  // numbers from row to row of pairs
  // Numbers of pairs of columns [width / 2, kp], of pairs of rows [keys / 2 or queries / 2, by_width / 2], of scores, and of pairs of their
  // rows.
  int64_t columns, key_rows, query_rows, scores, score_rows;
};

int64_t attention_scratch(int64_t queries, int64_t keys, int64_t head_width) {
  const Sizes s(queries, keys, head_width);
  constexpr int64_t kBuffers = 14, kLine = 16;
  return queries * head_width + s.columns + s.key_rows / 2 + s.query_rows + 3 * s.scores + s.score_rows + kBuffers * kLine;
}

// Rows that several tiles read, side by side: read where they lie, each tile would wait for its own.
inline void copy_rows(const void* x, int64_t stride, int64_t rows, int64_t width, bf16* out) {
  for (int64_t r = 0; r < rows; ++r) std::memcpy(out + r * width, static_cast<const bf16*>(x) + r * stride, width * sizeof(bf16));
}

inline auto all_of(int64_t n) {
  return [n](int64_t) { return n; };
}

// What a tile of queries from i on sees, in keys and in pairs of them.
struct SeenKeys {
  const AttentionTask& t;
  int64_t operator()(int64_t i) const { return seen_before(t, i + kTileRows); }
  Steps steps(int64_t i) const { return {0, ((*this)(i) + 1) / 2}; }
};

void attention(const AttentionTask& t, float* scratch) {
  const Sizes size(t);
  const SeenKeys seen{t};
  Buffers buffers(scratch);
  bf16* const kt = buffers.take<bf16>(size.columns);
  bf16* const v = buffers.take<bf16>(size.key_rows);
  float* const s = buffers.take<float>(size.scores);
  bf16* const p = buffers.take<bf16>(size.scores);
  bf16* const q = buffers.take<bf16>(t.queries * t.head_width);
  copy_rows(t.q, t.ldq, t.queries, t.head_width, q);
  pair_columns(static_cast<const bf16*>(t.k), t.ldkv, t.keys, t.head_width, kt, 2 * size.kp);
  pair_rows(static_cast<const bf16*>(t.v), t.ldkv, t.keys, t.head_width, v, size.by_width);
  product(
      t.queries, size.kp, q, t.head_width, 2, kt, 2 * size.kp, seen,
      [&](int64_t) {
        return Steps{0, t.head_width / 2};
      },
      Scores{s, size.kp, t.scale});
  for (int64_t i = 0; i < t.queries; ++i) {
    prefetch_rows<bf16>(t, i);
    float* const row = s + i * size.kp;
    const int64_t limit = visible(t, i);
    const RelativeTask& r = t.relative;
    if (r.reach > 0) add_bins(r.scores + i * r.stride, r.reach, i, limit, t.scale, row, 1);
    t.lse[i * t.lse_stride] = softmax_row(row, limit, size.kp);
    if (t.mask.threshold) drop_row(t, i, limit, row);
    if (r.reach > 0) sum_bins(row, 1, r.reach, i, limit, 1.0f, static_cast<bf16*>(r.mass) + i * r.stride);
    for (int64_t j = 0; j < size.kp; j += L) store(p + i * size.kp + j, load(row + j));
  }
  product(
      t.queries, t.head_width, p, size.kp, 2, v, size.by_width, all_of(t.head_width), [&](int64_t i) { return seen.steps(i); },
      Rounded{static_cast<bf16*>(t.y), t.ldy, t.head_width, 1.0f});
}

void attention_backward(const AttentionTask& t, float* scratch) {
  const Sizes size(t);
  const SeenKeys seen{t};
  const auto* const k = static_cast<const bf16*>(t.k);
  Buffers buffers(scratch);
  bf16* const columns = buffers.take<bf16>(size.columns);
  bf16* const rows = buffers.take<bf16>(std::max(size.key_rows, size.query_rows));
  float* const p = buffers.take<float>(size.scores);
  float* const ds = buffers.take<float>(size.scores);
  bf16* const gradients = buffers.take<bf16>(size.scores);  // ds, rounded
  bf16* const dropped = buffers.take<bf16>(size.scores);    // p after dropout, rounded
  bf16* const by_keys = buffers.take<bf16>(size.score_rows);
  bf16* const q = buffers.take<bf16>(t.queries * t.head_width);
  copy_rows(t.q, t.ldq, t.queries, t.head_width, q);
  bf16* const dy = buffers.take<bf16>(t.queries * t.head_width);
  copy_rows(t.dy, t.ldy, t.queries, t.head_width, dy);
  const auto whole_width = [&](int64_t) { return Steps{0, t.head_width / 2}; };
  pair_columns(k, t.ldkv, t.keys, t.head_width, columns, 2 * size.kp);
  product(t.queries, size.kp, q, t.head_width, 2, columns, 2 * size.kp, seen, whole_width, Scores{p, size.kp, t.scale});
  pair_columns(static_cast<const bf16*>(t.v), t.ldkv, t.keys, t.head_width, columns, 2 * size.kp);
  product(t.queries, size.kp, dy, t.head_width, 2, columns, 2 * size.kp, seen, whole_width, Scores{ds, size.kp, 1.0f});
  const bool drops = t.mask.threshold != 0;
  float* const kept = reinterpret_cast<float*>(by_keys);  // of a row, before these are written
  for (int64_t i = 0; i < t.queries; ++i) {
    prefetch_rows<bf16>(t, i);
    float *const row = p + i * size.kp, *const grad = ds + i * size.kp;
    const int64_t limit = visible(t, i);
    const RelativeTask& r = t.relative;
    if (r.reach > 0) {
      add_bins(r.scores + i * r.stride, r.reach, i, limit, t.scale, row, 1);
      add_bins(r.dmass + i * r.stride, r.reach, i, limit, 1.0f, grad, 1);
    }
    float* const after = drops ? kept : row;
    score_gradients(t, i, limit, size.kp, row, after, grad);
    for (int64_t j = 0; j < size.kp; j += L) {
      store(gradients + i * size.kp + j, load(grad + j));
      store(dropped + i * size.kp + j, load(after + j));
    }
    if (r.reach > 0) sum_bins(grad, 1, r.reach, i, limit, t.scale, static_cast<bf16*>(r.dscores) + i * r.stride);
  }
  pair_rows(k, t.ldkv, t.keys, t.head_width, rows, size.by_width);
  product(
      t.queries, t.head_width, gradients, size.kp, 2, rows, size.by_width, all_of(t.head_width), [&](int64_t i) { return seen.steps(i); },
      Rounded{static_cast<bf16*>(t.dq), t.ld_dq, t.head_width, t.scale});
  // A key's sums are over the queries that see it.
  const auto queries = [&](int64_t key) { return Steps{t.causal ? std::min(key, t.queries) / 2 : 0, (t.queries + 1) / 2}; };
  pair_rows(gradients, size.kp, t.queries, t.keys, by_keys, size.by_keys);
  pair_rows(q, t.head_width, t.queries, t.head_width, rows, size.by_width);
  product(t.keys, t.head_width, by_keys, 2, size.by_keys, rows, size.by_width, all_of(t.head_width), queries,
          Rounded{static_cast<bf16*>(t.dk), t.ld_dkv, t.head_width, t.scale});
  pair_rows(dropped, size.kp, t.queries, t.keys, by_keys, size.by_keys);
  pair_rows(dy, t.head_width, t.queries, t.head_width, rows, size.by_width);
  product(t.keys, t.head_width, by_keys, 2, size.by_keys, rows, size.by_width, all_of(t.head_width), queries,
          Rounded{static_cast<bf16*>(t.dv), t.ld_dkv, t.head_width, 1.0f});
}

}  // namespace

void set_pair_attention(Table& t) { t.pair_attention = {attention_scratch, attention, attention_backward}; }
#else
void set_pair_attention(Table&) {}
#endif

}  // namespace starling::kernels::STARLING_ISA
