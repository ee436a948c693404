// Compression in double precision, one element after the other: sort, round, subtract. It writes the same format as the fast version, with
// elements and levels of 8 bytes.
#include <algorithm>
#include <bit>
#include <numeric>

#include "backend/reference/reference_backend.h"

namespace starling {
namespace {

using Values = std::vector<double>;

double largest(const double* a, int64_t n) {
  double m = 0;
  for (int64_t i = 0; i < n; ++i) m = std::max(m, std::abs(a[i]));
  return m;
}

// The elements of a, from offset `base` on, that are among the k largest of those that are not zero; of equal ones the first.
std::vector<int64_t> largest_entries(const double* a, int64_t base, int64_t n, int64_t k) {
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), base);
  std::stable_sort(order.begin(), order.end(), [&](int64_t x, int64_t y) { return std::abs(a[x]) > std::abs(a[y]); });
  while (static_cast<int64_t>(order.size()) > k || (!order.empty() && a[order.back()] == 0)) order.pop_back();
  std::sort(order.begin(), order.end());
  return order;
}

// Writes the given elements of a chunk at `to` and what they are sent as into `sent`; returns their number.
int64_t write_entries(const double* a, const CodeChunk& at, Coding coding, const std::vector<int64_t>& entries, uint8_t* to, double* sent) {
  std::vector<int64_t> index;
  std::vector<int> bits;
  Values values, out;
  for (const int64_t i : entries) values.push_back(a[i]);
  const TwoLevels levels = coding == Coding::two_bit ? two_levels(values.data(), static_cast<int64_t>(values.size())) : TwoLevels{};
  for (size_t e = 0; e < entries.size(); ++e) {
    const double x = values[e];
    double s = coding == Coding::bf16 ? widen(sendable_bf16(x)) : x;
    int two = 0;
    if (coding == Coding::two_bit && !two_bit_value(levels, x, two, s)) continue;
    index.push_back(entries[e] - at.begin);
    bits.push_back(two);
    out.push_back(s);
    sent[entries[e]] = s;
  }
  const auto n = static_cast<int64_t>(index.size());
  if (coding == Coding::two_bit) {
    put(to, levels.low);
    put(to + 2, levels.high);
    to += 4;
  }
  for (int64_t i = 0; i < n; ++i) put_index(to, i, static_cast<int>(index[static_cast<size_t>(i)]));
  to += index_bytes(n);
  for (int64_t i = 0; i < n; ++i) {
    const double s = out[static_cast<size_t>(i)];
    if (coding == Coding::full) put(to + 8 * i, s);
    if (coding == Coding::bf16) put(to + 2 * i, round_to_bf16(static_cast<float>(s)));
    if (coding == Coding::two_bit) to[i / 4] = static_cast<uint8_t>(to[i / 4] | bits[static_cast<size_t>(i)] << i % 4 * 2);
  }
  return n;
}

void write_ternary(const double* a, const CodeChunk& at, uint8_t* to, double* sent) {
  const double top = largest(a + at.begin, at.count);
  double squares = 0;
  for (int64_t i = at.begin; i < at.begin + at.count && top > 0; ++i) squares += a[i] / top * (a[i] / top);
  const double exact = std::min(1.25 * std::sqrt(squares / at.count), 1.0) * top;
  const auto level = std::bit_cast<double>(std::bit_cast<uint64_t>(exact) & ~((uint64_t{1} << 49) - 1));
  put(to, level);
  const int64_t bytes = (at.count + 4) / 5;
  const int units[5] = {1, 3, 9, 27, 81};
  for (int64_t i = 0; i < at.count; ++i) {
    const double x = a[at.begin + i], s = x < 0 ? -level : level;
    if (!subtracts_exactly(x, s)) continue;
    sent[at.begin + i] = s;
    uint8_t& byte = to[8 + i % bytes];
    byte = static_cast<uint8_t>(byte + units[i / bytes] * (x < 0 ? 2 : 1));
  }
}

// The nearest power of two, from 1.5 times a power on the next one, as a biased exponent; 0 where that is below the normal numbers.
int nearest_power(double x) {
  if (std::abs(x) < 0x1p-1023) return 0;
  int e = 0;
  const double fraction = std::frexp(std::abs(x), &e);  // in [0.5, 1)
  return std::clamp(e + 1022 + (fraction >= 0.75), 0, 2046);
}

void write_four_bit(const double* a, const CodeChunk& at, uint8_t* to, double* sent) {
  int top = 0;
  for (int64_t i = at.begin; i < at.begin + at.count; ++i) top = std::max(top, nearest_power(a[i]));
  put(to, static_cast<uint16_t>(top));
  const int64_t bytes = (at.count + 1) / 2;
  for (int64_t i = 0; i < at.count; ++i) {
    const double x = a[at.begin + i];
    const int power = nearest_power(x), code = power == 0 ? 0 : std::max(power - top + 7, 0);
    if (code == 0) continue;
    sent[at.begin + i] = std::copysign(std::ldexp(1.0, power - 1023), x);
    uint8_t& byte = to[2 + i % bytes];
    byte = static_cast<uint8_t>(byte | (code | (x < 0 ? 8 : 0)) << (i < bytes ? 0 : 4));
  }
}

