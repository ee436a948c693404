// Compression in f32. The largest k of a chunk: its elements fall into groups (element i into group i mod G, so that the groups' maxima are
// whole vectors); the k-th largest of the maxima is at most the k-th largest element, so all that are to be sent are in the few groups
// whose maximum reaches it, and the exact choice is made among those.
#include "backend/cpu/compression.h"

#include <algorithm>
#include <bit>

namespace starling::kernels::STARLING_ISA {
namespace {

constexpr int32_t kNotFinite = 0x7f800000;

inline int32_t magnitude(float x) { return std::bit_cast<int32_t>(x) & 0x7fffffff; }
inline float positive(int32_t bits) { return std::bit_cast<float>(bits); }

// What is to be sent of one chunk, and room to choose it.
struct Chunk {
  alignas(64) float a[kChunk];     // residual and gradient together; zeros behind its end up to a multiple of the groups
  alignas(64) float sent[kChunk];  // of the entries, or of all elements
  int32_t top[1024];               // of each group
  int groups = 256;
  int64_t n = 0;

  int64_t entries = 0;
  uint16_t index[kChunk];
  int32_t magnitudes[kChunk];  // of the entries
  float gradient[kChunk];      // at the entries
};

void load(Chunk& c, const CompressionTask& t, const CodeChunk& at) {
  c.n = at.count;
  const float* x = t.x + at.begin;
  const float* residual = t.residual + at.begin;
  if (t.velocity) {
    float* velocity = t.velocity + at.begin;
    for (int64_t i = 0; i < c.n; ++i) {
      velocity[i] = t.momentum * velocity[i] + x[i];
      c.a[i] = t.decay * residual[i] + velocity[i];
    }
  } else {
    for (int64_t i = 0; i < c.n; ++i) c.a[i] = t.decay * residual[i] + x[i];
  }
}

void reload(Chunk& c, const CompressionTask& t, const CodeChunk& at) {
  c.n = at.count;
  std::memcpy(c.a, t.residual + at.begin, static_cast<size_t>(c.n) * sizeof(float));
}

int64_t not_finite(const Chunk& c) {
  int32_t largest = 0;
  for (int64_t i = 0; i < c.n; ++i) largest = std::max(largest, magnitude(c.a[i]));
  if (largest < kNotFinite) return -1;
  int64_t i = 0;
  while (magnitude(c.a[i]) < kNotFinite) ++i;
  return i;
}

// The k-th largest of n numbers that are not negative, 0 < k <= n: bit by bit, since counting is whole vectors and sorting is not.
int32_t kth_largest(const int32_t* x, int64_t n, int64_t k) {
  int32_t found = 0;
  for (int32_t bit = 1 << 30; bit > 0; bit >>= 1) {
    const int32_t least = found | bit;
    int32_t reach = 0;
    for (int64_t i = 0; i < n; ++i) reach += x[i] >= least;
    if (reach >= k) found = least;
    if (reach == k) break;  // the k-th is the least of those: any threshold between chooses the same
  }
  return found;
}

// The maxima of the groups, and the padding that makes them whole.
template <int G>
void maxima(Chunk& c) {
  const int64_t padded = round_up(c.n, G);
  std::fill(c.a + c.n, c.a + padded, 0.0f);
  for (int g = 0; g < G; ++g) c.top[g] = 0;
  for (int64_t row = 0; row < padded; row += G)
    for (int g = 0; g < G; ++g) c.top[g] = std::max(c.top[g], magnitude(c.a[row + g]));
  c.groups = G;
}

// The elements of at least the threshold (> 0) become the entries, in a fixed order.
void choose(Chunk& c, int32_t threshold) {
  int64_t n = 0;
  for (int g = 0; g < c.groups; ++g) {
    if (c.top[g] < threshold) continue;
    for (int64_t i = g; i < c.n; i += c.groups) {
      c.index[n] = static_cast<uint16_t>(i), c.magnitudes[n] = magnitude(c.a[i]);
      n += c.magnitudes[n] >= threshold;
    }
  }
  c.entries = n;
}

// Of the entries those above the threshold stay, and the first `ties` of those at it.
void truncate(Chunk& c, int32_t threshold, int64_t ties) {
  int64_t n = 0;
  for (int64_t i = 0; i < c.entries; ++i) {
    const bool stays = c.magnitudes[i] > threshold || (c.magnitudes[i] == threshold && ties-- > 0);
    c.index[n] = c.index[i];
    n += stays;
  }
  c.entries = n;
}

void choose_all(Chunk& c) {
  int64_t n = 0;
  for (int64_t i = 0; i < c.n; ++i) {
    c.index[n] = static_cast<uint16_t>(i), c.magnitudes[n] = magnitude(c.a[i]);
    n += c.magnitudes[n] > 0;
  }
  c.entries = n;
}

// The k largest that are not zero become the entries.
void choose_largest(Chunk& c, int64_t k) {
  if (k == 0) {
    c.entries = 0;
    return;
  }
  const bool few = k <= 96, grouped = k <= 512;
  if (grouped) {
    few ? maxima<256>(c) : maxima<1024>(c);
    choose(c, std::max(kth_largest(c.top, c.groups, k), 1));
  } else {
    choose_all(c);
  }
  if (c.entries <= k) return;
  const int32_t threshold = kth_largest(c.magnitudes, c.entries, k);
  truncate(c, threshold, k - std::count_if(c.magnitudes, c.magnitudes + c.entries, [&](int32_t m) { return m > threshold; }));
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
    const uint32_t pair = c.index[i] | static_cast<uint32_t>(c.index[i + 1]) << 12;
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
  float* residual = t.residual + at.begin;
  float* own = c.gradient;
  if (t.local == LocalPart::partial)
    for (int64_t i = 0; i < c.entries; ++i) own[i] = x[c.index[i]];
  scale_local(c, t, x);
  std::memcpy(residual, c.a, static_cast<size_t>(c.n) * sizeof(float));
  for (int64_t i = 0; i < c.entries; ++i) {
    const int64_t e = c.index[i];
    residual[e] = c.a[e] - c.sent[i];
    if (t.local == LocalPart::error) x[e] = t.local_scale * residual[e];
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
  float* x = t.x + at.begin;
  float* residual = t.residual + at.begin;
  const float scale = t.local_scale;
  for (int64_t i = 0; i < c.n; ++i) residual[i] = c.a[i] - c.sent[i];
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
    load(c, t, at);
    if (const int64_t bad = not_finite(c); bad >= 0) return at.begin + bad;
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
    again ? reload(c, t, at) : load(c, t, at);
    if (const int64_t bad = not_finite(c); bad >= 0) return at.begin + bad;
    maxima<256>(c);
    choose(c, threshold);
    std::memcpy(t.residual + at.begin, c.a, static_cast<size_t>(c.n) * sizeof(float));
    magnitudes.insert(magnitudes.end(), c.magnitudes, c.magnitudes + c.entries);
    counts[i - begin] = static_cast<int32_t>(c.entries);
  }
  return -1;
}

void send(const CompressionTask& t, size_t begin, size_t end, int32_t threshold, const int32_t* ties, const int64_t* places) {
  Chunk c;
  for (size_t i = begin; i < end; ++i) {
    const CodeChunk& at = t.layout->chunks[i];
    reload(c, t, at);
    maxima<256>(c);
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
