// The loss of a row of logits with its gradient, its best tokens, a sample.
#include <bit>
#include <cstring>
#include <limits>

#include "backend/cpu/kernels/arithmetic.h"
#include "backend/cpu/kernels/table_parts.h"

namespace starling::kernels::STARLING_ISA {
namespace {

struct RowSums {
  float top, total, exponentials;  // the largest logit, the sum of logits, the sum of e^(logit - top)
};

// z becomes e^(z - top). With a bound the exponentials of clamped logits get a minus sign, by which the gradient's pass knows them.
template <bool Bounded>
RowSums exponentials(float* z, int64_t V, float bound) {
  const auto clamped = [&](vf x) {
    if constexpr (!Bounded) return x;
    const vf low = x < splat(-bound) ? splat(-bound) : x;
    return low > splat(bound) ? splat(bound) : low;
  };
  const auto marked = [&](vf x, vf e) {
    if constexpr (!Bounded) return e;
    return (x < splat(-bound)) | (x > splat(bound)) ? -e : e;
  };
  const int64_t whole = V / L * L;
  const vf last = clamped(load(z + whole, V - whole));
  vf top = splat(-INFINITY), total{}, exps{};
  for (int64_t c = 0; c < whole; c += L) {
    const vf x = clamped(load(z + c));
    top = max(top, x), total += x;
  }
  float m = maximum(top), sum_z = sum(total);
  for (int64_t i = 0; i < V - whole; ++i) m = std::max(m, last[i]), sum_z += last[i];
  for (int64_t c = 0; c < whole; c += L) {
    const vf x = load(z + c), e = exponential(clamped(x) - m);
    exps += e;
    store(z + c, marked(x, e));
  }
  float denominator = sum(exps);
  if (whole < V) {
    const vf e = exponential(last - m);
    for (int64_t i = 0; i < V - whole; ++i) denominator += e[i];
    store(z + whole, marked(load(z + whole, V - whole), e), V - whole);
  }
  return {m, sum_z, denominator};
}

// The gradient of n logits of which e^(logit - top) is left; weight * probability = scale * e.
template <class T, bool Bounded>
void loss_gradient(const LossTask& t, int64_t n, float scale, int64_t vocabulary) {
  const float* e = t.logits;
  T* dz = static_cast<T*>(t.dlogits);
  const float uniform = t.weight * t.smoothing / static_cast<float>(vocabulary);
  blocks(0, n, [&](int64_t c, auto w) {
    const vf x = load(e + c, w), g = x * scale - uniform;
    if constexpr (Bounded)
      store(dz + c, x < vf{} ? vf{} : g, w);
    else
      store(dz + c, g, w);
  });
  if (t.target < 0) return;
  const float at = e[t.target], exact = at < 0 ? 0.0f : at * scale - uniform - t.weight * (1 - t.smoothing);
  if constexpr (sizeof(T) == 2)
    dz[t.target] = round_to_bf16(exact);
  else
    dz[t.target] = exact;
}

float clamped_target(const LossTask& t) {
  const float z = t.logits[t.target];
  return t.bound > 0 ? std::clamp(z, -t.bound, t.bound) : z;
}

template <class T, bool Bounded>
void smoothed_loss_row(const LossTask& t, int64_t V) {
  const float at_target = clamped_target(t);
  const RowSums sums = exponentials<Bounded>(t.logits, V, t.bound);
  const float log_sum = sums.top + std::log(sums.exponentials), nll = log_sum - at_target;
  t.out[0] = (1 - t.smoothing) * nll + t.smoothing * (log_sum - sums.total / static_cast<float>(V));
  t.out[1] = nll;
  t.out[2] = at_target == sums.top ? 1.0f : 0.0f;
  if (t.dlogits) loss_gradient<T, Bounded>(t, V, t.weight / sums.exponentials, V);
}

template <class T>
void smoothed_loss(const LossTask& t, int64_t V) {
  if (t.target < 0) {
    t.out[0] = t.out[1] = t.out[2] = 0;
    if (t.dlogits) std::memset(t.dlogits, 0, V * sizeof(T));
  } else if (t.bound > 0) {
    smoothed_loss_row<T, true>(t, V);
  } else {
    smoothed_loss_row<T, false>(t, V);
  }
}

void shard_exponentials(const LossTask& t, int64_t n, float* top, float* sums) {
  sums[2] = t.target < 0 ? 0.0f : clamped_target(t);
  const RowSums row = t.bound > 0 ? exponentials<true>(t.logits, n, t.bound) : exponentials<false>(t.logits, n, 0);
  *top = row.top, sums[0] = row.exponentials, sums[1] = row.total;
}

template <class T>
void shard_gradient(const LossTask& t, int64_t n, float scale, int64_t vocabulary) {
  t.bound > 0 ? loss_gradient<T, true>(t, n, scale, vocabulary) : loss_gradient<T, false>(t, n, scale, vocabulary);
}

float largest(const float* z, int64_t n) {
  vf tops[4] = {splat(-INFINITY), splat(-INFINITY), splat(-INFINITY), splat(-INFINITY)};  // one would wait for itself
  int64_t c = 0;
  for (; c + 4 * L <= n; c += 4 * L)
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) tops[i] = max(tops[i], load(z + c + i * L));
  float m = maximum(max(max(tops[0], tops[1]), max(tops[2], tops[3])));
  for (; c < n; ++c) m = std::max(m, z[c]);
  return m;
}

// Of e^(z - top).
float sum_of_exponentials(const float* z, int64_t n, float top) {
  vf exps[4] = {};
  int64_t c = 0;
  for (; c + 4 * L <= n; c += 4 * L)
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) exps[i] += exponential(load(z + c + i * L) - top);
  float total = sum((exps[0] + exps[1]) + (exps[2] + exps[3]));
  for (; c < n; ++c) total += std::exp(z[c] - top);
  return total;
}

