// Compression in f32. Residual and gradient are added up in the residual's place, and everything else is done there while the chunk is in
// the first-level cache. The largest k of a chunk: elements fall into groups, of lanes of neighbouring vectors; the k-th largest of the
// groups' maxima is at most the k-th largest element and not by much less, so few elements reach it, and the exact choice is made among
// those.
#include "backend/cpu/kernels/compression.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>

#include "backend/cpu/kernels/vectors.h"

namespace starling::kernels::STARLING_ISA {
namespace {

constexpr int32_t kNotFinite = 0x7f800000;

inline int32_t magnitude(float x) { return std::bit_cast<int32_t>(x) & 0x7fffffff; }
inline float positive(int32_t bits) { return std::bit_cast<float>(bits); }

// What is to be sent of one chunk, and room to choose it.
struct Chunk {
  float* a;  // residual and gradient together, in the residual's place
  int64_t n;
  const float *next_x, *next_residual;  // of the chunk that follows, or this one

  int32_t top[1024];  // the largest magnitude of each group
  int64_t entries = 0;
  int32_t index[kChunk], magnitudes[kChunk + L];  // of the entries, ascending by index
  float gradient[kChunk];                         // at the entries
  float sent[kChunk];                             // of the entries, or of all elements
};

void visit(Chunk& c, const CompressionTask& t, size_t chunk, size_t end) {
  const CodeChunk &at = t.layout->chunks[chunk], &next = t.layout->chunks[chunk + 1 < end ? chunk + 1 : chunk];
  c.a = t.residual + at.begin, c.n = at.count, c.next_residual = t.residual + next.begin, c.next_x = t.x + next.begin;
}

// Elements [i, i + 64) of the next chunk come from memory while this one is worked on; where it is shorter, what lies behind it.
inline void fetch_next(const Chunk& c, int64_t i) {
  for (const float* next : {c.next_x, c.next_residual})
    for (int64_t line = i; line < i + 64; line += 16)
      __builtin_prefetch(reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(next) + sizeof(float) * line), 1, 2);
}

// Returns the largest magnitude; at least kNotFinite where there is one that is not finite.
int32_t add_up(const Chunk& c, const CompressionTask& t, const CodeChunk& at) {
  const float* x = t.x + at.begin;
  float* a = c.a;
  int32_t largest = 0;
  if (t.velocity) {
    float* velocity = t.velocity + at.begin;
    for (int64_t i = 0; i < c.n; ++i) {
      velocity[i] = t.momentum * velocity[i] + x[i];
      a[i] = t.decay * a[i] + velocity[i];
      largest = std::max(largest, magnitude(a[i]));
    }
  } else {
    for (int64_t i = 0; i < c.n; ++i) {
      a[i] = t.decay * a[i] + x[i];
      largest = std::max(largest, magnitude(a[i]));
    }
  }
  return largest;
}

int64_t first_not_finite(const Chunk& c) {
  int64_t i = 0;
  while (magnitude(c.a[i]) < kNotFinite) ++i;
  return i;
}

int64_t count_at_least(const int32_t* x, int64_t n, int32_t least) {
  int64_t count = 0;
  for (int64_t i = 0; i < n; i += L) count += std::popcount(at_least(load(x + i), least));
  return count;
}

// A threshold > 0 that the k largest of n numbers reach and at most `more` others, or where equal numbers forbid that, the k-th largest; 1
// where fewer than k are not zero. No number is less than low >= 0, 0 < k <= n, and zeros follow them up to a whole vector. Bit by bit,
// since counting is whole vectors and sorting is not.
int32_t threshold_of(const int32_t* x, int64_t n, int64_t k, int64_t more, int32_t low) {
  int32_t high = 0;
  for (int64_t i = 0; i < n; ++i) high |= x[i];
  auto bit = static_cast<int32_t>(std::bit_floor(static_cast<uint32_t>(low ^ high)));
  int32_t found = bit == 0 ? low : low & -bit & ~bit;  // the leading bits that all numbers share
  for (; bit > 0; bit >>= 1) {
    const int32_t least = found | bit;
    const int64_t reach = count_at_least(x, n, least);
    if (reach >= k) found = least;
    if (reach >= k && reach <= k + more) break;
  }
  return std::max(found, 1);
}

// The maxima of groups of G elements: of each lane of G vectors. Returns the number of groups.
template <int G>
int64_t maxima(Chunk& c) {
  int64_t groups = 0;
  for (int64_t i = 0; i < c.n; groups += L) {
    vi top{};
    const auto raise = [&](vi m) { top = m > top ? m : top; };
    const int64_t end = std::min(i + G * L, c.n);
    for (; i + L <= end; i += L) raise(magnitude_bits(load(c.a + i)));
    if (i < end) raise(magnitude_bits(load(c.a + i, end - i)));
    std::memcpy(c.top + groups, &top, sizeof top);
    i = end;
  }
  return groups;
}

// The elements of at least the threshold (> 0) become the entries.
void choose(Chunk& c, int32_t threshold) {
  uint64_t reached[kChunk / 64], some = 0;  // a bit for each element, for each 64 elements
  float last[64] = {};
  int64_t n = 0;
  for (int64_t w = 0; 64 * w < c.n; ++w) {
    const float* a = c.a + 64 * w;
    if (64 * w + 64 > c.n) std::copy_n(a, c.n - 64 * w, last), a = last;
    reached[w] = 0;
    fetch_next(c, 64 * w);
    for (int i = 0; i < 64; i += L) reached[w] |= static_cast<uint64_t>(at_least(magnitude_bits(load(a + i)), threshold)) << i;
    some |= static_cast<uint64_t>(reached[w] != 0) << w;
  }
  for (; some != 0; some &= some - 1) {
    const int w = std::countr_zero(some);
    for (uint64_t bits = reached[w]; bits != 0; bits &= bits - 1) c.index[n++] = 64 * w + std::countr_zero(bits);
  }
  for (int64_t i = 0; i < n; ++i) c.magnitudes[i] = magnitude(c.a[c.index[i]]);
  std::fill_n(c.magnitudes + n, L, 0);
  c.entries = n;
}

// Of the entries those above the threshold stay, and the first `ties` of those at it.
void truncate(Chunk& c, int32_t threshold, int64_t ties) {
  int64_t n = 0;
  for (int64_t i = 0; i < c.entries; ++i) {
    const bool tie = c.magnitudes[i] == threshold, stays = (c.magnitudes[i] > threshold) | (tie & (ties > 0));
    ties -= tie;
    c.index[n] = c.index[i];
    n += stays;
  }
  c.entries = n;
}

// The k largest that are not zero become the entries.
void choose_largest(Chunk& c, int64_t k) {
  c.entries = 0;
  if (k == 0) return;
  int32_t least = 1;
  if (k <= 512) {
    const int64_t groups = k <= 96 ? maxima<16>(c) : maxima<4>(c);
    if (groups >= k) least = threshold_of(c.top, groups, k, k / 4, std::accumulate(c.top, c.top + groups, INT32_MAX, std::bit_and<>()));
  }
  choose(c, least);
  if (c.entries <= k) return;
  const int32_t threshold = threshold_of(c.magnitudes, c.entries, k, 0, least);
  truncate(c, threshold, k - count_at_least(c.magnitudes, c.entries, threshold + 1));
}

// -- entries ---------------------------------------------------------------------------------------------------------------------

// The entries' values as they are sent; entries that cannot be are left out.
void round_entries(Chunk& c, Coding coding, TwoLevels& levels, uint8_t* two_bits) {
  for (int64_t i = 0; i < c.entries; ++i) {
    const float x = c.a[c.index[i]];
    c.sent[i] = coding == Coding::bf16 ? widen(sendable_bf16(x)) : x;
  }
  if (coding != Coding::two_bit) return;
  levels = two_levels(c.sent, c.entries);
  int64_t n = 0;
  for (int64_t i = 0; i < c.entries; ++i) {
    int bits = 0;
    float sent = 0;
    if (!two_bit_value(levels, c.sent[i], bits, sent)) continue;
    c.index[n] = c.index[i], c.sent[n] = sent, two_bits[n] = static_cast<uint8_t>(bits), ++n;
  }
  c.entries = n;
}

void write_entries(const Chunk& c, Coding coding, const TwoLevels& levels, const uint8_t* two_bits, uint8_t* to) {
  if (coding == Coding::two_bit) put(to, levels.low), put(to + 2, levels.high), to += 4;
  const int64_t n = c.entries;
  int64_t i = 0;
  for (; i + 2 <= n; i += 2, to += 3) {
    const int32_t pair = c.index[i] | c.index[i + 1] << 12;
    to[0] = static_cast<uint8_t>(pair), to[1] = static_cast<uint8_t>(pair >> 8), to[2] = static_cast<uint8_t>(pair >> 16);
  }
  if (i < n) put_index(to, 0, c.index[i]), to += 2;
  if (coding == Coding::full) {
    std::memcpy(to, c.sent, static_cast<size_t>(n) * sizeof(float));
  } else if (coding == Coding::bf16) {
    for (i = 0; i < n; ++i) put(to + 2 * i, static_cast<uint16_t>(std::bit_cast<uint32_t>(c.sent[i]) >> 16));
  } else {
    std::fill_n(to, (n + 3) / 4, uint8_t{0});
    for (i = 0; i < n; ++i) to[i / 4] = static_cast<uint8_t>(to[i / 4] | two_bits[i] << i % 4 * 2);
  }
}

// x becomes the local part, as where nothing is sent.
void scale_local(const Chunk& c, const CompressionTask& t, float* x) {
  const float s = t.local_scale;
  if (t.local == LocalPart::none)
    std::fill_n(x, c.n, 0.0f);
  else if (t.local == LocalPart::error)
    for (int64_t i = 0; i < c.n; ++i) x[i] = s * c.a[i];
  else if (s != 1)
    for (int64_t i = 0; i < c.n; ++i) x[i] = s * x[i];
}

// The residual, the local part and the velocity of a chunk of which the entries were sent.
void settle_entries(Chunk& c, const CompressionTask& t, const CodeChunk& at) {
  float* x = t.x + at.begin;
  float* own = c.gradient;
  if (t.local == LocalPart::partial)
    for (int64_t i = 0; i < c.entries; ++i) own[i] = x[c.index[i]];
  scale_local(c, t, x);
  for (int64_t i = 0; i < c.entries; ++i) {
    const int64_t e = c.index[i];
    c.a[e] -= c.sent[i];
    if (t.local == LocalPart::error) x[e] = t.local_scale * c.a[e];
    if (c.sent[i] == 0) continue;
    if (t.local == LocalPart::partial) x[e] = own[i] - c.sent[i];
    if (t.velocity) t.velocity[at.begin + e] = 0;
  }
}

void send_entries(Chunk& c, const CompressionTask& t, const CodeChunk& at, int64_t place, int64_t bytes) {
  const Coding coding = t.layout->coding;
  TwoLevels levels;
  uint8_t two_bits[kChunk];
  round_entries(c, coding, levels, two_bits);
  put(t.code + at.header, static_cast<uint16_t>(c.entries));
  write_entries(c, coding, levels, two_bits, t.code + place);
  const int64_t written = chunk_bytes(coding, c.entries, sizeof(float));
  std::fill_n(t.code + place + written, bytes - written, uint8_t{0});
  settle_entries(c, t, at);
}

// -- every element ---------------------------------------------------------------------------------------------------------------

// 1.25 times the root mean square, rounded down to four significant bits: near the best level of three for a normal distribution, whose
// threshold then is half of it.
float ternary_level(const Chunk& c) {
  double parts[16] = {}, squares = 0;
  int32_t largest = 0;
  int64_t i = 0;
  for (; i + 16 <= c.n; i += 16)
    for (int l = 0; l < 16; ++l) parts[l] += static_cast<double>(c.a[i + l]) * c.a[i + l];
  for (int l = 0; i < c.n; ++i, ++l) parts[l] += static_cast<double>(c.a[i]) * c.a[i];
  for (const double p : parts) squares += p;
  for (i = 0; i < c.n; ++i) largest = std::max(largest, magnitude(c.a[i]));
  const double level = std::min(1.25 * std::sqrt(squares / static_cast<double>(c.n)), static_cast<double>(positive(largest)));
  return positive(magnitude(static_cast<float>(level)) & 0x7ff00000);
}

void write_ternary(Chunk& c, uint8_t* to) {
  const float level = ternary_level(c), least = level / 2;
  put(to, level);
  uint8_t digit[kChunk + 4] = {};
  for (int64_t i = 0; i < c.n; ++i) {
    const float a = c.a[i], s = a < 0 ? -level : level, rest = a - s;
    const bool sends = (positive(magnitude(a)) >= least) & (a - rest == s);
    c.sent[i] = sends ? s : 0.0f;
    digit[i] = static_cast<uint8_t>(sends ? (a < 0 ? 2 : 1) : 0);
  }
  const int64_t bytes = (c.n + 4) / 5;
  for (int64_t j = 0; j < bytes; ++j)
    to[4 + j] = static_cast<uint8_t>(digit[j] + 3 * digit[j + bytes] + 9 * digit[j + 2 * bytes] + 27 * digit[j + 3 * bytes] +
                                     81 * digit[j + 4 * bytes]);
}

// The power of two nearest to |a| by ratio, as a biased exponent; 0 below the normal numbers.
inline int32_t nearest_power(float a) { return std::min((magnitude(a) + 0x00400000) >> 23, 254); }

void write_four_bit(Chunk& c, uint8_t* to) {
  int32_t top = 0;
  for (int64_t i = 0; i < c.n; ++i) top = std::max(top, nearest_power(c.a[i]));
  put(to, static_cast<uint16_t>(top));
  uint8_t digit[kChunk + 1] = {};
  for (int64_t i = 0; i < c.n; ++i) {
    const int32_t power = nearest_power(c.a[i]), code = power == 0 ? 0 : std::max(power - top + 7, 0);
    const int32_t sign = std::bit_cast<int32_t>(c.a[i]) & ~0x7fffffff;
    c.sent[i] = code ? std::bit_cast<float>(sign | power << 23) : 0.0f;
    digit[i] = static_cast<uint8_t>(code ? code | (sign < 0 ? 8 : 0) : 0);
  }
  const int64_t bytes = (c.n + 1) / 2;
  for (int64_t j = 0; j < bytes; ++j) to[2 + j] = static_cast<uint8_t>(digit[j] | digit[j + bytes] << 4);
}

void settle_all(const Chunk& c, const CompressionTask& t, const CodeChunk& at) {
  float *x = t.x + at.begin, *residual = c.a;
  const float scale = t.local_scale;
  for (int64_t i = 0; i < c.n; ++i) residual[i] -= c.sent[i];
  if (t.local == LocalPart::partial)
    for (int64_t i = 0; i < c.n; ++i) x[i] = c.sent[i] != 0 ? x[i] - c.sent[i] : scale * x[i];
  else if (t.local == LocalPart::error)
    for (int64_t i = 0; i < c.n; ++i) x[i] = scale * residual[i];
  else
    scale_local(c, t, x);
  if (t.velocity)
    for (int64_t i = 0; i < c.n; ++i) t.velocity[at.begin + i] = c.sent[i] != 0 ? 0.0f : t.velocity[at.begin + i];
}

// -- the table -------------------------------------------------------------------------------------------------------------------

int64_t compress(const CompressionTask& t, size_t begin, size_t end) {
  const Coding coding = t.layout->coding;
  Chunk c;
  for (size_t i = begin; i < end; ++i) {
    const CodeChunk& at = t.layout->chunks[i];
    visit(c, t, i, end);
    if (add_up(c, t, at) >= kNotFinite) return at.begin + first_not_finite(c);
    if (is_sparse(coding)) {
      choose_largest(c, at.keep);
      send_entries(c, t, at, at.place, chunk_bytes(coding, at.keep, sizeof(float)));
    } else {
      coding == Coding::ternary ? write_ternary(c, t.code + at.place) : write_four_bit(c, t.code + at.place);
      settle_all(c, t, at);
    }
  }
  return -1;
}

int64_t gather(const CompressionTask& t, size_t begin, size_t end, int32_t threshold, bool again, std::vector<int32_t>& magnitudes,
               int32_t* counts) {
  Chunk c;
  for (size_t i = begin; i < end; ++i) {
    const CodeChunk& at = t.layout->chunks[i];
    visit(c, t, i, end);
    if (!again && add_up(c, t, at) >= kNotFinite) return at.begin + first_not_finite(c);
    choose(c, threshold);
    magnitudes.insert(magnitudes.end(), c.magnitudes, c.magnitudes + c.entries);
    counts[i - begin] = static_cast<int32_t>(c.entries);
  }
  return -1;
}

void send(const CompressionTask& t, size_t begin, size_t end, int32_t threshold, const int32_t* ties, const int64_t* places) {
  Chunk c;
  for (size_t i = begin; i < end; ++i) {
    const CodeChunk& at = t.layout->chunks[i];
    visit(c, t, i, end);
    choose(c, threshold);
    truncate(c, threshold, ties[i - begin]);
    send_entries(c, t, at, places[i - begin], chunk_bytes(t.layout->coding, c.entries, sizeof(float)));
  }
}

void add_entries(const CodeLayout& layout, const CodeChunk& at, const uint8_t* code, int64_t place, float scale, float* sum) {
  const int64_t n = get<uint16_t>(code + at.header);
  const uint8_t* from = code + place;
  float levels[4] = {};
  if (layout.coding == Coding::two_bit) {
    const float low = widen(get<bf16>(from)), high = widen(get<bf16>(from + 2));
    levels[0] = low, levels[1] = -low, levels[2] = high, levels[3] = -high, from += 4;
  }
  const uint8_t* values = from + index_bytes(n);
  const auto add = [&](auto value) {
    for (int64_t i = 0; i < n; ++i) sum[get_index(from, i)] += scale * value(i);
  };
  if (layout.coding == Coding::full)
    add([&](int64_t i) { return get<float>(values + 4 * i); });
  else if (layout.coding == Coding::bf16)
    add([&](int64_t i) { return widen(get<bf16>(values + 2 * i)); });
  else
    add([&](int64_t i) { return levels[values[i / 4] >> i % 4 * 2 & 3]; });
}

// Digit p of each byte, 3^p = unit, is an element of the p-th fifth of the chunk.
template <int unit>
void add_digits(const uint8_t* from, int64_t n, float level, float* sum) {
  for (int64_t j = 0; j < n; ++j) {
    const int digit = from[j] / unit % 3;
    sum[j] += digit == 1 ? level : digit == 2 ? -level : 0.0f;
  }
}

void add_ternary(const uint8_t* from, int64_t n, float scale, float* sum) {
  const float level = scale * get<float>(from);
  const int64_t bytes = (n + 4) / 5;
  const auto fifth = [&](int64_t p) { return std::clamp<int64_t>(n - p * bytes, 0, bytes); };
  add_digits<1>(from + 4, fifth(0), level, sum);
  add_digits<3>(from + 4, fifth(1), level, sum + bytes);
  add_digits<9>(from + 4, fifth(2), level, sum + 2 * bytes);
  add_digits<27>(from + 4, fifth(3), level, sum + 3 * bytes);
  add_digits<81>(from + 4, fifth(4), level, sum + 4 * bytes);
}

// What a code stands for, by the bits of the number: 0 where the code or the exponent says so.
inline float four_bit_value(int32_t code, int32_t top) {
  const int32_t power = top - 7 + (code & 7);
  const int32_t bits = power << 23 | (code & 8) << 28;
  return std::bit_cast<float>((code & 7) != 0 && power > 0 ? bits : 0);
}

void add_four_bit(const uint8_t* from, int64_t n, float scale, float* sum) {
  const int32_t top = get<uint16_t>(from);
  const int64_t bytes = (n + 1) / 2;
  from += 2;
  for (int64_t j = 0; j < bytes; ++j) sum[j] += scale * four_bit_value(from[j] & 15, top);
  for (int64_t j = bytes; j < n; ++j) sum[j] += scale * four_bit_value(from[j - bytes] >> 4, top);
}

void decompress(const CodeLayout& layout, const uint8_t* codes, const std::vector<std::vector<int64_t>>& places, float scale, float* sum,
                size_t begin, size_t end) {
  for (size_t i = begin; i < end; ++i) {
    const CodeChunk& at = layout.chunks[i];
    for (size_t r = 0; r < places.size(); ++r) {
      const uint8_t* code = codes + static_cast<int64_t>(r) * layout.bytes;
      if (is_sparse(layout.coding))
        add_entries(layout, at, code, places[r][i], scale, sum + at.begin);
      else if (layout.coding == Coding::ternary)
        add_ternary(code + places[r][i], at.count, scale, sum + at.begin);
      else
        add_four_bit(code + places[r][i], at.count, scale, sum + at.begin);
    }
  }
}

}  // namespace

const CompressionTable& compression() {
  static constexpr CompressionTable table = {compress, gather, send, decompress};
  return table;
}

}  // namespace starling::kernels::STARLING_ISA
