#include "exporting/hf_export.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "backend/reference/reference.h"
#include "interop/foreign_array.h"
#include "interop/hf_config.h"
#include "interop/hf_names.h"
#include "storage/part.h"
#include "storage/safetensors.h"
#include "text/listed_pieces.h"
#include "text/vocabulary_format.h"

namespace starling {
namespace {

constexpr double kHfNormEpsilon = 1e-5;
constexpr float kNever = -1e4f;  // the bias of rows that stand for no piece: their probability is zero, in f16 too

// What the two kinds of models need to know besides our description.
struct HfShape {
  bool marian = true, shared = true;
  int64_t pad = 0, rows = 0;                 // the padding's number, and the rows of each table with it
  int64_t source_rows = 0, target_rows = 0;  // without added ones
};

HfShape hf_shape(const LoadedModel& m, std::vector<std::string>& notes) {
  const ModelConfig& c = m.description.config;
  const Vocabulary &source = m.description.vocabularies.source(), &target = m.description.vocabularies.target();
  if (c.norm_epsilon < kHfNormEpsilon)
    notes.push_back(fmt::format("note       layer normalisation adds {} to the variance here and 1e-5 there, so scores differ slightly",
                                c.norm_epsilon));
  HfShape s;
  s.shared = c.tied_embeddings == TiedEmbeddings::all;
  s.source_rows = source.size(), s.target_rows = target.size();
  if (c.norm == NormPlace::pre) {  // M2M-100's, whose positions begin behind the padding's number
    s.marian = false;
    s.pad = c.first_position - 1;
    s.rows = s.target_rows;
    return s;
  }
  s.pad = target.pad() >= 0 ? target.pad() : std::max(s.source_rows, s.target_rows);
  s.rows = std::max({s.pad + 1, s.source_rows, s.target_rows});
  return s;
}

class HfTensors {
 public:
  void add(std::string name, std::vector<int64_t> shape, const std::vector<float>& values) {
    bytes_.push_back(std::make_unique<std::string>(element_bytes(values)));
    tensors_.push_back({std::move(name), "F32", std::move(shape), std::as_bytes(std::span(*bytes_.back()))});
  }
  std::string file() const {
    struct : ByteSink {
      std::string bytes;
      void write(std::span<const std::byte> data) override { bytes.append(reinterpret_cast<const char*>(data.data()), data.size()); }
    } sink;
    write_safetensors(sink, tensors_, {{"format", "pt"}});  // which transformers asks for
    return std::move(sink.bytes);
  }