void top_logits(const float* z, int64_t n, int64_t seen, int64_t k, float* values, int32_t* indices, double* denominator) {
  const float here = largest(z, n), before = seen > 0 ? static_cast<float>(denominator[0]) : here;
  const float top = std::max(std::max(before, here), std::numeric_limits<float>::lowest());  // -inf - -inf would be NaN
  const double sum = seen > 0 ? denominator[1] * std::exp(before - top) : 0;
  denominator[0] = top, denominator[1] = sum + sum_of_exponentials(z, n, top);
  int64_t found = std::min(k, seen), c = 0;
  const auto consider = [&](int64_t at) {
    if (found == k && !(z[at] > values[k - 1])) return;
    int64_t place = found < k ? found++ : k - 1;
    for (; place > 0 && values[place - 1] < z[at]; --place) values[place] = values[place - 1], indices[place] = indices[place - 1];
    values[place] = z[at], indices[place] = static_cast<int32_t>(seen + at);
  };
  for (; c < n && found < k; ++c) consider(c);
  if (c == n || !(here > values[k - 1])) return;
  for (; c + L <= n; c += L)
    for (uint32_t above = greater(load(z + c), values[k - 1]); above != 0; above &= above - 1) consider(c + std::countr_zero(above));
  for (; c < n; ++c) consider(c);
}

// The sums of up to 64 stretches of exponentials first, then a scan of the one stretch that the threshold lies in.
int32_t sample(const float* z, int64_t V, double uniform) {
  vf top = splat(-INFINITY);
  for (int64_t c = 0; c + L <= V; c += L) top = max(top, load(z + c));
  float m = maximum(top);
  for (int64_t c = V / L * L; c < V; ++c) m = std::max(m, z[c]);
  const int64_t stretch = std::max<int64_t>(256, (V / 64 / L + 1) * L);
  double sums[64], total = 0;
  for (int64_t begin = 0, i = 0; begin < V; begin += stretch, ++i) {
    const int64_t end = std::min(V, begin + stretch);
    vf exps{};
    int64_t c = begin;
    for (; c + L <= end; c += L) exps += exponential(load(z + c) - m);
    sums[i] = sum(exps);
    for (; c < end; ++c) sums[i] += std::exp(z[c] - m);
    total += sums[i];
  }
  const double threshold = uniform * total;
  double before = 0;
  int64_t begin = 0;
  for (int64_t i = 0; begin + stretch < V && before + sums[i] <= threshold; ++i) before += sums[i], begin += stretch;
  int32_t token = -1;
  // Rounding may leave the stretch a little short of the threshold: then its last possible token is taken, or the row's best.
  for (int64_t c = begin; c < std::min(V, begin + stretch) && before <= threshold; ++c) {
    const float p = std::exp(z[c] - m);
    if (p > 0) token = static_cast<int32_t>(c);
    before += p;
  }
  return token >= 0 ? token : static_cast<int32_t>(std::find(z, z + V, m) - z) % V;
}

}  // namespace

template <class T>
void set_output(Table& t) {
  t.smoothed_loss = smoothed_loss<T>, t.shard_exponentials = shard_exponentials, t.shard_gradient = shard_gradient<T>;
  t.top_logits = top_logits, t.sample = sample;
}
template void set_output<float>(Table&);
template void set_output<bf16>(Table&);

}  // namespace starling::kernels::STARLING_ISA
