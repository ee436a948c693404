#include "comm/schedule.h"

#include <algorithm>
#include <cstring>

namespace starling {
namespace {

template <class T>
void add(T* to, const T* from, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] += from[i];
}
void add(bf16* to, const bf16* from, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = round_to_bf16(widen(to[i]) + widen(from[i]));
}
template <class T>
void maximum(T* to, const T* from, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = from[i] > to[i] ? from[i] : to[i];
}
void maximum(bf16* to, const bf16* from, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = widen(from[i]) > widen(to[i]) ? from[i] : to[i];
}

template <class F>
void by_type(DType type, F f) {
  switch (type) {
    case DType::f32:
      return f(float{});
    case DType::f64:
      return f(double{});
    case DType::i32:
      return f(int32_t{});
    case DType::bf16:
      return f(bf16{});
    default:
      CHECK(false, "no arithmetic on tensors of {}", name_of(type));
  }
}

}  // namespace

int64_t Schedule::bytes_sent() const {
  int64_t bytes = 0;
  for (const Round& round : rounds)
    for (const Send& send : round.sends) bytes += send.bytes;
  return bytes;
}

int64_t Schedule::bytes_received() const {
  int64_t bytes = 0;
  for (const Round& round : rounds)
    for (const Receive& receive : round.receives) bytes += receive.bytes;
  return bytes;
}

int64_t Schedule::messages_sent() const {
  int64_t messages = 0;
  for (const Round& round : rounds) messages += static_cast<int64_t>(round.sends.size());
  return messages;
}

void apply(const Schedule::Local& local, DType type, std::byte* data, std::byte* scratch) {
  std::byte* to = (local.to_area == Area::data ? data : scratch) + local.to;
  const std::byte* from = (local.from_area == Area::data ? data : scratch) + local.from;
  const int64_t n = local.count;
  switch (local.op) {
    case Schedule::Local::add:
      return by_type(type, [&]<class T>(T) { add(reinterpret_cast<T*>(to), reinterpret_cast<const T*>(from), n); });
    case Schedule::Local::maximum:
      return by_type(type, [&]<class T>(T) { maximum(reinterpret_cast<T*>(to), reinterpret_cast<const T*>(from), n); });
    case Schedule::Local::copy:
      std::memmove(to, from, n * size_of(type));
      return;
    case Schedule::Local::narrow: {
      const auto* x = reinterpret_cast<const float*>(from);
      auto* y = reinterpret_cast<bf16*>(to);
      for (int64_t i = 0; i < n; ++i) y[i] = round_to_bf16(x[i]);
      return;
    }
    case Schedule::Local::widen: {
      const auto* x = reinterpret_cast<const bf16*>(from);
      auto* y = reinterpret_cast<float*>(to);
      for (int64_t i = 0; i < n; ++i) y[i] = widen(x[i]);
      return;
    }
    case Schedule::Local::add_widened: {
      const auto* x = reinterpret_cast<const bf16*>(from);
      auto* y = reinterpret_cast<float*>(to);
      for (int64_t i = 0; i < n; ++i) y[i] += widen(x[i]);
      return;
    }
  }
}

int64_t bytes_touched(const Schedule::Local& local, DType type) {
  switch (local.op) {
    case Schedule::Local::add:
    case Schedule::Local::maximum:
      return 3 * local.count * size_of(type);
    case Schedule::Local::copy:
      return 2 * local.count * size_of(type);
    case Schedule::Local::add_widened:
      return 10 * local.count;
    default:
      return 6 * local.count;
  }
}

}  // namespace starling
