// The functions of hidden layers.
#pragma once

#include <cstdint>

namespace starling {

// none: x. relu: max(x, 0). swish: x sigmoid(x). gelu: x Phi(x), Phi being the normal distribution (Hendrycks & Gimpel 2016); gelu_tanh and
// gelu_sigmoid: its approximations by tanh and by x sigmoid(1.702 x), section 2 there.
enum class Activation : uint8_t { none, relu, swish, gelu, gelu_tanh, gelu_sigmoid };

}  // namespace starling
