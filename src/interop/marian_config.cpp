// Marian's settings. Names and defaults are those of its version 1.12; what a model has beyond them is refused by name.
#include <algorithm>
#include <charconv>

#include "base/json.h"
#include "base/quotes.h"
#include "config/foreign_yaml.h"
#include "interop/marian.h"
#include "interop/marian_names.h"
#include "interop/value_kind.h"

namespace starling {
namespace {

constexpr double kMarianEpsilon = 1e-6;  // of its layer normalisation

// A YAML file of settings, each with a default.
class Settings {
 public:
  Settings(const std::string& yaml, std::string where) : where_(std::move(where)), root_(read_foreign_yaml(yaml, where_)) {
    if (!root_.IsMap()) throw DataError(fmt::format("{}: has no settings; expected lines of 'key: value'", where_));
  }
  template <class T>
  T get(const std::string& key, T otherwise) const {
    const YAML::Node value = root_[key];
    if (!value.IsDefined() || value.IsNull()) return otherwise;
    try {
      return value.as<T>();
    } catch (const YAML::Exception&) {
      throw DataError(fmt::format("{}:{}: {} has the wrong type; expected {}", where_, value.Mark().line + 1, key, value_kind<T>()));
    }
  }
  std::vector<std::string> list(const std::string& key) const { return get(key, std::vector<std::string>()); }
  // Refuses any value but this one, which an absent key has.
  template <class T>
  void require(const std::string& key, T only) const {
    if (get(key, only) != only) refuse(key);
  }
  [[noreturn]] void refuse(const std::string& key) const {
    if (!root_[key].IsDefined())
      throw DataError(fmt::format("{}: the settings lack {}, so it is not a model that can be imported", where_, key));
    YAML::Emitter value;
    value << YAML::Flow << root_[key];
    throw ConfigError(fmt::format("{}: the model was trained with {}: {}, which Starling's models do not have; it cannot be imported",
                                  where_, key, printable(value.c_str())));
  }

 private:
  std::string where_;
  YAML::Node root_;
};

// The operations on a branch of the residual stream, without dropout, which inference does not have.
std::string operations(std::string letters) {
  std::erase(letters, 'd');
  return letters;
}

int64_t positive(const Settings& s, const std::string& key, int64_t most) {
  const auto value = s.get<int64_t>(key, 0);
  if (value < 1 || value > most) s.refuse(key);
  return value;
}

// By its name; other lists are text, a piece a line.
bool is_map_of_pieces(const std::string& name) {
  const std::string plain = without_packing(name);
  return plain.ends_with(".yml") || plain.ends_with(".yaml") || plain.ends_with(".json");
}

// Pieces by number, as they are read.
class NumberedPieces {
 public:
  NumberedPieces(const std::string& where, ByteBudget& budget) : where_(where), budget_(budget) {}
  // `place` is where in the file it stands.
  void add(const std::string& piece, int64_t number, const std::string& place) {
    if (number < 0 || number >= kMostPieces) throw DataError(fmt::format("{}: not a piece and its number", place));
    const auto at = static_cast<size_t>(number);
    if (at >= pieces_.size()) {
      const size_t rows = std::max(at + 1, std::min<size_t>(2 * pieces_.size(), kMostPieces));
      budget_.take((rows - pieces_.size()) * kPieceBytes, where_, "the pieces up to the largest number");
      pieces_.resize(rows), given_.resize(rows);
    }
    budget_.take(piece.size() > kShortPiece ? piece.size() : 0, where_, "its pieces");
    if (given_[at]) throw DataError(fmt::format("{}: number {} is given twice", place, number));
    pieces_[at] = piece;
    given_[at] = true;
    count_ = std::max(count_, at + 1);
  }
  std::vector<std::string> all() {
    pieces_.resize(count_);
    for (size_t i = 0; i < count_; ++i)
      if (!given_[i]) throw DataError(fmt::format("{}: no piece has number {}", where_, i));
    return std::move(pieces_);
  }

 private:
  const std::string& where_;
  ByteBudget& budget_;
  std::vector<std::string> pieces_;
  std::vector<bool> given_;
  size_t count_ = 0;
};

std::vector<std::string> pieces_of_map(const std::string& text, const std::string& where, ByteBudget& budget) {
  NumberedPieces pieces(where, budget);
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string::npos && text[first] == '{') {
    const BudgetScope scope(budget);
    const nlohmann::json json = parse_json_object(text, where, budget);
    for (const auto& [piece, number] : json.items())
      pieces.add(piece, number.is_number_unsigned() ? static_cast<int64_t>(std::min<uint64_t>(number.get<uint64_t>(), kMostPieces)) : -1,
                 where);
    return pieces.all();
  }
  for_each_in_map(text, where, [&](const std::string& piece, const std::string& value, int line) {
    int64_t number = -1;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc() || end != value.data() + value.size()) number = -1;
    pieces.add(piece, number, fmt::format("{}:{}", where, line));
  });
  return pieces.all();
}

std::vector<std::string> pieces_of_lines(const std::string& text, const std::string& where, ByteBudget& budget) {
  std::vector<std::string> pieces = pieces_in_lines(text, where, budget);
  for (size_t i = 0; i < pieces.size(); ++i) {
    pieces[i].erase(std::min(pieces[i].find('\t'), pieces[i].size()));  // behind it SentencePiece's own lists have a score
    if (pieces[i].empty()) throw DataError(fmt::format("{}:{}: is an empty line, not a piece", where, i + 1));
  }
  return pieces;
}

}  // namespace

