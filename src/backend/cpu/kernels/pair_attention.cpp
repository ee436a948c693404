// Attention of one sentence and head in products of bf16 with f32 sums. Scores and softmax are f32; probabilities and the gradients of
// scores are rounded to bf16 before they are multiplied. What a causal query does not see is not computed.
#include "backend/cpu/kernels/attention_rows.h"
#include "backend/cpu/kernels/operands.h"
#include "backend/cpu/kernels/table_parts.h"

namespace starling::kernels::STARLING_ISA {
#if defined(__AVX512BF16__)
namespace {

struct Steps {
  int64_t first, last;
};

template <int Rows, int Vectors, class Write>
inline void tile(const bf16* a, int64_t row, int64_t step, const bf16* b, int64_t ldb, Steps steps, Write write) {
  vf sums[Rows][Vectors] = {};
  for (int64_t j = steps.first; j < steps.last; ++j) {
    __m512bh v[Vectors];
#pragma GCC unroll 4
    for (int i = 0; i < Vectors; ++i) v[i] = Pairs::some(b + j * ldb + 32 * i);
#pragma GCC unroll 6
    for (int r = 0; r < Rows; ++r) {
      const __m512bh x = Pairs::all(a + r * row + j * step);
#pragma GCC unroll 4
      for (int i = 0; i < Vectors; ++i) sums[r][i] = Pairs::add(sums[r][i], x, v[i]);
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 4
    for (int i = 0; i < Vectors; ++i) write(r, i, sums[r][i]);
}

template <int Vectors, class Write>
inline void tile_of_rows(int64_t rows, const bf16* a, int64_t row, int64_t step, const bf16* b, int64_t ldb, Steps steps, Write write) {
  switch (rows) {
    case 6:
      return tile<6, Vectors>(a, row, step, b, ldb, steps, write);
    case 5:
      return tile<5, Vectors>(a, row, step, b, ldb, steps, write);
    case 4:
      return tile<4, Vectors>(a, row, step, b, ldb, steps, write);
    case 3:
      return tile<3, Vectors>(a, row, step, b, ldb, steps, write);
    case 2:
      return tile<2, Vectors>(a, row, step, b, ldb, steps, write);
    default:
      return tile<1, Vectors>(a, row, step, b, ldb, steps, write);
  }
}

// a [m, ...] b [..., n] in pairs: that of row i and step j is at a[i * row + j * step], those of step j at b + j * ldb. Calls write(row,
// column, 16 sums). `seen`: the columns that the tile of rows from i on needs; `steps`: which it sums.
template <class Seen, class Sum, class Write>
void product(int64_t m, int64_t n, const bf16* a, int64_t row, int64_t step, const bf16* b, int64_t ldb, Seen seen, Sum steps,
             Write write) {
  for (int64_t i = 0; i < m; i += kTileRows) {
    const int64_t rows = std::min<int64_t>(kTileRows, m - i), columns = std::min(n, seen(i));
    for (int64_t c = 0; c < columns; c += 4 * L) {
      const auto put = [&](int64_t r, int64_t v, vf sums) { write(i + r, c + v * L, sums); };
      const bf16 *const left = a + i * row, *const right = b + 2 * c;
      const int64_t vectors = (columns - c + L - 1) / L;
      if (vectors >= 4)
        tile_of_rows<4>(rows, left, row, step, right, ldb, steps(i), put);
      else if (vectors == 3)
        tile_of_rows<3>(rows, left, row, step, right, ldb, steps(i), put);
      else if (vectors == 2)
        tile_of_rows<2>(rows, left, row, step, right, ldb, steps(i), put);
      else
        tile_of_rows<1>(rows, left, row, step, right, ldb, steps(i), put);
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
  constexpr int64_t kBuffers = 12, kLine = 16;
  return s.columns + s.key_rows / 2 + s.query_rows + 3 * s.scores + s.score_rows + kBuffers * kLine;
}

inline auto all_of(int64_t n) {
  return [n](int64_t) { return n; };
}

// What a tile of queries from i on sees, in keys and in pairs of them.
struct SeenKeys {
  const AttentionTask& t;
  int64_t operator()(int64_t i) const { return t.causal ? std::min(t.keys, i + kTileRows) : t.keys; }
  Steps steps(int64_t i) const { return {0, ((*this)(i) + 1) / 2}; }
};

// Rows of bf16 from sums.
inline auto rounded_rows(void* out, int64_t ld, int64_t width, float scale) {
  return [=](int64_t row, int64_t column, vf sums) {
    const auto lanes = static_cast<__mmask16>((1u << std::clamp<int64_t>(width - column, 0, L)) - 1);
    _mm256_mask_storeu_epi16(static_cast<bf16*>(out) + row * ld + column, lanes, (__m256i)_mm512_cvtneps_pbh((__m512)(sums * scale)));
  };
}

void attention(const AttentionTask& t, float* scratch) {
  const Sizes size(t);
  const SeenKeys seen{t};
  Buffers buffers(scratch);
  bf16* const kt = buffers.take<bf16>(size.columns);
  bf16* const v = buffers.take<bf16>(size.key_rows);
  float* const s = buffers.take<float>(size.scores);
  bf16* const p = buffers.take<bf16>(size.scores);
  pair_columns(static_cast<const bf16*>(t.k), t.ldkv, t.keys, t.head_width, kt, 2 * size.kp);
  pair_rows(static_cast<const bf16*>(t.v), t.ldkv, t.keys, t.head_width, v, size.by_width);
  const auto keep = [&](int64_t row, int64_t column, vf sums) { store(s + row * size.kp + column, sums * t.scale); };
  product(
      t.queries, size.kp, static_cast<const bf16*>(t.q), t.ldq, 2, kt, 2 * size.kp, seen,
      [&](int64_t) {
        return Steps{0, t.head_width / 2};
      },
      keep);
  for (int64_t i = 0; i < t.queries; ++i) {
    float* const row = s + i * size.kp;
    const int64_t limit = visible(t, i);
    const RelativeTask& r = t.relative;
    if (r.reach > 0) add_bins(r.scores + i * r.stride, r.reach, i, limit, t.scale, row, 1);
    t.lse[i * t.lse_stride] = softmax_row(row, limit, size.kp);
    if (t.mask.threshold) drop_row(t, i, limit, row, row);
    if (r.reach > 0) sum_bins(row, 1, r.reach, i, limit, 1.0f, static_cast<bf16*>(r.mass) + i * r.stride);
    for (int64_t j = 0; j < size.kp; j += L) store(p + i * size.kp + j, load(row + j));
  }
  product(
      t.queries, t.head_width, p, size.kp, 2, v, size.by_width, all_of(t.head_width), [&](int64_t i) { return seen.steps(i); },
      rounded_rows(t.y, t.ldy, t.head_width, 1.0f));
}

void attention_backward(const AttentionTask& t, float* scratch) {
  const Sizes size(t);
  const SeenKeys seen{t};
  const auto *const q = static_cast<const bf16*>(t.q), *const dy = static_cast<const bf16*>(t.dy), *const k = static_cast<const bf16*>(t.k);
  Buffers buffers(scratch);
  bf16* const columns = buffers.take<bf16>(size.columns);
  bf16* const rows = buffers.take<bf16>(std::max(size.key_rows, size.query_rows));
  float* const p = buffers.take<float>(size.scores);
  float* const ds = buffers.take<float>(size.scores);
  bf16* const gradients = buffers.take<bf16>(size.scores);  // ds, rounded
  bf16* const dropped = buffers.take<bf16>(size.scores);    // p after dropout, rounded
  bf16* const by_keys = buffers.take<bf16>(size.score_rows);
  const auto whole_width = [&](int64_t) { return Steps{0, t.head_width / 2}; };
  pair_columns(k, t.ldkv, t.keys, t.head_width, columns, 2 * size.kp);
  product(t.queries, size.kp, q, t.ldq, 2, columns, 2 * size.kp, seen, whole_width,
          [&](int64_t row, int64_t column, vf sums) { store(p + row * size.kp + column, sums * t.scale); });
  pair_columns(static_cast<const bf16*>(t.v), t.ldkv, t.keys, t.head_width, columns, 2 * size.kp);
  product(t.queries, size.kp, dy, t.ldy, 2, columns, 2 * size.kp, seen, whole_width,
          [&](int64_t row, int64_t column, vf sums) { store(ds + row * size.kp + column, sums); });
  const bool drops = t.mask.threshold != 0;
  float* const kept = reinterpret_cast<float*>(by_keys);  // of a row, before these are written
  for (int64_t i = 0; i < t.queries; ++i) {
    float *const row = p + i * size.kp, *const grad = ds + i * size.kp;
    const int64_t limit = visible(t, i), end = padded(limit);
    const float lse = t.lse[i * t.lse_stride];
    const RelativeTask& r = t.relative;
    if (r.reach > 0) {
      add_bins(r.scores + i * r.stride, r.reach, i, limit, t.scale, row, 1);
      add_bins(r.dmass + i * r.stride, r.reach, i, limit, 1.0f, grad, 1);
    }
    for (int64_t j = 0; j < end; j += L) store(row + j, exponential(load(row + j) - lse));
    for (int64_t j = limit; j < end; ++j) row[j] = grad[j] = 0;
    float* const after = drops ? kept : row;
    if (drops) {
      for (int64_t j = end - L; j < end; j += L) store(kept + j, vf{});
      drop_both(t, i, limit, row, kept, grad);
    }
    vf dots{};
    for (int64_t j = 0; j < end; j += L) dots += load(row + j) * load(grad + j);
    const float dot = sum(dots);
    for (int64_t j = 0; j < size.kp; j += L) {
      const vf g = j < end ? load(row + j) * (load(grad + j) - dot) : vf{};
      store(grad + j, g);
      store(gradients + i * size.kp + j, g);
      store(dropped + i * size.kp + j, j < end ? load(after + j) : vf{});
    }
    if (r.reach > 0) sum_bins(grad, 1, r.reach, i, limit, t.scale, static_cast<bf16*>(r.dscores) + i * r.stride);
  }
  pair_rows(k, t.ldkv, t.keys, t.head_width, rows, size.by_width);
  product(
      t.queries, t.head_width, gradients, size.kp, 2, rows, size.by_width, all_of(t.head_width), [&](int64_t i) { return seen.steps(i); },
      rounded_rows(t.dq, t.ld_dq, t.head_width, t.scale));
  // A key's sums are over the queries that see it.
  const auto queries = [&](int64_t key) { return Steps{t.causal ? std::min(key, t.queries) / 2 : 0, (t.queries + 1) / 2}; };
  pair_rows(gradients, size.kp, t.queries, t.keys, by_keys, size.by_keys);
  pair_rows(q, t.ldq, t.queries, t.head_width, rows, size.by_width);
  product(t.keys, t.head_width, by_keys, 2, size.by_keys, rows, size.by_width, all_of(t.head_width), queries,
          rounded_rows(t.dk, t.ld_dkv, t.head_width, t.scale));
  pair_rows(dropped, size.kp, t.queries, t.keys, by_keys, size.by_keys);
  pair_rows(dy, t.ldy, t.queries, t.head_width, rows, size.by_width);
  product(t.keys, t.head_width, by_keys, 2, size.by_keys, rows, size.by_width, all_of(t.head_width), queries,
          rounded_rows(t.dv, t.ld_dkv, t.head_width, 1.0f));
}

}  // namespace

void set_pair_attention(Table& t) { t.pair_attention = {attention_scratch, attention, attention_backward}; }
#else
void set_pair_attention(Table&) {}
#endif

}  // namespace starling::kernels::STARLING_ISA
