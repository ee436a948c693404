// Compressed parts of flat buffers: the layout of a code, and the two ops that write and read it. The size of a code depends only on the
// layout, so ranks need not exchange sizes. Decoding gives exactly what was sent, and sent + residual equals the original, exactly in the
// element type: values are chosen so that the difference does not round, and elements without such a value are not sent.
//
// A tensor is cut into chunks of 4096 elements. Codings:
//   full, bf16   the elements of largest magnitude: 12 bits of index each, and the element, or its upper bits
//   two_bit      the same with a sign and one of two levels each; the levels of a chunk are in bf16
//   ternary      every element as -level, 0 or level, five in a byte; one level per chunk
//   four_bit     every element as 0 or a sign and one of seven powers of two
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/range.h"
#include "tensor/tensor.h"

namespace starling {

enum class Coding : uint8_t { full, bf16, two_bit, ternary, four_bit };
inline bool is_sparse(Coding c) { return c <= Coding::two_bit; }

constexpr int64_t kChunk = 4096;

struct CodeChunk {
  int64_t begin = 0;              // first element
  int32_t count = 0;              // elements
  int32_t keep = 0;               // sparse: entries that fit, if each chunk has its own
  int64_t header = 0, place = 0;  // bytes from the start of the code to its number of entries (u16; sparse), and to what follows that
};

// One tensor, or a piece of one: chunks [first, last) of the layout.
struct CodePart {
  size_t first = 0, last = 0;
  int64_t keep = 0;  // entries of all its chunks together
};

struct CodeLayout {
  Coding coding = Coding::full;
  bool by_tensor = false;  // a part's entries may fall into any of its chunks, whose places follow from the headers
  int64_t element = 4;     // bytes
  int64_t elements = 0;    // of all parts
  int64_t bytes = 0;       // a multiple of 16
  std::vector<CodePart> parts;
  std::vector<CodeChunk> chunks;
};

// Makes the layout for the given tensors. A sparse coding sends round(keep * elements) of each, 0 < keep <= 1. by_tensor: full and bf16
// only.
CodeLayout make_layout(Coding coding, bool by_tensor, const std::vector<Range>& tensors, double keep, DType type);

// Bytes of a chunk behind its header with `count` entries (sparse) or elements.
int64_t chunk_bytes(Coding coding, int64_t count, int64_t element);

// The place of each chunk of a code with this layout: the chunk's `place` or, with by_tensor, what the headers say.
std::vector<int64_t> code_places(const CodeLayout& layout, const uint8_t* code);
std::vector<int64_t> code_places(const CodeLayout& layout, const uint8_t* code, const CodePart& part);  // of its chunks alone

// What replaces the gradient before the sum of what all ranks sent is added: nothing; the scaled gradient g; the same, but g - sent where
// this rank has sent; the scaled residual.
enum class LocalPart : uint8_t { none, sum, partial, error };

struct Compression {
  const CodeLayout* layout = nullptr;
  Tensor x;         // flat; out: the local part
  Tensor residual;  // flat; x is added to decay * residual; out: what was not sent
  Tensor velocity;  // flat, or empty; if given, velocity = momentum * velocity + x is added instead of x. Out: 0 where sent
  double decay = 1, momentum = 0;
  LocalPart local = LocalPart::none;
  double local_scale = 1;
  Tensor code;  // i8 [layout.bytes]
  Tensor bad;   // f64 [1]: 1 + the index of an element that is not finite, if any; all other outputs are then undefined
};

// -- for those who implement the ops -----------------------------------------------------------------------------------------------

// Whether x - s does not round, for s of x's sign: the difference of numbers within a factor of two is exact (Sterbenz); for smaller s the
// error of the difference (Dekker) is checked.
template <class T>
inline bool subtracts_exactly(T x, T s) {
  const T rest = x - s;
  return std::abs(x) >= std::abs(s) / 2 && x - rest == s;
}

// The nearest bf16 number or, if that is infinite, the next one towards zero; 0 if x has no such neighbour within a factor of two.
template <class T>
inline bf16 sendable_bf16(T x) {
  bf16 s = round_to_bf16(static_cast<float>(x));
  if ((s.bits & 0x7f80) == 0x7f80) s.bits = static_cast<uint16_t>((s.bits & 0x8000) | 0x7f7f);
  return subtracts_exactly(x, static_cast<T>(widen(s))) ? s : bf16{0};
}
inline bf16 truncated_bf16(double x) {
  const double largest = 3.4028234663852886e38;
  const auto f = static_cast<float>(x < largest ? x : largest);
  uint32_t bits;
  std::memcpy(&bits, &f, 4);
  return {static_cast<uint16_t>(bits >> 16)};
}

template <class T>
inline void put(uint8_t* to, T x) {
  std::memcpy(to, &x, sizeof x);
}
template <class T>
inline T get(const uint8_t* from) {
  T x;
  std::memcpy(&x, from, sizeof x);
  return x;
}

// Access to index i of a list of 12-bit numbers, two in three bytes. They must be written in order.
inline void put_index(uint8_t* list, int64_t i, int index) {
  uint8_t* p = list + i / 2 * 3;
  if (i % 2 == 0) {
    p[0] = static_cast<uint8_t>(index);
    p[1] = static_cast<uint8_t>(index >> 8);
  } else {
    p[1] = static_cast<uint8_t>(p[1] | (index & 15) << 4);
    p[2] = static_cast<uint8_t>(index >> 4);
  }
}
inline int get_index(const uint8_t* list, int64_t i) {
  const uint8_t* p = list + i / 2 * 3;
  return i % 2 == 0 ? p[0] | (p[1] & 15) << 8 : p[1] >> 4 | p[2] << 4;
}
inline int64_t index_bytes(int64_t count) { return (3 * count + 1) / 2; }

// The two levels that represent magnitudes: the mean of those up to the overall mean, and the mean of those above it.
struct TwoLevels {
  bf16 low{0}, high{0};
  double split = 0;
};
template <class T>
TwoLevels two_levels(const T* values, int64_t n) {
  double total = 0, low = 0;
  int64_t lows = 0;
  for (int64_t i = 0; i < n; ++i) total += std::abs(static_cast<double>(values[i])) / static_cast<double>(n);
  for (int64_t i = 0; i < n; ++i)
    if (const double m = std::abs(static_cast<double>(values[i])); m <= total) low += m / static_cast<double>(n), ++lows;
  TwoLevels levels;
  levels.split = total;
  const auto scaled = [&](double x, int64_t count) { return truncated_bf16(x * (static_cast<double>(n) / static_cast<double>(count))); };
  if (lows > 0) levels.low = scaled(low, lows);
  levels.high = lows < n ? scaled(total - low, n - lows) : levels.low;
  return levels;
}
// The two bits that x is sent as, 2 * high + negative, and the value they represent; false if neither level can be subtracted exactly.
template <class T>
bool two_bit_value(const TwoLevels& levels, T x, int& bits, T& sent) {
  for (const bool high : {true, false}) {
    if (high && std::abs(static_cast<double>(x)) <= levels.split) continue;
    const auto level = static_cast<T>(widen(high ? levels.high : levels.low));
    sent = x < 0 ? -level : level;
    bits = 2 * high + (x < 0);
    if (level != 0 && subtracts_exactly(x, sent)) return true;
  }
  return false;
}

}  // namespace starling
