// The functions of hidden layers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace starling {

// relu: max(x, 0). swish: x sigmoid(x). gelu: x Phi(x), Phi being the normal distribution (Hendrycks & Gimpel 2016); gelu_tanh and
// gelu_sigmoid: its approximations by tanh and by x sigmoid(1.702 x), section 2 there. none: x. It is the last one, and has no word, since
// no hidden layer has it.
enum class Activation : uint8_t { relu, swish, gelu, gelu_tanh, gelu_sigmoid, none };
constexpr auto words(Activation) { return std::array{"relu", "swish", "gelu", "gelu-tanh", "gelu-sigmoid"}; }
static_assert(words(Activation{}).size() == static_cast<std::size_t>(Activation::none), "each activation but none has a word");

}  // namespace starling
