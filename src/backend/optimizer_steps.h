// The optimizers' steps, which Backend::optimizer_step makes. A step is a struct with its numbers, as callers give them, and with its
// formula for one element in f32, which the CPU applies to vectors and cards to numbers. What it is checked against, in double precision,
// is in reference/optimizer_steps.cpp. A new step is listed in OptimizerStep. Kernels include this file: it knows no tensors.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <variant>

// Always inlined: the CPU's kernels are compiled for several instruction sets, and none may call what was compiled for another one.
#ifdef __CUDACC__
#define STARLING_FORMULA __host__ __device__ __forceinline__
#else
#define STARLING_FORMULA [[gnu::always_inline]] inline
#endif

namespace starling {

// The square roots of a vector's elements, or of a number.
template <class V>
STARLING_FORMULA V square_root(V x) {
  if constexpr (std::is_same_v<V, float>) {
    return ::sqrtf(x);
  } else {
    V root;
    for (int i = 0; i < static_cast<int>(sizeof x / sizeof(float)); ++i) root[i] = __builtin_sqrtf(x[i]);
    return root;
  }
}

// Adam (Kingma & Ba 2015), and AdamW (Loshchilov & Hutter 2019), which decouples the weight decay. States: the first and the second moment.
struct AdamStep {
  static constexpr const char* kName = "adam";  // of the op in profiles
  static constexpr int kStates = 2;
  double rate, beta1, beta2, epsilon, weight_decay;
  bool decoupled;  // AdamW
  double scale;    // the gradient is multiplied by this first (1 / tokens, and clipping)
  int64_t update;  // 1-based, for bias correction

  struct F32 {
    float rate, beta1, beta2, epsilon, coupled_decay, decoupled_decay, scale;
    float step, root;  // rate / (1 - beta1^update), 1 / sqrt(1 - beta2^update)
    template <class V>
    STARLING_FORMULA void operator()(V& value, const V& gradient, V* state) const {
      const V g = gradient * scale + coupled_decay * value;
      const V first = beta1 * state[0] + (1 - beta1) * g, second = beta2 * state[1] + (1 - beta2) * g * g;
      value = value - step * first / (square_root(second) * root + epsilon) - rate * decoupled_decay * value;
      state[0] = first;
      state[1] = second;
    }
  };
  F32 f32() const {
    const auto correction = [&](double beta) { return static_cast<float>(1 - std::pow(beta, static_cast<double>(update))); };
    const auto decay = static_cast<float>(weight_decay);
    return {static_cast<float>(rate),           static_cast<float>(beta1),
            static_cast<float>(beta2),          static_cast<float>(epsilon),
            decoupled ? 0.0f : decay,           decoupled ? decay : 0.0f,
            static_cast<float>(scale),          static_cast<float>(rate) / correction(beta1),
            1.0f / std::sqrt(correction(beta2))};
  }
};

// AdaGrad (Duchi et al. 2011): v += g^2, value -= rate * g / (sqrt(v) + epsilon) with g = scale * gradient + weight_decay * value. State:
// v.
struct AdagradStep {
  static constexpr const char* kName = "adagrad";
  static constexpr int kStates = 1;
  double rate, epsilon, weight_decay, scale;

  struct F32 {
    float rate, epsilon, weight_decay, scale;
    template <class V>
    STARLING_FORMULA void operator()(V& value, const V& gradient, V* state) const {
      const V g = gradient * scale + weight_decay * value, squares = state[0] + g * g;
      value = value - rate * g / (square_root(squares) + epsilon);
      state[0] = squares;
    }
  };
  F32 f32() const {
    return {static_cast<float>(rate), static_cast<float>(epsilon), static_cast<float>(weight_decay), static_cast<float>(scale)};
  }
};

// value -= rate * (scale * gradient + weight_decay * value).
struct SgdStep {
  static constexpr const char* kName = "sgd";
  static constexpr int kStates = 0;
  double rate, weight_decay, scale;

  struct F32 {
    float rate, weight_decay, scale;
    template <class V>
    STARLING_FORMULA void operator()(V& value, const V& gradient, V*) const {
      value = value - rate * (scale * gradient + weight_decay * value);
    }
  };
  F32 f32() const { return {static_cast<float>(rate), static_cast<float>(weight_decay), static_cast<float>(scale)}; }
};

using OptimizerStep = std::variant<AdamStep, AdagradStep, SgdStep>;

template <class... Steps>
constexpr int most_states(const std::variant<Steps...>*) {
  return std::max({Steps::kStates...});
}
constexpr int kMostStates = most_states(static_cast<const OptimizerStep*>(nullptr));

}  // namespace starling
