// Folders of Hugging Face: transformers' own tokens and probabilities, tables and positions, the padding, languages.
#include <gmock/gmock.h>

#include <cmath>

#include "decode/framing.h"
#include "decode/translator.h"
#include "tests/interop/hf_folder.h"
#include "tests/models/common.h"
#include "text/language_codes.h"

namespace starling {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Json = nlohmann::json;

const std::string kHfFixtures = STARLING_SOURCE_DIR "/tests/fixtures/hf";

class HfImport : public InteropTest {
 protected:
  LoadedModel import(const std::string& from, const Languages& languages = {}) {
    const std::string output = fresh();
    said_ = import_text(import_model(*files_, {from, output, {}, languages}), output);
    return load(output);
  }
  HfFolder folder(const std::string& fixture) { return {kHfFixtures + "/" + fixture, path(fixture)}; }
  // Log-probabilities of all tokens, the first of which follows the decoder's start.
  static std::vector<double> log_probabilities(const LoadedModel& m, const std::vector<int32_t>& source,
                                               const std::vector<int32_t>& target) {
    Batch batch;
    batch.source.append(source.data(), source.data() + source.size());
    batch.target.append(target.data(), target.data() + target.size());
    batch.sample_ids = {0};
    std::vector<float> nll;
    run(*m.model, batch, false, &nll);
    std::vector<double> found;
    for (size_t i = 0; i < target.size(); ++i) found.push_back(-nll[i]);
    return found;
  }
  static std::vector<int32_t> best(const LoadedModel& m, const std::vector<int32_t>& source, int64_t most, int64_t beam = 1) {
    SearchOptions search = with_prefixes(m.description.search, m.description.vocabularies);
    search.beam = beam, search.length_penalty = 0, search.allow_unknown = true;
    search.suppress_ids.clear();  // transformers writes rows without a piece
    search.max_length_factor = 0, search.max_length_offset = most;
    return beam_search(*m.model, std::vector<std::vector<int32_t>>{source}, search)[0].at(0).tokens;
  }
};

// Token by token: what transformers' tokenizers make of text, the probabilities that its models give, and the best tokens.
TEST_F(HfImport, TokensAndProbabilitiesAreTransformersOwn) {
  for (const std::string name : {"marian", "m2m", "nllb"}) {
    const LoadedModel m = import(kHfFixtures + "/" + name);
    const Vocabularies& v = m.description.vocabularies;
    const SearchOptions search = with_prefixes(m.description.search, v);
    const Json expected = folder(name).json("expected.json");
    for (const Json& e : expected) {
      bool cut = false;
      const std::vector<int32_t> source = source_tokens(e["source"].get<std::string>(), v.source(), search, 1000, cut);
      EXPECT_EQ(source, e["input_ids"].get<std::vector<int32_t>>()) << name;
      std::vector<int32_t> target = search.target_prefix_ids;
      for (const int32_t id : v.target().encode(e["target"].get<std::string>())) target.push_back(id);
      target.push_back(v.target().eos());
      EXPECT_EQ(target, e["labels"].get<std::vector<int32_t>>()) << name;
      // MarianMT takes the padding out of the softmax.
      const Json& values = e[name == "marian" ? "log_probabilities_without_padding" : "log_probabilities"];
      const std::vector<double> found = log_probabilities(m, source, target);
      ASSERT_EQ(found.size(), values.size());
      for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], values[i].get<double>(), 3e-5) << name << " token " << i;
      // Without the first input, the forced language and the last token, which may be a forced end.
      const auto greedy = e["greedy"].get<std::vector<int32_t>>();
      const size_t begin = 1 + search.target_prefix_ids.size();
      std::vector<int32_t> ours = best(m, source, 30);
      ASSERT_GE(ours.size(), greedy.size() - begin - 1);
      ours.resize(greedy.size() - begin - 1);
      EXPECT_EQ(ours, std::vector<int32_t>(greedy.begin() + static_cast<ptrdiff_t>(begin), greedy.end() - 1)) << name;
    }
  }
}

