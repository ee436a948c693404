// Embeddings, layer norm, and element by element; bf16 is widened on load and rounded to nearest-even on store.
#include <cstring>

#include "backend/cpu/kernels/dropout_mask.h"
#include "backend/cpu/kernels/table_parts.h"

namespace starling::kernels::STARLING_ISA {
namespace {

// -- embeddings ------------------------------------------------------------------------------------------------------------

template <class T>
void embed(const int32_t* tokens, int32_t padding, const int32_t* positions, const float* table, const float* signal, float scale,
           const Mask& mask, void* y, int64_t D, int64_t begin, int64_t end) {
  RowMask masks(mask);
  for (int64_t n = begin; n < end; ++n) {
    T* out = static_cast<T*>(y) + n * D;
    const float* wave = positions ? signal + positions[n] * D : nullptr;
    if (tokens[n] < 0 && (tokens[n] == padding || !wave)) {
      std::memset(out, 0, D * sizeof(T));
      continue;
    }
    const float* row = tokens[n] < 0 ? nullptr : table + tokens[n] * D;
    masks.row(n, 0, D, [&](int64_t from, int64_t to, const float* factors) {
      blocks(from, to, [&](int64_t c, auto w) {
        vf x = row ? load(row + c, w) * scale : vf{};
        if (wave) x += load(wave + c, w);
        if (factors) x *= load(factors + (c - from), w);
        store(out + c, x, w);
      });
    });
  }
}

template <class T>
void embed_backward(const int32_t* tokens, int64_t N, float scale, const Mask& mask, const void* dy, float* dtable, int64_t D,
                    int64_t begin, int64_t end) {
  RowMask masks(mask);
  for (int64_t n = 0; n < N; ++n) {
    if (tokens[n] < 0) continue;
    const T* g = static_cast<const T*>(dy) + n * D;
    float* row = dtable + tokens[n] * D;
    masks.row(n, begin, end, [&](int64_t from, int64_t to, const float* factors) {
      blocks(from, to, [&](int64_t c, auto w) {
        vf x = load(g + c, w) * scale;
        if (factors) x *= load(factors + (c - from), w);
        store(row + c, load(row + c, w) + x, w);
      });
    });
  }
}

// -- layer normalisation -----------------------------------------------------------------------------------------------------

template <class T>
void layer_norm(const void* x, const float* gamma, const float* beta, float epsilon, void* y, float* statistics, int64_t D, int64_t begin,
                int64_t end) {
  for (int64_t n = begin; n < end; ++n) {
    const T* row = static_cast<const T*>(x) + n * D;
    T* out = static_cast<T*>(y) + n * D;
    vf total{};
    blocks(0, D, [&](int64_t c, auto w) { total += load(row + c, w); });
    const float mean = sum(total) / static_cast<float>(D);
    vf squares{};
    float rest = 0;
    for (int64_t c = 0; c < D; c += L) {
      if (c + L <= D) {
        const vf d = load(row + c) - mean;
        squares += d * d;
      } else {
        const vf d = load(row + c, D - c) - mean;
        for (int64_t i = 0; i < D - c; ++i) rest += d[i] * d[i];
      }
    }
    const float rstd = 1.0f / std::sqrt((sum(squares) + rest) / static_cast<float>(D) + epsilon);
    statistics[2 * n] = mean;
    statistics[2 * n + 1] = rstd;
    blocks(0, D, [&](int64_t c, auto w) { store(out + c, (load(row + c, w) - mean) * rstd * load(gamma + c, w) + load(beta + c, w), w); });
  }
}

template <class T>
void layer_norm_backward(const void* dy, const void* x, const float* gamma, const float* statistics, void* dx, bool accumulate,
                         float* dgamma_part, float* dbeta_part, int64_t D, int64_t begin, int64_t end) {
  for (int64_t n = begin; n < end; ++n) {
    const T* g = static_cast<const T*>(dy) + n * D;
    const T* row = static_cast<const T*>(x) + n * D;
    T* out = static_cast<T*>(dx) + n * D;
    const float mean = statistics[2 * n], rstd = statistics[2 * n + 1];
    vf total{}, dots{};
    blocks(0, D, [&](int64_t c, auto w) {
      const vf d = load(g + c, w), h = (load(row + c, w) - mean) * rstd, weighted = d * load(gamma + c, w);
      total += weighted;
      dots += weighted * h;
      store(dgamma_part + c, load(dgamma_part + c, w) + d * h, w);
      store(dbeta_part + c, load(dbeta_part + c, w) + d, w);
    });
    const float mean_g = sum(total) / static_cast<float>(D), mean_gh = sum(dots) / static_cast<float>(D);
    blocks(0, D, [&](int64_t c, auto w) {
      const vf h = (load(row + c, w) - mean) * rstd;
      vf value = rstd * (load(g + c, w) * load(gamma + c, w) - mean_g - h * mean_gh);
      if (accumulate) value += load(out + c, w);
      store(out + c, value, w);
    });
  }
}

// -- element-wise -------------------------------------------------------------------------------------------------------------

template <class T>
void add_dropout(const void* x, const void* s, const Mask& mask, void* y, int64_t D, int64_t begin, int64_t end) {
  RowMask masks(mask);
  for (int64_t n = begin; n < end; ++n) {
    const T* base = x ? static_cast<const T*>(x) + n * D : nullptr;
    const T* branch = static_cast<const T*>(s) + n * D;
    T* out = static_cast<T*>(y) + n * D;
    masks.row(n, 0, D, [&](int64_t from, int64_t to, const float* factors) {
      blocks(from, to, [&](int64_t c, auto w) {
        vf value = load(branch + c, w);
        if (factors) value *= load(factors + (c - from), w);
        if (base) value += load(base + c, w);
        store(out + c, value, w);
      });
    });
  }
}

template <class T>
void relu_dropout_backward(const void* h, float scale, void* dh, int64_t begin, int64_t end) {
  const T* hidden = static_cast<const T*>(h);
  T* g = static_cast<T*>(dh);
  blocks(begin, end, [&](int64_t c, auto w) {
    const vf x = load(hidden + c, w);
    store(g + c, x > vf{} ? load(g + c, w) * scale : vf{}, w);
  });
}

// erf(x), absolute error below 4e-7 (Abramowitz & Stegun 7.1.26).
inline vf error_function(vf x) {
  const vf size = x < vf{} ? -x : x, t = 1.0f / (1.0f + 0.3275911f * size);
  const vf p = ((((1.061405429f * t - 1.453152027f) * t + 1.421413741f) * t - 0.284496736f) * t + 0.254829592f) * t;
  const vf y = 1.0f - p * exponential(-x * x);
  return x < vf{} ? -y : y;
}

constexpr float kTanhFactor = 0.79788456f, kTanhCube = 0.044715f;  // gelu_tanh: tanh(factor * (x + cube x^3))

inline vf activated(vf x, Activation a) {
  switch (a) {
    case Activation::none:
      return x;
    case Activation::relu:
      return x > vf{} ? x : vf{};
    case Activation::swish:
      return x * sigmoid(x);
    case Activation::gelu:
      return x * (0.5f + 0.5f * error_function(x * 0.70710678f));
    case Activation::gelu_tanh:
      return x * (0.5f + 0.5f * hyperbolic_tangent(kTanhFactor * (x + kTanhCube * x * x * x)));
    case Activation::gelu_sigmoid:
      return x * sigmoid(1.702f * x);
  }
  return x;
}

inline vf slope_of(vf x, Activation a) {
  switch (a) {
    case Activation::none:
      return splat(1);
    case Activation::relu:
      return x > vf{} ? splat(1) : vf{};
    case Activation::gelu:
      return 0.5f + 0.5f * error_function(x * 0.70710678f) + x * 0.39894228f * exponential(-0.5f * x * x);
    case Activation::gelu_tanh: {
      const vf t = hyperbolic_tangent(kTanhFactor * (x + kTanhCube * x * x * x));
      return 0.5f + 0.5f * t + 0.5f * x * (1.0f - t * t) * kTanhFactor * (1.0f + 3.0f * kTanhCube * x * x);
    }
    case Activation::swish:
    case Activation::gelu_sigmoid: {
      const float factor = a == Activation::swish ? 1.0f : 1.702f;
      const vf s = sigmoid(factor * x);
      return s + x * factor * s * (1.0f - s);
    }
  }
  return x;
}

template <class T>
void activate(const void* x, Activation a, void* y, int64_t begin, int64_t end) {
  blocks(begin, end, [&](int64_t c, auto w) { store(static_cast<T*>(y) + c, activated(load(static_cast<const T*>(x) + c, w), a), w); });
}

template <class T>
void activate_backward(const void* x, Activation a, void* dy, int64_t begin, int64_t end) {
  T* g = static_cast<T*>(dy);
  blocks(begin, end, [&](int64_t c, auto w) { store(g + c, load(g + c, w) * slope_of(load(static_cast<const T*>(x) + c, w), a), w); });
}

template <class T>
void add(const void* x, void* y, int64_t begin, int64_t end) {
  const T* a = static_cast<const T*>(x);
  T* b = static_cast<T*>(y);
  blocks(begin, end, [&](int64_t c, auto w) { store(b + c, load(a + c, w) + load(b + c, w), w); });
}

template <class T>
int64_t clamp(const void* x, float bound, void* y, int64_t begin, int64_t end) {
  const T* in = static_cast<const T*>(x);
  T* out = static_cast<T*>(y);
  vi beyond{};
  blocks(begin, end, [&](int64_t c, auto w) {
    const vf v = load(in + c, w), low = v < splat(-bound) ? splat(-bound) : v;
    beyond -= (v < splat(-bound)) | (v > splat(bound));
    store(out + c, low > splat(bound) ? splat(bound) : low, w);
  });
  return count(beyond);
}

template <class T>
void clamp_backward(const void* x, float bound, const void* dy, void* dx, bool accumulate, int64_t begin, int64_t end) {
  const T* in = static_cast<const T*>(x);
  T* out = static_cast<T*>(dx);
  blocks(begin, end, [&](int64_t c, auto w) {
    const vf v = load(in + c, w);
    vf g = (v < splat(-bound)) | (v > splat(bound)) ? vf{} : load(static_cast<const T*>(dy) + c, w);
    if (accumulate) g += load(out + c, w);
    store(out + c, g, w);
  });
}

// Sums of columns [begin, end): blocks of 128 rows first, so that the rounding error grows slowly.
template <class T>
void column_sums(const void* dy, float* sums, int64_t N, int64_t Q, int64_t begin, int64_t end) {
  const T* g = static_cast<const T*>(dy);
  for (int64_t stripe = begin; stripe < end; stripe += 256) {
    const int64_t stop = std::min(end, stripe + 256);
    float total[256 + L] = {};
    for (int64_t block = 0; block < N; block += 128) {
      float part[256 + L] = {};
      const int64_t last = std::min(N, block + 128);
      int64_t n = block;
      for (; n + 4 <= last; n += 4)
        blocks(stripe, stop, [&](int64_t c, auto w) {
          const vf four =
              (load(g + n * Q + c, w) + load(g + (n + 1) * Q + c, w)) + (load(g + (n + 2) * Q + c, w) + load(g + (n + 3) * Q + c, w));
          store(part + (c - stripe), load(part + (c - stripe)) + four);
        });
      for (; n < last; ++n)
        blocks(stripe, stop, [&](int64_t c, auto w) { store(part + (c - stripe), load(part + (c - stripe)) + load(g + n * Q + c, w)); });
      for (int64_t c = 0; c < stop - stripe; c += L) store(total + c, load(total + c) + load(part + c));
    }
    blocks(stripe, stop, [&](int64_t c, auto w) { store(sums + c, load(sums + c, w) + load(total + (c - stripe)), w); });
  }
}

}  // namespace

template <class T>
void set_rows(Table& t) {
  t.embed = embed<T>, t.embed_backward = embed_backward<T>, t.layer_norm = layer_norm<T>, t.layer_norm_backward = layer_norm_backward<T>,
  t.add_dropout = add_dropout<T>, t.relu_dropout_backward = relu_dropout_backward<T>, t.activate = activate<T>,
  t.activate_backward = activate_backward<T>, t.add = add<T>, t.clamp = clamp<T>, t.clamp_backward = clamp_backward<T>,
  t.column_sums = column_sums<T>;
}
template void set_rows<float>(Table&);
template void set_rows<bf16>(Table&);

}  // namespace starling::kernels::STARLING_ISA
