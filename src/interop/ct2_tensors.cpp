// The architecture and the weights of a file of CTranslate2's.
#include <algorithm>
#include <cmath>
#include <set>

#include "interop/ct2.h"
#include "interop/ct2_names.h"

namespace starling {
namespace {

constexpr const char* kPositions = "/position_encodings/encodings";

std::vector<float> plain_floats(const ForeignArray& a) { return float_values(a.type, a.bytes); }

// A weight, which must be a matrix or a vector with as many elements as its shape says; null if there is none.
const ForeignArray* weight_in(const Ct2File& file, const std::string& name, const std::string& where) {
  const ForeignArray* const a = file.find(name);
  if (a && (a->shape.empty() || a->shape.size() > 2 || a->bytes.empty()))
    throw DataError(fmt::format("{}: {} has {} dimensions and {} bytes; a weight is a matrix or a vector", where, name, a->shape.size(),
                                a->bytes.size()));
  return a;
}

int64_t rows_of(const ForeignArray& a) { return a.shape.empty() ? 1 : a.shape[0]; }
int64_t columns_of(const ForeignArray& a) { return a.shape.size() < 2 ? 1 : a.shape[1]; }

template <class T>
std::vector<T> our_order(std::vector<T> elements, int64_t rows, int64_t columns, bool turn) {
  return turn ? transposed(elements, rows, columns) : elements;
}

class Ct2Architecture {
 public:
  Ct2Architecture(const Ct2File& file, const std::string& where) : file_(file), where_(where) {}

