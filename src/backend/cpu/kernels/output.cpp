// Loss and gradient, best tokens, and samples for a row of logits.
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

template <bool Bounded>
vf clamped(vf x, float bound) {
  if constexpr (!Bounded) return x;
  const vf low = x < splat(-bound) ? splat(-bound) : x;
  return low > splat(bound) ? splat(bound) : low;
}
// x where z is not clamped, else y.
template <bool Bounded>
vf unless_clamped(vf z, float bound, vf x, vf y) {
  if constexpr (!Bounded) return x;
  return (z < splat(-bound)) | (z > splat(bound)) ? y : x;
}

// Without the exponentials.
template <bool Bounded>
RowSums top_and_total(const float* z, int64_t V, float bound) {
  const int64_t whole = V / L * L;
  const vf last = clamped<Bounded>(load(z + whole, V - whole), bound);
  vf top = splat(-INFINITY), total{};
  for (int64_t c = 0; c < whole; c += L) {
    const vf x = clamped<Bounded>(load(z + c), bound);
    top = max(top, x);
    total += x;
  }
  RowSums sums{maximum(top), sum(total), 0};
  for (int64_t i = 0; i < V - whole; ++i) {
    sums.top = std::max(sums.top, last[i]);
    sums.total += last[i];
  }
  return sums;
}

// z becomes e^(z - top). With a bound, the exponentials of clamped logits get a minus sign, by which the gradient's pass recognises them.
template <bool Bounded>
RowSums exponentials(float* z, int64_t V, float bound) {
  RowSums sums = top_and_total<Bounded>(z, V, bound);
  const int64_t whole = V / L * L;
  vf exps{};
  for (int64_t c = 0; c < whole; c += L) {
    const vf x = load(z + c), e = exponential(clamped<Bounded>(x, bound) - sums.top);
    exps += e;
    store(z + c, unless_clamped<Bounded>(x, bound, e, -e));
  }
  sums.exponentials = sum(exps);
  if (whole < V) {
    const vf x = load(z + whole, V - whole), e = exponential(clamped<Bounded>(x, bound) - sums.top);
    for (int64_t i = 0; i < V - whole; ++i) sums.exponentials += e[i];
    store(z + whole, unless_clamped<Bounded>(x, bound, e, -e), V - whole);
  }
  return sums;
}

inline void write(float* to, float x) { *to = x; }
inline void write(bf16* to, float x) { *to = round_to_bf16(x); }

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
  write(dz + t.target, exact);
}

float clamped_target(const LossTask& t) {
  const float z = t.logits[t.target];
  return t.bound > 0 ? std::clamp(z, -t.bound, t.bound) : z;
}

void write_loss(const LossTask& t, int64_t V, const RowSums& sums, float at_target) {
  const float log_sum = sums.top + std::log(sums.exponentials), nll = log_sum - at_target;
  t.out[0] = (1 - t.smoothing) * nll + t.smoothing * (log_sum - sums.total / static_cast<float>(V));
  t.out[1] = nll;
  t.out[2] = at_target == sums.top ? 1.0f : 0.0f;
}