 private:
  std::vector<std::unique_ptr<std::string>> bytes_;
  std::vector<NamedBytes> tensors_;
};

std::vector<float> values_of(const Parameter& p) {
  const std::vector<double> values = p.value.to_doubles();
  return {values.begin(), values.end()};
}

std::string weights_file(const LoadedModel& m, const HfShape& s, int64_t positions) {
  const ModelConfig& c = m.description.config;
  const int64_t D = c.width;
  std::map<std::string, const Parameter*> parameters;
  for (const Parameter* p : m.model->parameters().declared()) parameters.emplace(p->name, p);
  HfTensors to;
  const auto table = [&](const char* ours, const char* theirs) {  // with rows of zeros for what is added
    std::vector<float> values = values_of(*parameters.at(ours));
    values.resize(static_cast<size_t>(s.rows * D));
    to.add(theirs, {s.rows, D}, values);
  };
  if (s.shared) {
    table("embedding", kHfShared);
  } else {
    table("encoder.embedding", kHfSource);
    table("decoder.embedding", kHfTarget);
    if (c.tied_embeddings == TiedEmbeddings::none) table("decoder.output", kHfOutput);
  }
  if (s.marian) {
    std::vector<float> bias =
        c.output_bias ? values_of(*parameters.at("decoder.output.bias")) : std::vector<float>(static_cast<size_t>(s.target_rows));
    bias.resize(static_cast<size_t>(s.rows), kNever);
    to.add(kHfOutputBias, {1, s.rows}, bias);
    for (const auto& [ours, theirs] : {std::pair{"encoder.positions", kHfSourcePositions}, {"decoder.positions", kHfTargetPositions}}) {
      std::vector<float> rows;
      if (c.position_table > 0) {
        rows = values_of(*parameters.at(ours));
        rows.erase(rows.begin(), rows.begin() + c.first_position * D);
      } else {
        for (int64_t i = 0; i < positions * D; ++i) rows.push_back(static_cast<float>(sinusoid(c.first_position + i / D, i % D, D)));
      }
      to.add(theirs, {positions, D}, rows);
    }
  }
  for (const HfName& name : hf_names(c)) {
    const Parameter& p = *parameters.at(name.ours);
    const auto parts = static_cast<int64_t>(name.theirs.size());
    const bool weight = p.whole.rank() == 2;
    const int64_t in = weight ? p.whole[0] : 1, out = p.whole[weight ? 1 : 0] / parts;
    const std::vector<float> all = weight ? transposed(values_of(p), in, out * parts) : values_of(p);
    for (int64_t i = 0; i < parts; ++i) {
      const auto begin = all.begin() + i * in * out;
      to.add(name.theirs[static_cast<size_t>(i)], weight ? std::vector{out, in} : std::vector{out}, {begin, begin + in * out});
    }
  }
  return to.file();
}

int64_t start_of(const LoadedModel& m, const HfShape& s) {
  const Vocabulary& v = m.description.vocabularies.target();
  switch (m.description.config.decoder_start) {
    case DecoderStart::token:
      return v.bos();
    case DecoderStart::end:
      return v.eos();
    case DecoderStart::zero:
    case DecoderStart::pad:
      break;
  }
  return s.pad;
}

nlohmann::json config_json(const LoadedModel& m, const HfShape& s, int64_t positions) {
  const ModelConfig& c = m.description.config;
  const Vocabulary& v = m.description.vocabularies.target();
  const auto activation =
      std::find_if(kHfActivations.begin(), kHfActivations.end(), [&](const auto& a) { return a.second == c.activation; });
  CHECK(activation != kHfActivations.end(), "Hugging Face has no word for {}", c.activation);
  nlohmann::json json{{"architectures", {s.marian ? "MarianMTModel" : "M2M100ForConditionalGeneration"}},
                      {"model_type", s.marian ? "marian" : "m2m_100"},
                      {"vocab_size", s.rows},
                      {"d_model", c.width},
                      {"activation_function", activation->first},
                      {"scale_embedding", c.embedding_scale == 0},
                      {"tie_word_embeddings", c.tied_embeddings != TiedEmbeddings::none},
                      {"max_position_embeddings", positions},
                      {"dropout", c.dropout},
                      {"attention_dropout", c.attention_dropout},
                      {"activation_dropout", c.feed_forward_dropout},
                      {"encoder_layerdrop", 0.0},
                      {"decoder_layerdrop", 0.0},
                      {"is_encoder_decoder", true},
                      {"num_hidden_layers", c.encoder_layers},
                      {"pad_token_id", s.pad},
                      {"eos_token_id", v.eos()},
                      {"forced_eos_token_id", v.eos()},
                      {"decoder_start_token_id", start_of(m, s)},
                      {"torch_dtype", "float32"}};
  for (const auto& [side, layers] : {std::pair<std::string, int64_t>{"encoder", c.encoder_layers}, {"decoder", c.decoder_layers}}) {
    json[side + "_layers"] = layers;
    json[side + "_attention_heads"] = c.heads;
    json[side + "_ffn_dim"] = c.feed_forward;
  }
  if (s.marian) {
    json["decoder_vocab_size"] = s.rows;
    json["share_encoder_decoder_embeddings"] = s.shared;
  }
  return json;
}

nlohmann::json generation_json(const LoadedModel& m, const HfShape& s, int64_t positions, std::vector<std::string>& notes) {
  const SearchOptions& o = m.description.search;
  const Vocabulary& v = m.description.vocabularies.target();
  nlohmann::json bad = nlohmann::json::array({nlohmann::json::array({s.pad})});
  if (!o.allow_unknown) bad.push_back(nlohmann::json::array({v.unk()}));
  nlohmann::json json{{"num_beams", o.beam},
                      {"length_penalty", o.length_penalty},
                      {"max_length", std::min<int64_t>(positions, 512)},
                      {"bad_words_ids", bad},
                      {"pad_token_id", s.pad},
                      {"eos_token_id", v.eos()},
                      {"forced_eos_token_id", v.eos()},
                      {"decoder_start_token_id", start_of(m, s)}};
  if (o.no_repeat_ngram > 0) json["no_repeat_ngram_size"] = o.no_repeat_ngram;
  if (o.length_penalty > 0 && o.length_penalty_form == LengthPenaltyForm::gnmt)
    notes.push_back(fmt::format("note       length penalty {} means ((5+n)/6)^a here and n^a there, which prefers longer translations",
                                o.length_penalty));
  if (o.coverage_penalty > 0) notes.push_back("note       the coverage penalty is left out: transformers has none");
  if (const int32_t forced = v.id_of(o.target_prefix); forced >= 0) json["forced_bos_token_id"] = forced;
  return json;
}

// The tokens that an imported tokenizer finds in text first, by number.
nlohmann::json added_tokens(const Vocabulary& v) {
  nlohmann::json added = nlohmann::json::object();
  for (int32_t id = 0; id < v.size(); ++id) {
    const vocabulary_format::Found found = v.listed().found(id);
    if (found != vocabulary_format::Found::added && found != vocabulary_format::Found::added_symbol) continue;
    added[std::to_string(id)] = {{"content", v.piece(id)}, {"lstrip", false},
                                 {"normalized", false},    {"rstrip", false},
                                 {"single_word", false},   {"special", found == vocabulary_format::Found::added_symbol}};
  }
  return added;
}

std::string vocabulary_of_numbers(const Vocabulary& v, int64_t pad, const char* name) {
  nlohmann::json json = nlohmann::json::object();
  for (int32_t id = 0; id < v.size(); ++id) json[v.piece(id)] = id;
  if (pad >= v.size()) json[name] = pad;
  return json.dump(0) + "\n";
}

}  // namespace

std::vector<std::pair<std::string, std::string>> hf_files(const LoadedModel& model, std::vector<std::string>& notes, int64_t positions) {
  const HfShape s = hf_shape(model, notes);
  const ModelDescription& d = model.description;
  const Vocabulary &source = d.vocabularies.source(), &target = d.vocabularies.target();
  if (s.marian && d.config.position_table > 0) positions = longest_sentence(d.config);
  for (const Vocabulary* v : {&source, &target})
    if (const auto all = static_cast<int64_t>(vocabulary_format::pieces(v->bytes()).size()); all > v->size()) {
      notes.push_back(fmt::format("note       {} pieces of a SentencePiece model have no number, which transformers must know as unknown",
                                  all - v->size()));
      break;
    }
  constexpr const char* kPadding = "<pad>";
  nlohmann::json tokenizer{{"tokenizer_class", "MarianTokenizer"},
                           {"unk_token", target.piece(target.unk())},
                           {"eos_token", target.piece(target.eos())},
                           {"pad_token", s.pad < target.size() ? target.piece(static_cast<int32_t>(s.pad)) : kPadding},
                           {"model_max_length", positions},
                           {"clean_up_tokenization_spaces", false},
                           {"separate_vocabs", !s.shared}};
  if (nlohmann::json added = added_tokens(source); !added.empty()) tokenizer["added_tokens_decoder"] = std::move(added);
  if (!d.languages.source.empty()) tokenizer["source_lang"] = d.languages.source;
  if (!d.languages.target.empty()) tokenizer["target_lang"] = d.languages.target;
  std::vector<std::pair<std::string, std::string>> files{
      {"config.json", config_json(model, s, positions).dump(2) + "\n"},
      {"generation_config.json", generation_json(model, s, positions, notes).dump(2) + "\n"},
      {"model.safetensors", weights_file(model, s, positions)},
      {"vocab.json", vocabulary_of_numbers(source, s.pad, kPadding)},
      {"source.spm", source.bytes()},
      {"target.spm", target.bytes()},
      {"tokenizer_config.json", tokenizer.dump(2) + "\n"}};
  if (!s.shared) files.emplace_back("target_vocab.json", vocabulary_of_numbers(target, s.pad, kPadding));
  if (s.marian && d.config.position_table == 0)
    notes.push_back(fmt::format("note       sentences may have at most {} tokens there", positions));
  notes.push_back("note       where sacremoses is installed, transformers changes some punctuation before it splits text");
  return files;
}

}  // namespace starling
