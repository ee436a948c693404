// Compression in f32. The gradient is added to the residual in place, and everything else is done there while the chunk is in the
// first-level cache.
#include "backend/cpu/kernels/compression.h"

#include <algorithm>

#include "backend/cpu/kernels/chunk.h"

namespace starling::kernels::STARLING_ISA {
namespace {

constexpr int32_t kNotFinite = 0x7f800000;

void visit(Chunk& c, const CompressionTask& t, size_t chunk, size_t end) {
  const CodeChunk &at = t.layout->chunks[chunk], &next = t.layout->chunks[chunk + 1 < end ? chunk + 1 : chunk];
  c.a = t.residual + at.begin;
  c.n = at.count;
  c.next_residual = t.residual + next.begin;
  c.next_x = t.x + next.begin;
}

// Returns the largest magnitude, or at least kNotFinite if an element is not finite.
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

// -- entries ---------------------------------------------------------------------------------------------------------------------

// The entries' values as they are sent; entries that cannot be sent are left out.
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
    c.index[n] = c.index[i];
    c.sent[n] = sent;
    two_bits[n] = static_cast<uint8_t>(bits);
    ++n;
  }
  c.entries = n;
}

void write_entries(const Chunk& c, Coding coding, const TwoLevels& levels, const uint8_t* two_bits, uint8_t* to) {
  if (coding == Coding::two_bit) {
    put(to, levels.low);
    put(to + 2, levels.high);
    to += 4;
  }
  const int64_t n = c.entries;
  int64_t i = 0;
  for (; i + 2 <= n; i += 2, to += 3) {
    const int32_t pair = c.index[i] | c.index[i + 1] << 12;
    to[0] = static_cast<uint8_t>(pair);
    to[1] = static_cast<uint8_t>(pair >> 8);
    to[2] = static_cast<uint8_t>(pair >> 16);
  }
  if (i < n) {
    put_index(to, 0, c.index[i]);
    to += 2;
  }
  if (coding == Coding::full) {
    std::memcpy(to, c.sent, static_cast<size_t>(n) * sizeof(float));
  } else if (coding == Coding::bf16) {
    for (i = 0; i < n; ++i) put(to + 2 * i, static_cast<uint16_t>(std::bit_cast<uint32_t>(c.sent[i]) >> 16));
  } else {
    std::fill_n(to, (n + 3) / 4, uint8_t{0});
    for (i = 0; i < n; ++i) to[i / 4] = static_cast<uint8_t>(to[i / 4] | two_bits[i] << i % 4 * 2);
  }
}

// Sets x to the local part as if nothing were sent.
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

// The power of two nearest to |a|, from 1.5 times a power on the next one, as a biased exponent; 0 below half of the smallest normal.
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

}  // namespace

const CompressionTable& compression() {
  static constexpr CompressionTable table = {compress, gather, send, decompress};
  return table;
}

}  // namespace starling::kernels::STARLING_ISA
