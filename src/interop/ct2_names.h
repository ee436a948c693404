// The names of a Transformer's weights in CTranslate2's models beside ours.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "models/config.h"

namespace starling {

struct Ct2Name {
  std::string ours, theirs;
  bool transposed = false;  // theirs is [out, in]
  bool optional = false;    // a bias, zeros if it is not there
  bool positions = false;   // a table of positions, never in integers
};

// In the scope of a layer.
constexpr const char *kCt2RelativeKeys = "/self_attention/relative_position_keys",
                     *kCt2RelativeValues = "/self_attention/relative_position_values";

// The activations by CTranslate2's numbers.
constexpr std::array kCt2Activations{Activation::relu, Activation::gelu_tanh, Activation::swish, Activation::gelu,
                                     Activation::gelu_sigmoid};

// All weights of a model of this configuration.
std::vector<Ct2Name> ct2_names(const ModelConfig& config);

}  // namespace starling
