#include "interop/marian_export.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "interop/export_refusal.h"
#include "interop/marian_names.h"

namespace starling {
namespace {

// The multiples that intgemm asks of a matrix's inner and outer dimension.
constexpr int64_t kInMultiple = 64, kOutMultiple = 8;

// Null if Marian has no such activation.
const char* word_of_marian(HiddenActivation activation) {
  for (const auto& [word, ours] : kMarianActivations)
    if (ours == activation) return word;
  return nullptr;
}

void require_marian(const LoadedModel& m) {
  const ModelConfig& c = m.description.config;
  const auto refuse = [&](const char* key, const std::string& value, const char* instead) {
    refuse_export(m.description.directory, "Marian", key, value, instead);
  };
  if (architecture_of(c.preset) != Architecture::transformer) refuse("preset", c.preset, "a transformer preset");
  if (c.decoder_start != DecoderStart::zero) refuse("decoder-start", std::string(word(c.decoder_start)), "zero");
  if (c.position_table > 0) refuse("position-table", fmt::format("{}", c.position_table), "0");
  if (c.first_position > 0) refuse("first-position", fmt::format("{}", c.first_position), "0");
  if (c.embedding_scale > 0) refuse("embedding-scale", fmt::format("{}", c.embedding_scale), "0");
  if (!c.source_end) refuse("source-end", "false", "true");
  if (!word_of_marian(c.activation)) refuse("activation", std::string(word(c.activation)), "relu, swish or gelu-sigmoid");
  if (c.norm_epsilon != 1e-6) refuse("norm-epsilon", fmt::format("{}", c.norm_epsilon), "1e-6");
}

std::string settings_of(const LoadedModel& m) {
  const ModelConfig& c = m.description.config;
  const ModelVocabulary sizes = m.description.vocabularies.sizes();
  const bool pre = c.norm == NormPlace::pre, ssru = c.autoregression == Autoregression::ssru;
  std::string yaml;
  const auto set = [&](const std::string& key, const auto& value) { yaml += fmt::format("{}: {}\n", key, value); };
  set("type", "transformer");
  set("dim-vocabs", fmt::format("[{}, {}]", sizes.source_size, sizes.target_size));
  set("dim-emb", c.width);
  set("enc-depth", c.encoder_layers);
  set("dec-depth", c.decoder_layers);
  set("transformer-heads", c.heads);
  set("transformer-dim-ffn", c.feed_forward);
  set("transformer-decoder-dim-ffn", 0);
  set("transformer-ffn-depth", 2);
  set("transformer-decoder-ffn-depth", 0);
  set("transformer-ffn-activation", word_of_marian(c.activation));
  set("transformer-preprocess", pre ? "n" : "\"\"");
  set("transformer-postprocess", pre ? "da" : "dan");
  set("transformer-postprocess-emb", "d");
  set("transformer-postprocess-top", pre ? "n" : "\"\"");
  set("transformer-decoder-autoreg", ssru ? "rnn" : "self-attention");
  set("dec-cell", "ssru");
  set("dec-cell-base-depth", 2);
  set("dec-cell-high-depth", 1);
  set("dim-rnn", c.width);
  set("tied-embeddings-all", c.tied_embeddings == TiedEmbeddings::all);
  set("tied-embeddings", c.tied_embeddings == TiedEmbeddings::decoder);
  for (const char* key : {"tied-embeddings-src", "transformer-no-projection", "transformer-no-affine", "transformer-no-bias",
                          "transformer-rnn-projection", "transformer-train-position-embeddings", "transformer-disable-position-embeddings",
                          "transformer-pool", "right-left", "ulr", "skip", "layer-normalization"})
    set(key, false);
  set("output-omit-bias", !c.output_bias);
  set("lemma-dim-emb", 0);
  set("lemma-dependency", "\"\"");
  set("factors-dim-emb", 0);
  set("factors-combine", "sum");
  set("transformer-tied-layers", "[]");
  set("transformer-guided-alignment-layer", static_cast<int64_t>(aligned_layer(c) + 1));
  set("input-types", "[]");
  set("enc-type", "bidirectional");
  set("enc-cell", "gru");
  set("enc-cell-depth", 1);
  set("version", "v1.12.0");
  return yaml;
}

// Rounds to the integers that intgemm reads: one unit for all, the largest magnitude being 127.
void round_to_integers(ForeignArray& a) {
  const std::vector<float> values = elements_of<float>(a.bytes);
  float most = 0;
  for (const float x : values) most = std::max(most, std::abs(x));
  a.unit = most > 0 ? most / 127 : 1;
  a.type = "q8";
  a.bytes.resize(values.size());
  for (size_t i = 0; i < values.size(); ++i)
    a.bytes[i] = static_cast<char>(static_cast<int8_t>(std::clamp(std::nearbyint(values[i] / a.unit), -127.0f, 127.0f)));
}

}  // namespace

std::vector<ForeignArray> marian_arrays(const LoadedModel& model, bool integers) {
  require_marian(model);
  std::map<std::string, const Parameter*> parameters;
  for (const Parameter* p : model.model->parameters().declared()) parameters.emplace(p->name, p);
  std::vector<ForeignArray> arrays;
  for (const MarianName& name : marian_names(model.description.config)) {
    const Parameter& p = *parameters.at(name.ours);
    const std::vector<double> values = p.value.to_doubles();
    const int64_t rows = p.whole.rank() == 1 ? 1 : p.whole[0], columns = p.whole.rank() == 1 ? p.whole[0] : p.whole[1];
    const auto parts = static_cast<int64_t>(name.theirs.size()), width = columns / parts;
    for (int64_t i = 0; i < parts; ++i) {
      std::vector<float> part;
      part.reserve(static_cast<size_t>(rows * width));
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < width; ++c) part.push_back(static_cast<float>(values[static_cast<size_t>(r * columns + i * width + c)]));
      ForeignArray a{name.theirs[static_cast<size_t>(i)], "f4", {rows, width}, element_bytes(part)};
      const bool table = p.name.ends_with("embedding"), untied = p.name == "decoder.output";  // which stays f32
      const int64_t in = table ? width : rows, out = table ? rows : width;
      if (integers && !untied && p.whole.rank() == 2 && in % kInMultiple == 0 && out % kOutMultiple == 0) round_to_integers(a);
      arrays.push_back(std::move(a));
    }
  }
  std::string yaml = settings_of(model) + '\0';
  const auto length = static_cast<int64_t>(yaml.size());
  arrays.push_back({"special:model.yml", "i1", {length}, std::move(yaml)});
  return arrays;
}

}  // namespace starling
