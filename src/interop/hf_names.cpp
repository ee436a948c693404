#include "interop/hf_names.h"

#include <fmt/format.h>

namespace starling {
namespace {

class HfNames {
 public:
  std::vector<HfName> all(const ModelConfig& c) {
    for (const std::string side : {"encoder", "decoder"}) {
      const bool decoder = side == "decoder";
      for (int64_t i = 0; i < (decoder ? c.decoder_layers : c.encoder_layers); ++i) {
        const std::string ours = fmt::format("{}.{}", side, i), theirs = fmt::format("model.{}.layers.{}", side, i);
        layer(ours + ".attention.qkv", theirs + ".self_attn", {"q_proj", "k_proj", "v_proj"});
        layer(ours + ".attention.out", theirs + ".self_attn", {"out_proj"});
        norm(ours + ".attention", theirs + ".self_attn_layer_norm");
        if (decoder) {
          layer(ours + ".cross.query", theirs + ".encoder_attn", {"q_proj"});
          layer(ours + ".cross.kv", theirs + ".encoder_attn", {"k_proj", "v_proj"});
          layer(ours + ".cross.out", theirs + ".encoder_attn", {"out_proj"});
          norm(ours + ".cross", theirs + ".encoder_attn_layer_norm");
        }
        layer(ours + ".feed_forward.inner", theirs, {"fc1"});
        layer(ours + ".feed_forward.outer", theirs, {"fc2"});
        norm(ours + ".feed_forward", theirs + ".final_layer_norm");
      }
      if (c.norm == NormPlace::pre) norm(side, fmt::format("model.{}.layer_norm", side));
    }
    return std::move(names_);
  }

 private:
  void layer(const std::string& ours, const std::string& theirs, const std::vector<std::string>& ends) {
    for (const char* kind : {"weight", "bias"}) {
      std::vector<std::string> parts;
      for (const std::string& end : ends) parts.push_back(fmt::format("{}.{}.{}", theirs, end, kind));
      names_.push_back({fmt::format("{}.{}", ours, kind), std::move(parts)});
    }
  }
  void norm(const std::string& ours, const std::string& theirs) {
    names_.push_back({ours + ".norm.scale", {theirs + ".weight"}});
    names_.push_back({ours + ".norm.bias", {theirs + ".bias"}});
  }

  std::vector<HfName> names_;
};

}  // namespace

std::vector<HfName> hf_names(const ModelConfig& config) { return HfNames().all(config); }

}  // namespace starling