TEST_F(HfImport, SaysWhatWasReadAndHowItSearches) {
  const LoadedModel m = import(kHfFixtures + "/marian");
  EXPECT_THAT(said_, HasSubstr("Hugging Face's MarianMT"));
  EXPECT_THAT(said_, HasSubstr("2+2 layers, width 16, feed-forward 24 (swish), 4 heads, post-norm, output bias"));
  EXPECT_THAT(said_, HasSubstr("better imported from its original archive"));
  const ModelConfig& c = m.description.config;
  EXPECT_EQ(c.tied_embeddings, TiedEmbeddings::all);
  EXPECT_EQ(c.decoder_start, DecoderStart::zero);
  EXPECT_EQ(c.position_table, 48);
  EXPECT_EQ(m.description.vocabularies.source().size(), 139);  // without the padding
  EXPECT_EQ(m.description.search.beam, 6);
  EXPECT_EQ(m.description.search.length_penalty_form, LengthPenaltyForm::power);
  EXPECT_EQ(m.description.languages, (Languages{"en", "de"}));
  const ModelConfig many = import(kHfFixtures + "/m2m").description.config;
  EXPECT_EQ(many.first_position, 2);
  EXPECT_EQ(many.decoder_start, DecoderStart::end);
  EXPECT_EQ(many.position_table, 0);
  const HfFolder f = folder("marian");
  f.set("generation_config.json", "length_penalty", 0.5);
  f.set("generation_config.json", "no_repeat_ngram_size", 3);
  f.set("generation_config.json", "num_beams", nullptr);  // then config.json's holds
  f.set("config.json", "scale_embedding", false);
  f.set("config.json", "activation_function", "gelu");
  const ModelDescription other = import(f.path()).description;
  EXPECT_EQ(other.search.length_penalty, 0.5);
  EXPECT_EQ(other.search.beam, 6);
  EXPECT_EQ(other.config.embedding_scale, 1);
  EXPECT_EQ(other.config.activation, Activation::gelu);
  EXPECT_EQ(other.search.no_repeat_ngram, 3);
}

// Tables that are one in transformers may be stored under any of their names.
TEST_F(HfImport, TablesUnderAnyOfTheirNames) {
  const std::vector<double> values = import(kHfFixtures + "/marian").model->parameters().values().to_doubles();
  const HfFolder f = folder("marian");
  const HfArrays all = f.arrays();
  const std::vector<std::string> names{"model.shared.weight", "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight",
                                       "lm_head.weight"};
  for (const std::string& kept : names) {
    HfArrays arrays = all;
    for (const std::string& name : names)
      if (name != kept) arrays.erase(name);
    f.store(arrays);
    EXPECT_EQ(import(f.path()).model->parameters().values().to_doubles(), values) << kept;
  }
  // Three tables that differ, the source's and the target's padding zero.
  HfArrays apart = all;
  apart.erase("model.shared.weight");
  apart["model.encoder.embed_tokens.weight"].values[0] += 1;
  apart["lm_head.weight"].values[0] += 2;
  f.store(apart);
  f.set("config.json", "share_encoder_decoder_embeddings", false);
  f.set("config.json", "tie_word_embeddings", false);
  const LoadedModel three = import(f.path());
  EXPECT_EQ(three.description.config.tied_embeddings, TiedEmbeddings::none);
  apart.erase("lm_head.weight");
  f.store(apart);
  f.set("config.json", "tie_word_embeddings", true);
  EXPECT_EQ(import(f.path()).description.config.tied_embeddings, TiedEmbeddings::decoder);
  apart["lm_head.weight"] = all.at("lm_head.weight");
  apart["lm_head.weight"].values[5] += 1;
  f.store(apart);
  EXPECT_THAT(refusal([&] { import(f.path()); }), HasSubstr("lm_head.weight differ, though config.json says tie_word_embeddings"));
}

// A stored table is kept, unless it holds Starling's own signals: then sentences may be of any length.
TEST_F(HfImport, StoredPositions) {
  const HfFolder f = folder("marian");
  HfArrays arrays = f.arrays();
  HfArray table{{48, 16}, {}};
  for (int p = 0; p < 48; ++p)
    for (int c = 0; c < 16; ++c) {
      const double angle = p * std::pow(10000.0, -(c % 8) / 7.0);
      table.values.push_back(static_cast<float>(c < 8 ? std::sin(angle) : std::cos(angle)));
    }
  const auto store = [&] {
    for (const char* side : {"encoder", "decoder"}) arrays[fmt::format("model.{}.embed_positions.weight", side)] = table;
    f.store(arrays);
  };
  store();
  EXPECT_EQ(import(f.path()).description.config.position_table, 0);
  table.values[20] += 1;
  store();
  const LoadedModel stored = import(f.path());
  EXPECT_EQ(stored.description.config.position_table, 48);
  std::vector<double> rows;
  for (const Parameter* p : stored.model->parameters().declared())
    if (p->name == "decoder.positions") rows = p->value.to_doubles();
  EXPECT_EQ(std::vector<float>(rows.begin(), rows.end()), table.values);
}

// A padding that has learnt a row is the decoder's first input as it is, and in no translation however probable.
TEST_F(HfImport, APaddingWithARowOfItsOwn) {
  const HfFolder f = folder("marian");
  HfArrays arrays = f.arrays();
  for (auto& [name, a] : arrays)
    if (name.ends_with("embed_tokens.weight") || name.ends_with("shared.weight") || name == "lm_head.weight")
      for (size_t i = 139 * 16; i < 140 * 16; ++i) a.values[i] = 0.25;
  arrays["final_logits_bias"].values[139] = 30;
  f.store(arrays);
  const LoadedModel m = import(f.path());
  EXPECT_EQ(m.description.config.decoder_start, DecoderStart::pad);
  EXPECT_EQ(m.description.vocabularies.target().pad(), 139);
  const std::vector<int32_t> source{117, 63, 106, 0};
  EXPECT_GT(log_probabilities(m, source, {139, 0})[0], -0.1);  // the model would write it
  for (const int64_t beam : {1, 4}) {
    const std::vector<int32_t> tokens = best(m, source, 12, beam);
    EXPECT_FALSE(tokens.empty());
    EXPECT_EQ(std::count(tokens.begin(), tokens.end(), 139), 0);
  }
  // The row is what the decoder begins with.
  const std::vector<double> before = log_probabilities(m, source, {20, 0});
  for (auto& [name, a] : arrays)
    if (name.ends_with("embed_tokens.weight") || name.ends_with("shared.weight") || name == "lm_head.weight") a.values[139 * 16] = 1.5;
  f.store(arrays);
  EXPECT_GT(std::abs(log_probabilities(import(f.path()), source, {20, 0})[0] - before[0]), 1e-3);
}

