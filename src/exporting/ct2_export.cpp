#include "exporting/ct2_export.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "backend/reference/reference.h"
#include "interop/ct2_names.h"
#include "interop/foreign_array.h"
#include "interop/foreign_bytes.h"

namespace starling {
namespace {

enum : char { kF32 = 0, kI8 = 1, kI16 = 2 };  // types of elements

std::string text_of(const std::string& text) {
  std::string bytes;
  append_number(bytes, text.size() + 1, 2);
  return bytes + text + '\0';
}

// model.bin in the making; variables are written in the order of their names.
class Ct2Model {
 public:
  void add(const std::string& name, const std::vector<int64_t>& shape, char type, const std::string& elements) {
    std::string bytes = text_of(name) + static_cast<char>(shape.size());
    for (const int64_t n : shape) append_number(bytes, static_cast<uint64_t>(n), 4);
    bytes += type;
    append_number(bytes, elements.size(), 4);
    variables_[name] = bytes + elements;
  }
  void flag(const std::string& name, int value) { add(name, {}, kI8, std::string(1, static_cast<char>(value))); }
  void number(const std::string& name, int16_t value) { add(name, {}, kI16, element_bytes(std::vector{value})); }
  void alias(const std::string& name, const std::string& of) { aliases_[name] = of; }
  bool has(const std::string& name) const { return variables_.contains(name); }
  std::string bytes() const {
    constexpr uint64_t kVersion = 6, kRevision = 7;
    std::string file;
    append_number(file, kVersion, 4);
    file += text_of("TransformerSpec");
    append_number(file, kRevision, 4);
    append_number(file, variables_.size(), 4);
    for (const auto& [name, variable] : variables_) file += variable;
    append_number(file, aliases_.size(), 4);
    for (const auto& [alias, name] : aliases_) file += text_of(alias) + text_of(name);
    return file;
  }