ModelConfig marian_config(const std::string& yaml, const std::string& where) {
  const Settings s(yaml, where);
  if (s.get<std::string>("type", "") != "transformer") s.refuse("type");
  ModelConfig c = model_preset("transformer-base");
  c.encoder_layers = positive(s, "enc-depth", 1000);
  c.decoder_layers = positive(s, "dec-depth", 1000);
  c.width = positive(s, "dim-emb", 65536);
  c.heads = positive(s, "transformer-heads", 1024);
  c.feed_forward = positive(s, "transformer-dim-ffn", 1 << 20);
  c.decoder_start = DecoderStart::zero;
  c.norm_epsilon = kMarianEpsilon;
  c.output_bias = !s.get("output-omit-bias", false);
  c.dropout = 0.1;

  const std::string before = operations(s.get<std::string>("transformer-preprocess", "")),
                    after = operations(s.get<std::string>("transformer-postprocess", "dan"));
  if (before.empty() && after == "an")
    c.norm = NormPlace::post;
  else if (before == "n" && after == "a")
    c.norm = NormPlace::pre;
  else
    s.refuse(before.empty() || before == "n" ? "transformer-postprocess" : "transformer-preprocess");
  if (!operations(s.get<std::string>("transformer-postprocess-emb", "d")).empty()) s.refuse("transformer-postprocess-emb");
  const std::string top = c.norm == NormPlace::pre ? "n" : "";
  if (operations(s.get("transformer-postprocess-top", top)) != top) s.refuse("transformer-postprocess-top");

  const auto activation = s.get<std::string>("transformer-ffn-activation", "swish");
  const auto known =
      std::find_if(kMarianActivations.begin(), kMarianActivations.end(), [&](const auto& a) { return activation == a.first; });
  if (known == kMarianActivations.end()) s.refuse("transformer-ffn-activation");
  c.activation = known->second;

  const auto autoregression = s.get<std::string>("transformer-decoder-autoreg", "self-attention");
  if (autoregression == "rnn") {
    if (s.get<std::string>("dec-cell", "gru") != "ssru") s.refuse("dec-cell");
    c.autoregression = Autoregression::ssru;
  } else if (autoregression != "self-attention") {
    s.refuse("transformer-decoder-autoreg");
  }

  const bool all = s.get("tied-embeddings-all", false), target = s.get("tied-embeddings", false),
             source = s.get("tied-embeddings-src", false);
  if (source && !target && !all) s.refuse("tied-embeddings-src");
  c.tied_embeddings = all || source ? TiedEmbeddings::all : target ? TiedEmbeddings::decoder : TiedEmbeddings::none;

  s.require<int64_t>("transformer-ffn-depth", 2);
  const auto decoder_depth = s.get<int64_t>("transformer-decoder-ffn-depth", 0),
             decoder_width = s.get<int64_t>("transformer-decoder-dim-ffn", 0);
  if (decoder_depth != 0 && decoder_depth != 2) s.refuse("transformer-decoder-ffn-depth");
  if (decoder_width != 0 && decoder_width != c.feed_forward) s.refuse("transformer-decoder-dim-ffn");
  for (const char* key :
       {"transformer-no-projection", "transformer-no-affine", "transformer-no-bias", "transformer-rnn-projection",
        "transformer-train-position-embeddings", "transformer-disable-position-embeddings", "transformer-pool", "right-left", "ulr"})
    s.require(key, false);
  s.require<int64_t>("lemma-dim-emb", 0);
  s.require<int64_t>("factors-dim-emb", 0);
  s.require<std::string>("transformer-attention-mask", "default");
  for (const char* key : {"transformer-tied-layers", "input-types"})
    if (!s.list(key).empty()) s.refuse(key);
  // Marian takes alignments from the first head of this layer, which is the one that --guided-alignment trained.
  c.alignment_head = 1;
  c.alignment_layer = c.decoder_layers;
  if (s.get<std::string>("transformer-guided-alignment-layer", "last") != "last")
    c.alignment_layer = positive(s, "transformer-guided-alignment-layer", c.decoder_layers);
  return c;
}

SearchOptions marian_search(const std::string& yaml, const std::string& where) {
  const Settings s(yaml, where);
  SearchOptions o;
  o.beam = std::clamp<int64_t>(s.get<int64_t>("beam-size", 12), 1, 1024);
  o.length_penalty = std::clamp(s.get("normalize", 0.0), 0.0, 10.0);
  o.length_penalty_form = LengthPenaltyForm::power;
  o.max_length_factor = std::clamp(s.get("max-length-factor", 3.0), 0.0, 100.0);
  o.max_length_offset = 0;
  o.allow_unknown = s.get("allow-unk", false);
  o.word_penalty = std::clamp(s.get("word-penalty", 0.0), -100.0, 100.0);
  o.replace_ended = false;
  return o;
}

std::vector<std::string> marian_vocabulary_names(const std::string& yaml, const std::string& where) {
  return Settings(yaml, where).list("vocabs");
}

std::vector<std::string> marian_model_names(const std::string& yaml, const std::string& where) {
  return Settings(yaml, where).list("models");
}

std::vector<std::string> marian_pieces(const std::string& text, const std::string& where, ByteBudget& budget) {
  return is_map_of_pieces(where) ? pieces_of_map(text, where, budget) : pieces_of_lines(text, where, budget);
}

}  // namespace starling
