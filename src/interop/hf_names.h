// The names of the weights of Hugging Face's MarianMT and M2M-100 beside ours.
#pragma once

#include <string>
#include <vector>

#include "models/config.h"

namespace starling {

// One of our parameters and those of Hugging Face's that it is made of: matrices, which are [out, in] there, are stacked by rows and
// transposed, vectors follow each other.
struct HfName {
  std::string ours;
  std::vector<std::string> theirs;
};

// All weights of a model of this configuration but tables, positions and the output's bias.
std::vector<HfName> hf_names(const ModelConfig& config);

inline constexpr const char *kHfShared = "model.shared.weight", *kHfSource = "model.encoder.embed_tokens.weight",
                            *kHfTarget = "model.decoder.embed_tokens.weight", *kHfOutput = "lm_head.weight",
                            *kHfOutputBias = "final_logits_bias", *kHfSourcePositions = "model.encoder.embed_positions.weight",
                            *kHfTargetPositions = "model.decoder.embed_positions.weight";

}  // namespace starling
