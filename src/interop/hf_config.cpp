// Names and defaults are those of transformers' MarianConfig, M2M100Config and GenerationConfig.
#include "interop/hf_config.h"

#include <algorithm>

#include "base/quotes.h"

namespace starling {
namespace {

constexpr double kHfEpsilon = 1e-5;  // of its layer normalisation, which no setting changes

int64_t size_of(const HfSettings& s, const std::string& key, int64_t most) {
  const auto value = s.get<int64_t>(key, 0);
  if (value < 1 || value > most) s.refuse(key);
  return value;
}

// A setting that is given for each side.
int64_t size_of_both(const HfSettings& s, const std::string& encoder, const std::string& decoder, int64_t most) {
  const int64_t value = size_of(s, encoder, most);
  if (size_of(s, decoder, most) != value) s.refuse(decoder);
  return value;
}

double rate_of(const HfSettings& s, const std::string& key, double otherwise) { return std::clamp(s.get(key, otherwise), 0.0, 0.99); }

}  // namespace

HfConfig hf_config(const HfSettings& s) {
  HfConfig h;
  const auto type = s.get<std::string>("model_type", "");
  if (type != "marian" && type != "m2m_100")
    throw ConfigError(fmt::format("{}: model_type {}: known are marian (MarianMT, OPUS-MT) and m2m_100 (M2M-100, NLLB-200)", s.where(),
                                  type.empty() ? "is missing" : in_quotes(type) + " cannot be imported"));
  const bool marian = type == "marian";
  h.family = marian ? HfFamily::marian : HfFamily::m2m_100;
  ModelConfig& c = h.model;
  c = model_preset("transformer-base");
  c.encoder_layers = size_of(s, "encoder_layers", 1000);
  c.decoder_layers = size_of(s, "decoder_layers", 1000);
  c.width = size_of(s, "d_model", 65536);
  c.heads = size_of_both(s, "encoder_attention_heads", "decoder_attention_heads", 1024);
  c.feed_forward = size_of_both(s, "encoder_ffn_dim", "decoder_ffn_dim", 1 << 20);
  if (c.width < 8 || c.width % 2 != 0 || c.width % c.heads != 0) s.refuse("d_model");
  c.norm = marian ? NormPlace::post : NormPlace::pre;
  c.norm_epsilon = kHfEpsilon;
  c.embedding_scale = s.get("scale_embedding", !marian) ? 0 : 1;
  c.dropout = rate_of(s, "dropout", 0.1);
  c.attention_dropout = rate_of(s, "attention_dropout", 0);
  c.feed_forward_dropout = rate_of(s, "activation_dropout", 0);
  const auto activation = s.get<std::string>("activation_function", marian ? "gelu" : "relu");
  const auto known = std::find_if(kHfActivations.begin(), kHfActivations.end(), [&](const auto& a) { return activation == a.first; });
  if (known == kHfActivations.end()) s.refuse("activation_function");
  c.activation = known->second;
  // What older versions could have.
  if (!s.get("is_encoder_decoder", true)) s.refuse("is_encoder_decoder");
  if (s.get("normalize_before", !marian) != !marian) s.refuse("normalize_before");
  if (s.get("normalize_embedding", false)) s.refuse("normalize_embedding");
  if (s.get("add_final_layer_norm", !marian) != !marian) s.refuse("add_final_layer_norm");
  if (!s.get("static_position_embeddings", true)) s.refuse("static_position_embeddings");

  h.source_rows = size_of(s, "vocab_size", 4 << 20);
  h.target_rows = marian && s.find("decoder_vocab_size") ? size_of(s, "decoder_vocab_size", 4 << 20) : h.source_rows;
  h.shared = !marian || s.get("share_encoder_decoder_embeddings", true);
  if (h.shared && h.source_rows != h.target_rows) s.refuse("decoder_vocab_size");
  h.tied = s.get("tie_word_embeddings", true);
  h.positions = marian ? size_of(s, "max_position_embeddings", 1 << 20) : 0;
  h.pad = s.get<int64_t>("pad_token_id", marian ? 58100 : 1);
  h.end = s.get<int64_t>("eos_token_id", marian ? 0 : 2);
  h.start = s.get<int64_t>("decoder_start_token_id", marian ? 58100 : 2);
  h.forced = s.get<int64_t>("forced_bos_token_id", -1);
  for (const auto& [key, number] : {std::pair{"pad_token_id", h.pad}, {"eos_token_id", h.end}, {"decoder_start_token_id", h.start}})
    if (number < 0 || number >= h.target_rows)
      throw DataError(fmt::format("{}: {} is {}, but the target has {} tokens", s.where(), key, number, h.target_rows));
  if (h.forced >= h.target_rows) s.refuse("forced_bos_token_id");
  // Positions of M2M-100 begin behind the padding's number.
  constexpr int64_t kMostFirst = 16;
  if (!marian && h.pad >= kMostFirst) s.refuse("pad_token_id");
  c.first_position = marian ? 0 : h.pad + 1;
  return h;
}

SearchOptions hf_search(const HfSettings& config, const HfSettings* generation, int64_t pad, std::vector<std::string>& notes) {
  const auto from = [&](const std::string& key) -> const HfSettings& { return generation && generation->find(key) ? *generation : config; };
  SearchOptions o;
  o.beam = from("num_beams").get<int64_t>("num_beams", 1);
  o.length_penalty = from("length_penalty").get("length_penalty", 1.0);
  o.length_penalty_form = LengthPenaltyForm::power;
  o.max_length_factor = 3;
  o.no_repeat_ngram = std::clamp<int64_t>(from("no_repeat_ngram_size").get<int64_t>("no_repeat_ngram_size", 0), 0, 1000);
  const auto leave_out = [&](const std::string& key, const std::string& what) {
    notes.push_back(fmt::format("{}: {} is left out{}.", from(key).where(), key, what));
  };
  if (o.beam < 1 || o.beam > 1024) {
    leave_out("num_beams", ", as it is not between 1 and 1,024");
    o.beam = 4;
  }
  if (!(o.length_penalty >= 0 && o.length_penalty <= 10)) {
    leave_out("length_penalty", ", as it is not between 0 and 10");
    o.length_penalty = 1;
  }
  if (o.beam == 1) notes.push_back("The search has a beam of 1; a larger one (--beam, or decode.yml) translates better.");
  for (const auto& [key, usual] : {std::pair<const char*, double>{"repetition_penalty", 1}, {"min_length", 0}})
    if (from(key).get(key, usual) != usual) leave_out(key, ", which the search here does not have");
  if (from("do_sample").get("do_sample", false)) leave_out("do_sample", "; translations are searched for");
  const nlohmann::json* const bad = from("bad_words_ids").find("bad_words_ids");
  if (bad && *bad != nlohmann::json::array({nlohmann::json::array({pad})}))
    leave_out("bad_words_ids", "; only padding and unknown text are never written");
  return o;
}

}  // namespace starling