  ModelConfig read() {
    if (!file_.spec.empty() && !file_.spec.starts_with("Transformer")) refuse("the specification " + file_.spec);
    ModelConfig c = model_preset("transformer-base");
    const ForeignArray* const table = required("decoder/embeddings/weight");
    c.width = columns_of(*table);
    c.encoder_layers = layers("encoder");
    c.decoder_layers = layers("decoder");
    c.feed_forward = rows_of(*required("encoder/layer_0/ffn/linear_0/weight"));
    const double heads = setting("num_heads", file_.spec == "TransformerBig" ? 16 : 8);
    if (!(heads >= 1 && heads <= 1024) || c.width < 8 || c.width % static_cast<int64_t>(heads) != 0)
      refuse(fmt::format("width {} and {} heads", c.width, heads));
    c.heads = static_cast<int64_t>(heads);
    c.norm = setting("pre_norm", 1) != 0 ? NormPlace::pre : NormPlace::post;
    const double activation = setting("activation", 0);
    if (!(activation >= 0 && activation < static_cast<double>(kCt2Activations.size()))) refuse(fmt::format("activation {}", activation));
    c.activation = kCt2Activations[static_cast<size_t>(activation)];
    c.output_bias = file_.find("decoder/projection/bias") != nullptr;
    c.decoder_start = file_.number("decoder/start_from_zero_embedding", 0) != 0 ? DecoderStart::zero : DecoderStart::token;
    scale_of_embeddings(c);
    positions(c);
    tied(c);
    c.source_end = false;
    alignments(c);
    return c;
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw ConfigError(fmt::format("{}: the model has {}, which Starling's models do not have; it cannot be imported", where_, what));
  }
  const ForeignArray* required(const std::string& name) const {
    const ForeignArray* a = weight_in(file_, name, where_);
    if (!a) throw DataError(fmt::format("{}: tensor {} is missing, so it is not a Transformer for translation", where_, name));
    return a;
  }
  int64_t layers(const std::string& side) const {
    int64_t n = 0;
    while (file_.find(fmt::format("{}/layer_{}/ffn/linear_0/weight", side, n))) ++n;
    if (n == 0) throw DataError(fmt::format("{}: it has no {} layers", where_, side));
    return n;
  }
  // A setting of both sides; before it belonged to a side, it was global.
  double setting(const std::string& name, double otherwise) const {
    const double global = file_.number(name, otherwise);
    const double encoder = file_.number("encoder/" + name, global), decoder = file_.number("decoder/" + name, global);
    if (encoder != decoder) refuse(fmt::format("{} {} in the encoder and {} in the decoder", name, encoder, decoder));
    return encoder;
  }
  // CTranslate2 takes attention from this layer, counted from the last one if below 0, and from the mean of its first heads; 0: of all.
  void alignments(ModelConfig& c) const {
    const double layer = file_.number("decoder/alignment_layer", -1);
    const double from_first = layer < 0 ? static_cast<double>(c.decoder_layers) + layer : layer;
    if (from_first >= 0 && from_first < static_cast<double>(c.decoder_layers)) c.alignment_layer = static_cast<int64_t>(from_first) + 1;
    c.alignment_head = file_.number("decoder/alignment_heads", 1) == 1 ? 1 : 0;
  }
  void scale_of_embeddings(ModelConfig& c) const {
    const double root = std::sqrt(static_cast<double>(c.width));
    double scales[2];
    for (int i = 0; i < 2; ++i) {
      const std::string side = i == 0 ? "encoder" : "decoder";
      const ForeignArray* a = file_.find(side + "/scale_embeddings");
      const bool old = file_.number(side + "/embeddings/multiply_by_sqrt_depth", file_.number("embeddings/multiply_by_sqrt_depth", 1)) != 0;
      const double value = file_.number(side + "/scale_embeddings", old ? 1 : 0);
      scales[i] = a && a->type == "f4" ? value : value != 0 ? root : 1;
    }
    if (scales[0] != scales[1]) refuse(fmt::format("embeddings times {} in the encoder and {} in the decoder", scales[0], scales[1]));
    if (std::abs(scales[0] - root) > 1e-5 * root) c.embedding_scale = scales[0];
  }
  // The furthest relative position that the layers of a side tell apart; 0 if they have none.
  int64_t reach(const std::string& side, int64_t layers) const {
    int64_t rows = -1;
    for (int64_t i = 0; i < layers; ++i)
      for (const char* name : {kCt2RelativeKeys, kCt2RelativeValues}) {
        const ForeignArray* const a = weight_in(file_, fmt::format("{}/layer_{}{}", side, i, name), where_);
        const int64_t here = a ? rows_of(*a) : 0;
        if (rows >= 0 && here != rows) refuse(fmt::format("tables of {} and of {} relative positions in the {}", rows, here, side));
        rows = here;
      }
    if (rows > 0 && rows % 2 == 0) refuse(fmt::format("tables of {} relative positions, an even number,", rows));
    return rows / 2;
  }
  // A table that holds our sinusoids, from any first position on, is not kept: sentences may then be of any length.
  void positions(ModelConfig& c) const {
    c.relative_positions = reach("encoder", c.encoder_layers);
    if (const int64_t decoder = reach("decoder", c.decoder_layers); decoder != c.relative_positions)
      refuse(fmt::format("{} relative positions in the encoder and {} in the decoder", c.relative_positions, decoder));
    if (c.relative_positions > 0) return;  // in place of all others
    const std::string name = kPositions;
    const ForeignArray *source = weight_in(file_, "encoder" + name, where_), *target = weight_in(file_, "decoder" + name, where_);
    if (!source && !target) {
      c.first_position = 1;
      return;
    }
    if (!source || !target) refuse("a table of positions on one side only");
    if (source->shape != target->shape || columns_of(*source) != c.width) refuse("position tables of different sizes");
    const std::vector<float> values = plain_floats(*source);
    if (source == target || values == plain_floats(*target))
      for (int64_t first = 0; first <= 2; ++first)
        if (are_sinusoids(values, c.width, first)) {
          c.first_position = first;
          return;
        }
    c.position_table = rows_of(*source);
  }
  void tied(ModelConfig& c) const {
    const ForeignArray *source = source_table(), *target = required("decoder/embeddings/weight"),
                       *output = weight_in(file_, "decoder/projection/weight", where_);
    const auto same = [](const ForeignArray* a, const ForeignArray* b) {
      return a == b || (a->shape == b->shape && a->type == b->type && a->bytes == b->bytes);
    };
    const bool output_tied = !output || same(output, target);
    c.tied_embeddings = !output_tied ? TiedEmbeddings::none : same(source, target) ? TiedEmbeddings::all : TiedEmbeddings::decoder;
  }
  const ForeignArray* source_table() const {
    if (file_.find("encoder/embeddings_1/weight")) refuse("factors of the source");
    const ForeignArray* a = weight_in(file_, "encoder/embeddings_0/weight", where_);
    return a ? a : required("encoder/embeddings/weight");
  }

