#include "backend/limits.h"

#include <algorithm>
#include <chrono>

#include "backend/cpu/product_times.h"
#include "base/random.h"

namespace starling {
namespace {

constexpr size_t kMostTimed = 64;  // products, each of some 30 ms

double seconds_now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

void wait_for(Backend& backend) {
  if (!backend.memory().host()) backend.memory().download(nullptr, nullptr, 0);
}

// Of one call: the best of three rounds of at least 5 ms, each waited for once, so that neither launches nor waiting count.
template <class F>
double seconds_of(Backend& backend, F run) {
  constexpr double kRound = 5e-3, kSlow = 50e-3;
  double best = 1e30;
  int64_t calls = 1;
  run();
  wait_for(backend);
  for (int round = 0; round < 3;) {
    const double start = seconds_now();
    for (int64_t i = 0; i < calls; ++i) run();
    wait_for(backend);
    const double taken = seconds_now() - start;
    if (taken < kRound) {
      calls *= 2;
      continue;
    }
    best = std::min(best, taken / static_cast<double>(calls));
    if (taken > kSlow) break;
    ++round;
  }
  return best;
}

// Zeros and ones would take less power, and so less time, than numbers do.
Tensor random_tensor(Backend& backend, const Shape& shape, DType type) {
  const Tensor t(shape, type, backend.memory());
  Random random(11, 3);
  std::vector<double> some(static_cast<size_t>(std::min<int64_t>(shape.count(), 1 << 16)));
  for (double& v : some) v = random.normal();
  const Tensor piece({static_cast<int64_t>(some.size())}, type, backend.memory());
  piece.from_doubles(some);
  for (int64_t at = 0; at < shape.count(); at += piece.count()) {
    const Shape left{std::min(piece.count(), shape.count() - at)};
    t.slice(at, left).copy_from(piece.slice(0, left));
  }
  return t;
}

}  // namespace

double product_seconds(Backend& backend, const ProductShape& s, int threads) {
  if (backend.memory().host()) return product_seconds(backend.activation(), s, threads);
  if (s.kind == ProductKind::weight_gradient) {
    const Tensor a = random_tensor(backend, {s.k, s.m}, backend.activation()), c = random_tensor(backend, {s.k, s.n}, backend.activation());
    const Tensor dw({s.m, s.n}, backend.parameter(), backend.memory());
    return seconds_of(backend, [&] { backend.weight_gradient(a, c, dw, Write::overwrite); });
  }
  const Tensor x = random_tensor(backend, {s.m, s.k}, backend.activation()), w = random_tensor(backend, {s.k, s.n}, backend.parameter());
  const Tensor y({s.m, s.n}, s.wide_output ? backend.parameter() : backend.activation(), backend.memory());
  const auto packed = s.quantized ? backend.pack_int8(w, false, 0) : backend.pack(w, false, nullptr);
  return seconds_of(backend, [&] { backend.linear(x, *packed, Tensor(), y, Activation::none, Write::overwrite); });
}

std::map<ProductShape, int64_t> with_few_rows(const std::map<ProductShape, int64_t>& calls) {
  if (calls.size() <= kMostTimed) return calls;
  std::map<ProductShape, std::map<int64_t, int64_t>> by_rows;  // of a shape without its rows: calls by rows
  for (const auto& [shape, count] : calls) {
    ProductShape rest = shape;
    rest.m = 0;
    by_rows[rest][shape.m] += count;
  }
  const auto groups = static_cast<int64_t>(std::max<size_t>(1, kMostTimed / by_rows.size()));
  std::map<ProductShape, int64_t> result;
  for (auto& [shape, rows] : by_rows) {
    int64_t all = 0, count = 0, sum = 0;
    for (const auto& [m, n] : rows) all += n;
    for (const auto& [m, n] : rows) {
      count += n;
      sum += n * m;
      if (count * groups < all && m != rows.rbegin()->first) continue;
      ProductShape mean = shape;
      mean.m = (sum + count / 2) / count;
      result[mean] += count;
      count = sum = 0;
    }
  }
  return result;
}

double peak_product_rate(Backend& backend) {
  if (backend.memory().host()) return peak_product_rate(backend.activation());
  double best = 0;
  for (int64_t n = 512; n <= 8192; n *= 2) {
    const ProductShape shape{ProductKind::linear, n, n, n, false};
    const double seconds = product_seconds(backend, shape);
    best = std::max(best, product_flops(shape) / seconds);
    if (seconds > 20e-3) break;  // larger ones would show nothing new
  }
  return best;
}

double memory_rate(Backend& backend) {
  double best = 0;
  for (int64_t bytes = int64_t{64} << 20; bytes <= int64_t{1} << 30; bytes *= 4) {
    const Tensor x = random_tensor(backend, {bytes / 4}, DType::f32), y({bytes / 4}, DType::f32, backend.memory());
    const double seconds = seconds_of(backend, [&] { backend.flat().scale(x, 1, y, Write::overwrite); });
    best = std::max(best, 2 * static_cast<double>(bytes) / seconds);
    if (seconds > 20e-3) break;
  }
  return best;
}

}  // namespace starling