template <class T, bool Bounded>
void smoothed_loss_row(const LossTask& t, int64_t V) {
  const float at_target = clamped_target(t);
  const RowSums sums = exponentials<Bounded>(t.logits, V, t.bound);
  write_loss(t, V, sums, at_target);
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

// Exponentials are computed once more for the gradient rather than kept, which is little beside the logits' products. With
// d = (x - top of x) - (y - top of y), log p - log q is d less the difference of the logarithms of the sums of exponentials.
template <class T, bool Bounded>
void paired_loss_rows(const LossTask (&pair)[2], int64_t V, float r_drop) {
  const LossTask& t = pair[0];
  const float *const zp = pair[0].logits, *const zq = pair[1].logits;
  RowSums p = top_and_total<Bounded>(zp, V, t.bound), q = top_and_total<Bounded>(zq, V, t.bound);
  struct Both {
    vf p, q, d;  // exponentials
  };
  const auto both = [&](vf x, vf y) {
    x = clamped<Bounded>(x, t.bound) - p.top;
    y = clamped<Bounded>(y, t.bound) - q.top;
    return Both{exponential(x), exponential(y), x - y};
  };
  const int64_t whole = V / L * L;
  vf exps_p{}, exps_q{}, over_p{}, over_q{};
  for (int64_t c = 0; c < whole; c += L) {
    const Both e = both(load(zp + c), load(zq + c));
    exps_p += e.p;
    exps_q += e.q;
    over_p += e.p * e.d;
    over_q += e.q * e.d;
  }
  float kl_p = sum(over_p), kl_q = -sum(over_q);
  p.exponentials = sum(exps_p);
  q.exponentials = sum(exps_q);
  const Both last = both(load(zp + whole, V - whole), load(zq + whole, V - whole));
  for (int64_t i = 0; i < V - whole; ++i) {
    p.exponentials += last.p[i];
    q.exponentials += last.q[i];
    kl_p += last.p[i] * last.d[i];
    kl_q -= last.q[i] * last.d[i];
  }
  const float shift = std::log(p.exponentials) - std::log(q.exponentials);
  kl_p = kl_p / p.exponentials - shift;
  kl_q = kl_q / q.exponentials + shift;  // KL(p || q), KL(q || p)
  write_loss(pair[0], V, p, clamped_target(pair[0]));
  write_loss(pair[1], V, q, clamped_target(pair[1]));
  pair[0].out[3] = pair[1].out[3] = (kl_p + kl_q) / 2;
  if (!t.dlogits) return;

  const float each_p = 1 / p.exponentials, each_q = 1 / q.exponentials, factor = t.weight * r_drop / 2;
  const float uniform = t.weight * t.smoothing / static_cast<float>(V);
  struct Gradients {
    vf p, q;
  };
  const auto gradients = [&](vf x, vf y, float less) {
    const Both e = both(x, y);
    const vf pp = e.p * each_p, qq = e.q * each_q, d = e.d - shift;
    const vf gp = pp * t.weight - less + (pp * (d - kl_p) + pp - qq) * factor;
    const vf gq = qq * t.weight - less + (qq * (-d - kl_q) + qq - pp) * factor;
    return Gradients{unless_clamped<Bounded>(x, t.bound, gp, vf{}), unless_clamped<Bounded>(y, t.bound, gq, vf{})};
  };
  T *const dp = static_cast<T*>(pair[0].dlogits), *const dq = static_cast<T*>(pair[1].dlogits);
  blocks(0, V, [&](int64_t c, auto w) {
    const Gradients g = gradients(load(zp + c, w), load(zq + c, w), uniform);
    store(dp + c, g.p, w);
    store(dq + c, g.q, w);
  });
  const Gradients g = gradients(splat(zp[t.target]), splat(zq[t.target]), uniform + t.weight * (1 - t.smoothing));
  write(dp + t.target, g.p[0]);
  write(dq + t.target, g.q[0]);
}

template <class T>
void paired_loss(const LossTask (&pair)[2], int64_t V, float r_drop) {
  if (pair[0].target < 0) {
    for (const LossTask& t : pair) {
      std::fill_n(t.out, 4, 0.0f);
      if (t.dlogits) std::memset(t.dlogits, 0, V * sizeof(T));
    }
  } else if (pair[0].bound > 0) {
    paired_loss_rows<T, true>(pair, V, r_drop);
  } else {
    paired_loss_rows<T, false>(pair, V, r_drop);
  }
}

void shard_exponentials(const LossTask& t, int64_t n, float* top, float* sums) {
  sums[2] = t.target < 0 ? 0.0f : clamped_target(t);
  const RowSums row = t.bound > 0 ? exponentials<true>(t.logits, n, t.bound) : exponentials<false>(t.logits, n, 0);
  *top = row.top, sums[0] = row.exponentials, sums[1] = row.total;
}

template <class T>
void shard_gradient(const LossTask& t, int64_t n, float scale, int64_t vocabulary) {
  if (t.bound > 0)
    loss_gradient<T, true>(t, n, scale, vocabulary);
  else
    loss_gradient<T, false>(t, n, scale, vocabulary);
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
  denominator[0] = top;
  denominator[1] = sum + sum_of_exponentials(z, n, top);
  int64_t found = std::min(k, seen), c = 0;
  const auto consider = [&](int64_t at) {
    if (found == k && !(z[at] > values[k - 1])) return;
    int64_t place = found < k ? found++ : k - 1;
    for (; place > 0 && values[place - 1] < z[at]; --place) {
      values[place] = values[place - 1];
      indices[place] = indices[place - 1];
    }
    values[place] = z[at];
    indices[place] = static_cast<int32_t>(seen + at);
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
  for (int64_t i = 0; begin + stretch < V && before + sums[i] <= threshold; ++i) {
    before += sums[i];
    begin += stretch;
  }
  int32_t token = -1;
  // Rounding may end the stretch slightly before the threshold: then its last possible token is taken, or the row's best.
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
  t.smoothed_loss = smoothed_loss<T>, t.paired_loss = paired_loss<T>, t.shard_exponentials = shard_exponentials,
  t.shard_gradient = shard_gradient<T>;
  t.top_logits = top_logits;
  t.sample = sample;
}
template void set_output<float>(Table&);
template void set_output<bf16>(Table&);

}  // namespace starling::kernels::STARLING_ISA
