#include "interop/foreign_array.h"

#include <cmath>

#include "backend/reference/reference.h"
#include "tensor/tensor.h"

namespace starling {
namespace {

float half_to_float(uint16_t h) {
  const int exponent = h >> 10 & 31, fraction = h & 1023;
  const float sign = h >> 15 ? -1.0f : 1.0f;
  if (exponent == 31) return fraction ? NAN : sign * INFINITY;
  return sign *
         (exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24) : std::ldexp(static_cast<float>(1024 + fraction), exponent - 25));
}

template <class T, class F>
std::vector<float> floats_by(std::string_view bytes, F f) {
  std::vector<float> values;
  values.reserve(bytes.size() / sizeof(T));
  for (const T x : elements_of<T>(bytes)) values.push_back(f(x));
  return values;
}

}  // namespace

std::vector<float> float_values(std::string_view type, std::string_view bytes) {
  const auto number = [](auto x) { return static_cast<float>(x); };
  if (type == "i1") return floats_by<int8_t>(bytes, number);
  if (type == "i2") return floats_by<int16_t>(bytes, number);
  if (type == "i4") return floats_by<int32_t>(bytes, number);
  if (type == "f2") return floats_by<uint16_t>(bytes, half_to_float);
  if (type == "b2") return floats_by<bf16>(bytes, [](bf16 x) { return widen(x); });
  return elements_of<float>(bytes);
}

bool are_sinusoids(const std::vector<float>& table, int64_t width, int64_t first) {
  for (size_t i = 0; i < table.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    if (!(std::abs(table[i] - sinusoid(first + at / width, at % width, width)) <= 1e-6)) return false;
  }
  return true;
}

}  // namespace starling