  const Ct2File& file_;
  const std::string& where_;
};

}  // namespace

ModelConfig ct2_config(const Ct2File& file, const std::string& where) { return Ct2Architecture(file, where).read(); }

std::vector<OwnedTensor> ct2_tensors(const Ct2File& file, const ModelConfig& config, const std::string& where, ByteBudget& budget) {
  std::vector<OwnedTensor> tensors;
  std::set<const ForeignArray*> used;
  const auto find = [&](const std::string& name) {
    const auto get = [&](const std::string& key) {  // a scale may be a single number
      return key.ends_with("_scale") ? file.find(key) : weight_in(file, key, where);
    };
    const ForeignArray* a = get(name);
    constexpr std::string_view kToday = "encoder/embeddings_0/", kBefore = "encoder/embeddings/";
    if (!a && name.starts_with(kToday)) a = get(std::string(kBefore) + name.substr(kToday.size()));
    if (a) used.insert(a);
    return a;
  };
  // Charges what a tensor takes beyond an array that has not been one yet.
  std::set<const ForeignArray*> made;
  const auto charge = [&](const ForeignArray* a, int64_t elements, uint64_t element) {
    const uint64_t bytes = static_cast<uint64_t>(elements) * element, stored = made.insert(a).second ? a->bytes.size() : 0;
    if (bytes > stored) budget.take(bytes - stored, where, "a weight that stands for several, or in a wider type,");
  };
  for (const Ct2Name& name : ct2_names(config)) {
    const ForeignArray* const a = find(name.theirs);
    if (!a) {
      if (!name.optional) throw DataError(fmt::format("{}: tensor {} is missing; fetch the model again", where, name.theirs));
      const ForeignArray* const weight = weight_in(file, name.theirs.substr(0, name.theirs.rfind('/')) + "/weight", where);
      const int64_t width = weight ? rows_of(*weight) : 0;
      budget.take(static_cast<uint64_t>(width) * sizeof(float), where, "a bias that it does not have");
      tensors.push_back(float_tensor(name.ours, {width}, std::vector<float>(static_cast<size_t>(width))));
      continue;
    }
    const int64_t rows = rows_of(*a), columns = columns_of(*a);
    const bool vector = a->shape.size() == 1;
    const std::vector<int64_t> shape = vector            ? std::vector{rows}
                                       : name.transposed ? std::vector{columns, rows}
                                                         : std::vector{rows, columns};
    const ForeignArray* scale = find(name.theirs + "_scale");
    if (a->type == "i1" && scale) {  // integer / scale = (127 / scale) * integer / 127, a scale for each row of theirs
      std::vector<float> scales = plain_floats(*scale);
      if (static_cast<int64_t>(scales.size()) != rows)
        throw DataError(fmt::format("{}: {}_scale has {} numbers instead of {}", where, name.theirs, scales.size(), rows));
      for (float& s : scales) s = s != 0 ? 127 / s : 0;
      charge(a, rows * columns, 1);
      if (!name.transposed)
        tensors.push_back({name.ours, "I8", shape, a->bytes.kept()});
      else
        tensors.push_back({name.ours, "I8", shape, element_bytes(transposed(elements_of<char>(a->bytes), rows, columns))});
      tensors.push_back(float_tensor(name.ours + ".scale", name.transposed ? std::vector<int64_t>{1, rows} : std::vector<int64_t>{rows, 1},
                                     std::move(scales)));
      continue;
    }
    charge(a, rows * columns, sizeof(float));
    std::vector<float> values = plain_floats(*a);
    if (a->type == "i2" || a->type == "i1") {
      constexpr float kScaleOfVersion1 = 1000;
      if (!scale && a->type == "i1")
        throw DataError(fmt::format("{}: tensor {}_scale is missing; fetch the model again", where, name.theirs));
      const std::vector<float> scales = scale ? plain_floats(*scale) : std::vector<float>{kScaleOfVersion1};
      if (scales.empty() || (scales.size() > 1 && static_cast<int64_t>(scales.size()) != rows))
        throw DataError(fmt::format("{}: {}_scale has {} numbers instead of 1 or {}", where, name.theirs, scales.size(), rows));
      for (size_t i = 0; i < values.size(); ++i) values[i] /= scales[scales.size() == 1 ? 0 : i / static_cast<size_t>(columns)];
    }
    tensors.push_back({name.ours, "F32", shape, our_order(std::move(values), rows, columns, name.transposed)});
  }
  // What is left must be settings, or what ct2_config has replaced by sinusoids or recognised as tied.
  static const std::set<std::string> kSettings{"num_heads",
                                               "pre_norm",
                                               "activation",
                                               "scale_embeddings",
                                               "embeddings_merge",
                                               "alignment_layer",
                                               "alignment_heads",
                                               "start_from_zero_embedding",
                                               "multiply_by_sqrt_depth",
                                               "with_source_bos",
                                               "with_source_eos",
                                               "with_target_bos",
                                               "user_decoder_start_tokens",
                                               "unk_token",
                                               "bos_token",
                                               "eos_token",
                                               "flash_attention"};
  static const std::set<std::string> kTables{"encodings", "weight", "weight_scale"};
  for (const auto& [key, array] : file.arrays) {
    const std::string last = key.substr(key.rfind('/') + 1);
    const bool table = kTables.contains(last) && (key.find("embeddings") != std::string::npos ||
                                                  key.find("projection") != std::string::npos || key.ends_with(kPositions));
    const bool zero = array.shape.empty() && file.number(key, 1) == 0;  // an option that is off
    if (!used.contains(&array) && !kSettings.contains(last) && !table && !zero)
      throw ConfigError(fmt::format("{}: it has {}, which Starling's models do not have; it cannot be imported", where, key));
  }
  return tensors;
}

}  // namespace starling
