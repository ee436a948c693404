// The architecture of a Hugging Face model and its search: config.json and generation_config.json.
#pragma once

#include <array>
#include <utility>

#include "decode/search.h"
#include "interop/hf_settings.h"

namespace starling {

// M2M-100 and NLLB are both m2m_100.
enum class HfFamily : uint8_t { marian, m2m_100 };

struct HfConfig {
  HfFamily family = HfFamily::marian;
  ModelConfig model;  // without what weights and vocabularies decide: tied tables, stored positions, output bias, the decoder's start
  int64_t source_rows = 0, target_rows = 0;  // of the embedding tables
  bool shared = true;                        // source and target have one table
  bool tied = true;                          // the output layer's weight is the target's table
  int64_t positions = 0;                     // rows of the table of positions (MarianMT)
  int64_t pad = 0, end = 0, start = 0;       // numbers of tokens; start: the decoder's first input
  int64_t forced = -1;                       // the token that every translation begins with; -1: none
};

// Words of `activation_function`; the first of each activation is what an export writes.
constexpr std::array<std::pair<const char*, Activation>, 9> kHfActivations{{{"relu", Activation::relu},
                                                                            {"swish", Activation::swish},
                                                                            {"silu", Activation::swish},
                                                                            {"gelu", Activation::gelu},
                                                                            {"gelu_python", Activation::gelu},
                                                                            {"gelu_new", Activation::gelu_tanh},
                                                                            {"gelu_fast", Activation::gelu_tanh},
                                                                            {"gelu_pytorch_tanh", Activation::gelu_tanh},
                                                                            {"quick_gelu", Activation::gelu_sigmoid}}};

// Throws ConfigError naming the setting that Starling's models do not have.
HfConfig hf_config(const HfSettings& settings);

// How generation_config.json says to search, or config.json where it says nothing or is null. Appends to the notes what is left out.
SearchOptions hf_search(const HfSettings& config, const HfSettings* generation, int64_t pad, std::vector<std::string>& notes);

}  // namespace starling