 private:
  std::map<std::string, std::string> variables_, aliases_;
};

void add_settings(const ModelConfig& c, Ct2Model& to) {
  for (const std::string side : {"encoder", "decoder"}) {
    to.number(side + "/num_heads", static_cast<int16_t>(c.heads));
    to.flag(side + "/pre_norm", c.norm == NormPlace::pre);
    const auto activation = std::find(kCt2Activations.begin(), kCt2Activations.end(), c.activation);
    CHECK(activation != kCt2Activations.end(), "CTranslate2 has no number of {}", c.activation);
    to.flag(side + "/activation", static_cast<int>(activation - kCt2Activations.begin()));
    if (c.embedding_scale == 0)
      to.flag(side + "/scale_embeddings", 1);
    else
      to.add(side + "/scale_embeddings", {}, kF32, element_bytes(std::vector{static_cast<float>(c.embedding_scale)}));
  }
  to.flag("encoder/embeddings_merge", 0);
  to.flag("decoder/start_from_zero_embedding", c.decoder_start == DecoderStart::zero);
  to.number("decoder/alignment_layer", static_cast<int16_t>(aligned_layer(c)));
  to.number("decoder/alignment_heads", c.alignment_head == 1 ? 1 : 0);  // the first one, or all: it knows no other choice
}

// Integers that the model directory holds, with one scale for each output: they are not rounded anew.
bool add_integers(const SafetensorsFile& weights, const Parameter& p, const Ct2Name& name, Ct2Model& to) {
  const NamedBytes *const t = weights.find(p.name), *const scale = weights.find(p.name + ".scale");
  if (!t || t->dtype != "I8" || !scale) return false;
  int64_t rows = p.whole[0], columns = p.whole[1];
  if (scale->shape != (name.transposed ? std::vector<int64_t>{1, columns} : std::vector<int64_t>{rows, 1})) return false;
  std::string bytes(reinterpret_cast<const char*>(t->data.data()), t->data.size());
  if (name.transposed) {
    bytes = element_bytes(transposed(elements_of<char>(bytes), rows, columns));
    std::swap(rows, columns);
  }
  std::vector<float> scales = elements_of<float>({reinterpret_cast<const char*>(scale->data.data()), scale->data.size()});
  for (float& s : scales) s = s > 0 ? 127 / s : 1;
  to.add(name.theirs, {rows, columns}, kI8, bytes);
  to.add(name.theirs + "_scale", {rows}, kF32, element_bytes(scales));
  return true;
}

// A weight under its name there; integers have a scale for each row.
void add_weight(const Parameter& p, const Ct2Name& name, bool integers, int64_t first_position, Ct2Model& to) {
  const std::vector<double> values = p.value.to_doubles();
  const bool vector = p.whole.rank() == 1;
  int64_t rows = p.whole[0], columns = vector ? 1 : p.whole[1];
  std::vector<float> elements(values.begin(), values.end());
  if (name.theirs.ends_with("/encodings")) {  // which begin with the first position there
    elements.erase(elements.begin(), elements.begin() + first_position * columns);
    rows -= first_position;
  }
  if (name.transposed) {
    elements = transposed(elements, rows, columns);
    std::swap(rows, columns);
  }
  const std::vector<int64_t> shape = vector ? std::vector{rows} : std::vector{rows, columns};
  if (vector || !integers || name.positions) return to.add(name.theirs, shape, kF32, element_bytes(elements));
  std::vector<int8_t> rounded(elements.size());
  std::vector<float> scales;
  for (int64_t r = 0; r < rows; ++r) {
    const auto row = std::span(elements).subspan(static_cast<size_t>(r * columns), static_cast<size_t>(columns));
    float most = 0;
    for (const float x : row) most = std::max(most, std::abs(x));
    scales.push_back(most > 0 ? 127 / most : 1);
    for (size_t c = 0; c < row.size(); ++c)
      rounded[static_cast<size_t>(r * columns) + c] =
          static_cast<int8_t>(std::clamp(std::nearbyint(row[c] * scales.back()), -127.0f, 127.0f));
  }
  to.add(name.theirs, shape, kI8, element_bytes(rounded));
  to.add(name.theirs + "_scale", {rows}, kF32, element_bytes(scales));
}

std::string vocabulary_json(const Vocabulary& v) {
  nlohmann::json list = nlohmann::json::array();
  for (int32_t id = 0; id < v.size(); ++id) list.push_back(v.word_pieces() ? v.token(id) : v.piece(id));
  return list.dump(0) + "\n";
}

}  // namespace

std::vector<std::pair<std::string, std::string>> ct2_files(FileSystem& files, const LoadedModel& model, bool integers, int64_t positions) {
  const ModelDescription& d = model.description;
  const ModelConfig& c = d.config;
  Ct2Model file;
  add_settings(c, file);
  std::map<std::string, const Parameter*> parameters;
  for (const Parameter* p : model.model->parameters().declared()) parameters.emplace(p->name, p);
  const SafetensorsFile weights(files, join_path(d.directory, "model.safetensors"));
  for (const Ct2Name& name : ct2_names(c)) {
    const Parameter& p = *parameters.at(name.ours);
    if (!integers || !add_integers(weights, p, name, file)) add_weight(p, name, integers, c.first_position, file);
  }
  weights.require_whole();
  constexpr const char *kTarget = "decoder/embeddings/weight", *kSource = "encoder/embeddings_0/weight";
  const auto alias = [&](const std::string& name, const std::string& of) {
    file.alias(name, of);
    if (file.has(of + "_scale")) file.alias(name + "_scale", of + "_scale");
  };
  if (c.tied_embeddings == TiedEmbeddings::all) alias(kSource, kTarget);
  if (c.tied_embeddings != TiedEmbeddings::none) alias("decoder/projection/weight", kTarget);
  if (c.relative_positions == 0 && c.position_table == 0 && c.first_position != 1) {  // CTranslate2's own sinusoids begin with 1
    std::vector<float> table;
    for (int64_t p = 0; p < positions; ++p)
      for (int64_t k = 0; k < c.width; ++k) table.push_back(static_cast<float>(sinusoid(c.first_position + p, k, c.width)));
    file.add("encoder/position_encodings/encodings", {positions, c.width}, kF32, element_bytes(table));
    file.alias("decoder/position_encodings/encodings", "encoder/position_encodings/encodings");
  }
  const Vocabulary &source = d.vocabularies.source(), &target = d.vocabularies.target();
  const std::string end = target.piece(target.eos()), begin = target.bos() >= 0 ? target.piece(target.bos()) : end;
  const std::string start = c.decoder_start == DecoderStart::token ? begin
                            : c.decoder_start == DecoderStart::pad ? target.piece(target.pad())
                                                                   : end;
  const nlohmann::json config{{"unk_token", target.piece(target.unk())},
                              {"bos_token", begin},
                              {"eos_token", end},
                              {"decoder_start_token", start},
                              {"add_source_bos", false},
                              {"add_source_eos", c.source_end},
                              {"layer_norm_epsilon", c.norm_epsilon}};
  std::vector<std::pair<std::string, std::string>> written{{"model.bin", file.bytes()}, {"config.json", config.dump(2) + "\n"}};
  if (d.vocabularies.joint()) {
    written.emplace_back("shared_vocabulary.json", vocabulary_json(target));
  } else {
    written.emplace_back("source_vocabulary.json", vocabulary_json(source));
    written.emplace_back("target_vocabulary.json", vocabulary_json(target));
  }
  return written;
}

}  // namespace starling
