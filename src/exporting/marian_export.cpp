#include "exporting/marian_export.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "interop/marian_names.h"
#include "text/vocabulary_format.h"

namespace starling {
namespace {

// The multiples that intgemm asks of a matrix's inner and outer dimension.
constexpr int64_t kInMultiple = 64, kOutMultiple = 8;
constexpr float kUnlikely = -1e4f;  // the bias of rows that stand for no piece
constexpr const char* kOutputBias = "decoder_ff_logit_out_b";

// Null if Marian has no such activation.
const char* word_of_marian(Activation activation) {
  for (const auto& [word, ours] : kMarianActivations)
    if (ours == activation) return word;
  return nullptr;
}

// Rows of the tables of the two sides.
struct TableRows {
  int64_t source = 0, target = 0;
};

TableRows rows_of(const Vocabularies& v, bool integers) {
  const auto rows = [&](int64_t size) { return integers ? (size + kOutMultiple - 1) / kOutMultiple * kOutMultiple : size; };
  return {rows(v.source().size()), rows(v.target().size())};
}

// The SentencePiece model of a vocabulary, with rows that stand for no piece behind its own up to that many.
std::string filled_up(const Vocabulary& v, int64_t rows) {
  if (rows == v.size()) return v.bytes();
  vocabulary_format::Listing listing;
  const std::vector<vocabulary_format::Piece> pieces = vocabulary_format::pieces(v.bytes());
  for (int32_t id = 0; id < v.size(); ++id) {
    listing.pieces.push_back(v.piece(id));
    const vocabulary_format::Found found = pieces[static_cast<size_t>(id)].found;
    if (found != vocabulary_format::Found::usual) listing.found.emplace(listing.pieces.back(), found);
  }
  for (int64_t row = v.size(); row < rows; ++row) listing.pieces.push_back(vocabulary_format::row_without_piece(row));
  return vocabulary_format::renumbered(v.bytes(), listing, "the vocabulary");
}

std::string settings_of(const LoadedModel& m, const TableRows& rows, bool output_bias) {
  const ModelConfig& c = m.description.config;
  const bool pre = c.norm == NormPlace::pre, ssru = c.autoregression == Autoregression::ssru;
  std::string yaml;
  const auto set = [&](const std::string& key, const auto& value) { yaml += fmt::format("{}: {}\n", key, value); };
  set("type", "transformer");
  set("dim-vocabs", fmt::format("[{}, {}]", rows.source, rows.target));
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
  set("output-omit-bias", !output_bias);
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
  std::string bytes(values.size(), '\0');
  for (size_t i = 0; i < values.size(); ++i)
    bytes[i] = static_cast<char>(static_cast<int8_t>(std::clamp(std::nearbyint(values[i] / a.unit), -127.0f, 127.0f)));
  a.bytes = std::move(bytes);
}

}  // namespace

MarianModel marian_model(const LoadedModel& model, bool integers) {
  const Vocabularies& vocabularies = model.description.vocabularies;
  const TableRows sizes = rows_of(vocabularies, false), filled = rows_of(vocabularies, integers);
  std::map<std::string, const Parameter*> parameters;
  for (const Parameter* p : model.model->parameters().declared()) parameters.emplace(p->name, p);
  MarianModel written{{}, filled_up(vocabularies.source(), filled.source), filled_up(vocabularies.target(), filled.target)};
  std::vector<ForeignArray>& arrays = written.arrays;
  for (const MarianName& name : marian_names(model.description.config)) {
    const Parameter& p = *parameters.at(name.ours);
    const bool table = p.name.ends_with("embedding"), untied = p.name == "decoder.output";  // which stays f32
    const int64_t more = p.name == "encoder.embedding" ? filled.source - sizes.source : filled.target - sizes.target;
    const std::vector<double> values = p.value.to_doubles();
    const int64_t rows = p.whole.rank() == 1 ? 1 : p.whole[0], columns = p.whole.rank() == 1 ? p.whole[0] : p.whole[1];
    const auto parts = static_cast<int64_t>(name.theirs.size()), width = columns / parts;
    for (int64_t i = 0; i < parts; ++i) {
      std::vector<float> part;
      part.reserve(static_cast<size_t>(rows * width));
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < width; ++c) part.push_back(static_cast<float>(values[static_cast<size_t>(r * columns + i * width + c)]));
      if (table || untied) part.resize(static_cast<size_t>((rows + more) * width));
      if (name.theirs[0] == kOutputBias) part.resize(static_cast<size_t>(filled.target), kUnlikely);
      const int64_t height = rows + (table || untied ? more : 0), breadth = static_cast<int64_t>(part.size()) / height;
      ForeignArray a{name.theirs[static_cast<size_t>(i)], "f4", {height, breadth}, element_bytes(part)};
      const int64_t in = table ? breadth : height, out = table ? height : breadth;
      if (integers && !untied && p.whole.rank() == 2 && in % kInMultiple == 0 && out % kOutMultiple == 0) round_to_integers(a);
      arrays.push_back(std::move(a));
    }
  }
  bool bias = model.description.config.output_bias;
  if (!bias && filled.target > sizes.target) {
    std::vector<float> values(static_cast<size_t>(sizes.target));
    values.resize(static_cast<size_t>(filled.target), kUnlikely);
    arrays.push_back({kOutputBias, "f4", {1, filled.target}, element_bytes(values)});
    bias = true;
  }
  std::string yaml = settings_of(model, filled, bias) + '\0';
  const auto length = static_cast<int64_t>(yaml.size());
  arrays.push_back({"special:model.yml", "i1", {length}, std::move(yaml)});
  return written;
}

}  // namespace starling
