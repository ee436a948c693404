// Adds what codes hold to a sum.
#include <algorithm>

#include "backend/cpu/kernels/chunk.h"

namespace starling::kernels::STARLING_ISA {
namespace {

void add_entries(const CodeLayout& layout, const CodeChunk& at, const uint8_t* code, int64_t place, float scale, float* sum) {
  const int64_t n = get<uint16_t>(code + at.header);
  const uint8_t* from = code + place;
  float levels[4] = {};
  if (layout.coding == Coding::two_bit) {
    const float low = widen(get<bf16>(from)), high = widen(get<bf16>(from + 2));
    levels[0] = low;
    levels[1] = -low;
    levels[2] = high;
    levels[3] = -high;
    from += 4;
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

}  // namespace

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

}  // namespace starling::kernels::STARLING_ISA