TEST_F(HfImport, LanguagesSelectTags) {
  const auto prefixes = [](const LoadedModel& m) {
    return std::pair(m.description.search.source_prefix, m.description.search.target_prefix);
  };
  EXPECT_EQ(prefixes(import(kHfFixtures + "/m2m", {"fr", "pt-BR"})), std::pair(std::string("__fr__"), std::string("__pt__")));
  EXPECT_EQ(prefixes(import(kHfFixtures + "/nllb", {"eng_Latn", "zh-TW"})), std::pair(std::string("eng_Latn"), std::string("zho_Hant")));
  const HfFolder f = folder("m2m");
  for (const char* key : {"src_lang", "tgt_lang"}) f.set("tokenizer_config.json", key, nullptr);
  EXPECT_EQ(prefixes(import(f.path())), std::pair(std::string(), std::string()));
  EXPECT_THAT(said_, HasSubstr("tags are pieces such as __af__. Import it with --source-language and --target-language"));
  // A target that the model was trained for.
  f.set("generation_config.json", "forced_bos_token_id", 157);
  EXPECT_EQ(prefixes(import(f.path())).second, "__de__");
  // MarianMT has the target's tag in front of the source.
  const HfFolder marian = folder("marian");
  marian.set("config.json", "forced_bos_token_id", 12);
  EXPECT_EQ(prefixes(import(marian.path())).second, "'");
  marian.set("config.json", "forced_bos_token_id", nullptr);
  Json numbers = marian.json("vocab.json");
  const std::string given_up = "Ü";
  if (!numbers.contains(given_up)) GTEST_FAIL() << "the fixture has no such piece";
  numbers[">>fra<<"] = numbers[given_up];
  numbers.erase(given_up);
  marian.write("vocab.json", numbers.dump());
  const LoadedModel tagged = import(marian.path(), {"", "fra"});
  EXPECT_EQ(prefixes(tagged), std::pair(std::string(">>fra<<"), std::string()));
  bool cut = false;
  const SearchOptions search = with_prefixes(tagged.description.search, tagged.description.vocabularies);
  EXPECT_EQ(source_tokens("A dog", tagged.description.vocabularies.source(), search, 100, cut)[0], numbers[">>fra<<"].get<int32_t>());
}

TEST(HfLanguages, CodesOfAnyForm) {
  const std::vector<std::string> nllb{"eng_Latn", "deu_Latn", "zho_Hans", "zho_Hant", "srp_Cyrl", "kas_Arab", "kas_Deva", "pes_Arab", "en"};
  for (const auto& [code, piece] : {std::pair{"en", "eng_Latn"},
                                    {"eng", "eng_Latn"},
                                    {"eng-Latn", "eng_Latn"},
                                    {"de-AT", "deu_Latn"},
                                    {"zh", "zho_Hans"},
                                    {"zh-Hant", "zho_Hant"},
                                    {"fa", "pes_Arab"},
                                    {"sr", "srp_Cyrl"},
                                    {"kas", ""},
                                    {"kas-Deva", "kas_Deva"},
                                    {"tn", ""},
                                    {"fr", ""}})
    EXPECT_EQ(language_piece(nllb, code), piece) << code;
  EXPECT_EQ(language_piece({"__ast__", "__en__"}, "ast"), "__ast__");
  EXPECT_EQ(language_piece({">>cmn_Hans<<", ">>pt_br<<", ">>pt<<"}, "cmn-Hans"), ">>cmn_Hans<<");
  EXPECT_EQ(language_piece({">>pt<<"}, "pt-BR"), ">>pt<<");
  const std::vector<std::string> opus{">>por<<", ">>pob<<", ">>cmn_Hans<<", ">>cmn_Hant<<", ">>nob<<", ">>ara<<", ">>es<<"};
  for (const auto& [code, piece] : {std::pair{"pt", ">>por<<"},
                                    {"pt-BR", ">>pob<<"},
                                    {"zh", ">>cmn_Hans<<"},
                                    {"zh-TW", ">>cmn_Hant<<"},
                                    {"nb", ">>nob<<"},
                                    {"ar-EG", ">>ara<<"},
                                    {"spa", ">>es<<"},
                                    {"de", ""}})
    EXPECT_EQ(language_piece(opus, code), piece) << code;
}

}  // namespace
}  // namespace starling
