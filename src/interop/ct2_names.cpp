#include "interop/ct2_names.h"

#include <fmt/format.h>

namespace starling {
namespace {

void add_layer(std::vector<Ct2Name>& to, const std::string& ours, const std::string& theirs) {
  to.push_back({ours + ".weight", theirs + "/weight", true, false});
  to.push_back({ours + ".bias", theirs + "/bias", false, true});
}
void add_norm(std::vector<Ct2Name>& to, const std::string& ours, const std::string& theirs) {
  to.push_back({ours + ".norm.scale", theirs + "/gamma"});
  to.push_back({ours + ".norm.bias", theirs + "/beta"});
}

}  // namespace

std::vector<Ct2Name> ct2_names(const ModelConfig& c) {
  std::vector<Ct2Name> names;
  const bool all = c.tied_embeddings == TiedEmbeddings::all;
  if (all) {
    names.push_back({"embedding", "decoder/embeddings/weight"});
  } else {
    names.push_back({"encoder.embedding", "encoder/embeddings_0/weight"});
    names.push_back({"decoder.embedding", "decoder/embeddings/weight"});
  }
  for (const std::string side : {"encoder", "decoder"}) {
    const bool decoder = side == "decoder";
    for (int64_t i = 0; i < (decoder ? c.decoder_layers : c.encoder_layers); ++i) {
      const std::string ours = fmt::format("{}.{}", side, i), theirs = fmt::format("{}/layer_{}", side, i);
      add_layer(names, ours + ".attention.qkv", theirs + "/self_attention/linear_0");
      if (c.relative_positions > 0) {
        names.push_back({ours + ".attention.key.positions", theirs + kCt2RelativeKeys, false, false, true});
        names.push_back({ours + ".attention.value.positions", theirs + kCt2RelativeValues, false, false, true});
      }
      add_layer(names, ours + ".attention.out", theirs + "/self_attention/linear_1");
      add_norm(names, ours + ".attention", theirs + "/self_attention/layer_norm");
      if (decoder) {
        add_layer(names, ours + ".cross.query", theirs + "/attention/linear_0");
        add_layer(names, ours + ".cross.kv", theirs + "/attention/linear_1");
        add_layer(names, ours + ".cross.out", theirs + "/attention/linear_2");
        add_norm(names, ours + ".cross", theirs + "/attention/layer_norm");
      }
      add_layer(names, ours + ".feed_forward.inner", theirs + "/ffn/linear_0");
      add_layer(names, ours + ".feed_forward.outer", theirs + "/ffn/linear_1");
      add_norm(names, ours + ".feed_forward", theirs + "/ffn/layer_norm");
    }
    if (c.norm == NormPlace::pre) add_norm(names, side, side + "/layer_norm");
    if (c.position_table > 0) names.push_back({side + ".positions", side + "/position_encodings/encodings", false, false, true});
  }
  if (c.tied_embeddings == TiedEmbeddings::none) names.push_back({"decoder.output", "decoder/projection/weight"});
  if (c.output_bias) names.push_back({"decoder.output.bias", "decoder/projection/bias"});
  return names;
}

}  // namespace starling