void write_part(const CodeLayout& layout, const CodePart& part, const double* a, uint8_t* code, double* sent) {
  const auto chunk = [&](size_t c) -> const CodeChunk& { return layout.chunks[c]; };
  std::vector<int64_t> chosen;
  if (layout.by_tensor && part.first < part.last)
    chosen = largest_entries(a, chunk(part.first).begin, chunk(part.last - 1).begin + chunk(part.last - 1).count - chunk(part.first).begin,
                             part.keep);
  auto next = chosen.begin();
  int64_t place = part.first < part.last ? chunk(part.last - 1).header + 2 : 0;
  for (size_t c = part.first; c < part.last; ++c) {
    const CodeChunk& at = chunk(c);
    if (!layout.by_tensor) place = at.place;
    if (layout.coding == Coding::ternary) {
      write_ternary(a, at, code + place, sent);
    } else if (layout.coding == Coding::four_bit) {
      write_four_bit(a, at, code + place, sent);
    } else {
      const auto last = std::lower_bound(next, chosen.end(), at.begin + at.count);
      const std::vector<int64_t> entries =
          layout.by_tensor ? std::vector<int64_t>(next, last) : largest_entries(a, at.begin, at.count, at.keep);
      next = last;
      const int64_t n = write_entries(a, at, layout.coding, entries, code + place, sent);
      put(code + at.header, static_cast<uint16_t>(n));
      place += chunk_bytes(layout.coding, n, 8);
    }
  }
}

double read_entry(Coding coding, const uint8_t* from, int64_t n, int64_t i) {
  const uint8_t* values = from + (coding == Coding::two_bit ? 4 : 0) + index_bytes(n);
  if (coding == Coding::full) return get<double>(values + 8 * i);
  if (coding == Coding::bf16) return widen(get<bf16>(values + 2 * i));
  const int bits = values[i / 4] >> i % 4 * 2 & 3;
  const double level = widen(get<bf16>(from + (bits & 2)));
  return bits & 1 ? -level : level;
}

double read_element(Coding coding, const uint8_t* from, int64_t count, int64_t i) {
  if (coding == Coding::ternary) {
    const int64_t bytes = (count + 4) / 5;
    int digits = from[8 + i % bytes];
    for (int64_t p = i / bytes; p > 0; --p) digits /= 3;
    const double level = get<double>(from);
    return digits % 3 == 0 ? 0 : digits % 3 == 1 ? level : -level;
  }
  const int64_t bytes = (count + 1) / 2;
  const int code = from[2 + i % bytes] >> (i < bytes ? 0 : 4) & 15;
  const double level = (code & 7) == 0 ? 0 : std::ldexp(1.0, get<uint16_t>(from) + (code & 7) - 7 - 1023);
  return code & 8 ? -level : level;
}

}  // namespace

void ReferenceBackend::compress(const Compression& c) {
  const CodeLayout& layout = *c.layout;
  auto* x = c.x.data<double>();
  auto* residual = c.residual.data<double>();
  auto* velocity = c.velocity ? c.velocity.data<double>() : nullptr;
  Values a(static_cast<size_t>(c.x.count())), sent(a.size());
  for (const CodeChunk& at : layout.chunks)
    for (int64_t i = at.begin; i < at.begin + at.count; ++i) {
      if (velocity) velocity[i] = c.momentum * velocity[i] + x[i];
      a[static_cast<size_t>(i)] = c.decay * residual[i] + (velocity ? velocity[i] : x[i]);
      if (!std::isfinite(a[static_cast<size_t>(i)])) return note_bad(c.bad, i);
    }
  c.code.zero();
  for (const CodePart& part : layout.parts)
    write_part(layout, part, a.data(), reinterpret_cast<uint8_t*>(c.code.data<int8_t>()), sent.data());
  for (const CodeChunk& at : layout.chunks)
    for (int64_t i = at.begin; i < at.begin + at.count; ++i) {
      const double s = sent[static_cast<size_t>(i)];
      residual[i] = a[static_cast<size_t>(i)] - s;
      if (velocity && s != 0) velocity[i] = 0;
      x[i] = c.local == LocalPart::none                ? 0
             : c.local == LocalPart::error             ? c.local_scale * residual[i]
             : c.local == LocalPart::partial && s != 0 ? x[i] - s
                                                       : c.local_scale * x[i];
    }
}

void ReferenceBackend::decompress(const CodeLayout& layout, const Tensor& codes, double scale, const Tensor& sum) {
  const auto* code = reinterpret_cast<const uint8_t*>(codes.data<int8_t>());
  for (int64_t start = 0; layout.bytes > 0 && start + layout.bytes <= codes.count(); start += layout.bytes, code += layout.bytes) {
    const std::vector<int64_t> places = code_places(layout, code);
    for (size_t c = 0; c < layout.chunks.size(); ++c) {
      const CodeChunk& at = layout.chunks[c];
      double* y = sum.data<double>() + at.begin;
      const uint8_t* from = code + places[c];
      if (is_sparse(layout.coding)) {
        const int64_t n = get<uint16_t>(code + at.header);
        const uint8_t* list = from + (layout.coding == Coding::two_bit ? 4 : 0);
        for (int64_t i = 0; i < n; ++i) y[get_index(list, i)] += scale * read_entry(layout.coding, from, n, i);
      } else {
        for (int64_t i = 0; i < at.count; ++i) y[i] += scale * read_element(layout.coding, from, at.count, i);
      }
    }
  }
}

}  // namespace starling
