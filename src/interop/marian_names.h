// The names of a Transformer's weights in Marian's models beside ours.
#pragma once

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "models/config.h"

namespace starling {

// One of our parameters and the weights of Marian's that it is made of, side by side by columns. Matrices are [in, out] and tables
// [tokens, width] in both; Marian's vectors are [1, n].
struct MarianName {
  std::string ours;
  std::vector<std::string> theirs;
};

// Marian's words for the activations that it has.
constexpr std::array<std::pair<const char*, Activation>, 3> kMarianActivations{
    {{"relu", Activation::relu}, {"swish", Activation::swish}, {"gelu", Activation::gelu_sigmoid}}};

// All weights of a model of this configuration.
std::vector<MarianName> marian_names(const ModelConfig& config);

}  // namespace starling
