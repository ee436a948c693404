// Models of ours as Hugging Face folders: names, shapes and values read by hand, and the same model when it comes back.
#include <gmock/gmock.h>

#include <cmath>

#include "exporting/export.h"
#include "tests/interop/hf_folder.h"

namespace starling {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

const std::string kOurs = STARLING_SOURCE_DIR "/tests/fixtures/models", kTheirs = STARLING_SOURCE_DIR "/tests/fixtures";

class HfExport : public InteropTest {
 protected:
  std::string exported(const std::string& model, bool integers = false) {
    const std::string output = fresh();
    notes_.clear();
    for (const std::string& line : export_model(*files_, {model, output, Program::huggingface, integers, {}})) notes_ += line + "\n";
    return output;
  }
  std::string why_not(const std::string& model, bool integers = false) {
    return refusal([&] { exported(model, integers); });
  }
  // A copy of a model directory of ours with another line in its config.yml.
  std::string changed(const std::string& model, const std::string& from, const std::string& to) {
    const std::string copy = fresh();
    std::filesystem::copy(model, copy);
    change(copy + "/config.yml", from, to);
    return copy;
  }
  std::string notes_;
};

// Element by element against the model directory's own file, which has matrices the other way round.
TEST_F(HfExport, NamesShapesAndValues) {
  const std::string model = kOurs + "/post/model";
  const HfArrays ours = HfFolder(model, path("ours")).arrays();
  const HfFolder f(exported(model), path("theirs"));
  const HfArrays theirs = f.arrays();
  const auto is_transposed = [](const HfArray& a, const HfArray& b, int64_t first_column) {  // b [in, ...], a [out, in]
    const int64_t out = a.shape[0], in = a.shape[1], columns = b.shape[1];
    for (int64_t r = 0; r < out; ++r)
      for (int64_t c = 0; c < in; ++c)
        if (a.values[static_cast<size_t>(r * in + c)] != b.values[static_cast<size_t>(c * columns + first_column + r)]) return false;
    return true;
  };
  const int64_t D = 16;
  for (const auto& [name, at] : {std::pair{"q_proj", 0}, {"k_proj", 1}, {"v_proj", 2}}) {
    const HfArray& a = theirs.at(fmt::format("model.decoder.layers.1.self_attn.{}.weight", name));
    EXPECT_EQ(a.shape, (std::vector<int64_t>{D, D}));
    EXPECT_TRUE(is_transposed(a, ours.at("decoder.1.attention.qkv.weight"), at * D)) << name;
    const std::vector<float>& bias = ours.at("decoder.1.attention.qkv.bias").values;
    EXPECT_EQ(theirs.at(fmt::format("model.decoder.layers.1.self_attn.{}.bias", name)).values,
              std::vector<float>(bias.begin() + at * D, bias.begin() + (at + 1) * D));
  }
  EXPECT_TRUE(is_transposed(theirs.at("model.decoder.layers.0.encoder_attn.q_proj.weight"), ours.at("decoder.0.cross.query.weight"), 0));
  EXPECT_TRUE(is_transposed(theirs.at("model.decoder.layers.0.encoder_attn.v_proj.weight"), ours.at("decoder.0.cross.kv.weight"), D));
  EXPECT_TRUE(is_transposed(theirs.at("model.encoder.layers.0.fc1.weight"), ours.at("encoder.0.feed_forward.inner.weight"), 0));
  EXPECT_EQ(theirs.at("model.encoder.layers.0.fc2.weight").shape, (std::vector<int64_t>{D, 24}));
  EXPECT_EQ(theirs.at("model.encoder.layers.1.final_layer_norm.bias").values, ours.at("encoder.1.feed_forward.norm.bias").values);
  EXPECT_EQ(theirs.at("model.decoder.layers.1.encoder_attn_layer_norm.weight").values, ours.at("decoder.1.cross.norm.scale").values);
  // Three tables with a row of zeros for the padding, whose probability is none.
  const int64_t V = ours.at("decoder.output").shape[0];
  for (const auto& [a, b] : {std::pair{"model.encoder.embed_tokens.weight", "encoder.embedding"},
                             {"model.decoder.embed_tokens.weight", "decoder.embedding"},
                             {"lm_head.weight", "decoder.output"}}) {
    std::vector<float> expected = ours.at(b).values;
    expected.resize(static_cast<size_t>((V + 1) * D));
    EXPECT_EQ(theirs.at(a).shape, (std::vector<int64_t>{V + 1, D}));
    EXPECT_EQ(theirs.at(a).values, expected);
  }
  std::vector<float> bias(static_cast<size_t>(V));
  bias.push_back(-1e4f);
  EXPECT_EQ(theirs.at("final_logits_bias").shape, (std::vector<int64_t>{1, V + 1}));
  EXPECT_EQ(theirs.at("final_logits_bias").values, bias);
  const HfArray& positions = theirs.at("model.encoder.embed_positions.weight");
  EXPECT_EQ(positions.shape, (std::vector<int64_t>{2048, D}));
  EXPECT_NEAR(positions.values[3 * D + 2], std::sin(3 * std::pow(10000.0, -2 / 7.0)), 1e-6);
  EXPECT_EQ(theirs.size(), 2u * 16 + 2 * 26 + 3 + 1 + 2);
  EXPECT_EQ(f.read("model.safetensors").find(R"("__metadata__":{"format":"pt"})") != std::string::npos, true);

  const Json config = f.json("config.json"), generation = f.json("generation_config.json"), vocabulary = f.json("vocab.json");
  EXPECT_EQ(config["model_type"], "marian");
  EXPECT_EQ(config["vocab_size"], V + 1);
  EXPECT_EQ(config["share_encoder_decoder_embeddings"], false);
  EXPECT_EQ(config["tie_word_embeddings"], false);
  EXPECT_EQ(config["decoder_start_token_id"], 1);  // <s>
  EXPECT_EQ(config["pad_token_id"], V);
  EXPECT_EQ(config["eos_token_id"], 2);
  EXPECT_EQ(config["activation_function"], "relu");
  EXPECT_EQ(generation["bad_words_ids"], (Json::array({Json::array({V}), Json::array({0})})));
  EXPECT_EQ(vocabulary["<pad>"], V);
  EXPECT_EQ(vocabulary["</s>"], 2);
  EXPECT_EQ(f.json("tokenizer_config.json")["separate_vocabs"], true);
  EXPECT_EQ(f.json("target_vocab.json"), vocabulary);  // the vocabulary is joint
  EXPECT_THAT(notes_, HasSubstr("at most 2048 tokens"));
  EXPECT_THAT(notes_, HasSubstr("means ((5+n)/6)^a here"));
}

TEST_F(HfExport, ComesBackAsTheSameModel) {
  const std::string marian = imported(kTheirs + "/marian/post", {kTheirs + "/marian/v.spm", "", "", ""});
  for (const std::string& model : {kOurs + "/post/model", marian, imported(kTheirs + "/hf/m2m"), imported(kTheirs + "/hf/marian")}) {
    const std::string again = imported(exported(model));
    EXPECT_EQ(values_of(again), values_of(model)) << model;
    const ModelDescription a = read_description(*files_, model), b = read_description(*files_, again);
    EXPECT_EQ(std::tuple(b.config.norm, b.config.activation, b.config.decoder_start, b.config.tied_embeddings, b.config.output_bias,
                         b.config.first_position, b.config.position_table, b.config.heads),
              std::tuple(a.config.norm, a.config.activation, a.config.decoder_start, a.config.tied_embeddings, a.config.output_bias,
                         a.config.first_position, a.config.position_table, a.config.heads));
    EXPECT_EQ(b.search.beam, a.search.beam);
    for (const char* line : {"Ein Mann klettert.", "A dog runs."}) {
      EXPECT_EQ(b.vocabularies.source().encode(line), a.vocabularies.source().encode(line));
      EXPECT_EQ(b.vocabularies.target().encode(line), a.vocabularies.target().encode(line));
    }
  }
  EXPECT_THAT((exported(marian), notes_), HasSubstr("adds 1e-06 to the variance here and 1e-5 there"));
}

// Pre-norm models are M2M-100's if positions begin with 2 and the decoder with </s>: piece 1, <s>, is the padding then.
TEST_F(HfExport, PreNormModels) {
  const std::string pre = kOurs + "/pre/model";
  EXPECT_THAT(why_not(pre), HasSubstr("model.first-position is 0, and transformers needs 2, so that <s>, piece 1, can be the padding"));
  const std::string first = changed(pre, "  norm: pre", "  first-position: 2\n  decoder-start: end\n  norm: pre");
  const HfFolder f(exported(first), path("m2m"));
  const Json config = f.json("config.json");
  EXPECT_EQ(config["model_type"], "m2m_100");
  EXPECT_EQ(config["pad_token_id"], 1);
  EXPECT_EQ(config["decoder_start_token_id"], 2);
  EXPECT_EQ(f.json("tokenizer_config.json")["pad_token"], "<s>");
  EXPECT_EQ(f.arrays().count("final_logits_bias"), 0u);
  EXPECT_EQ(f.arrays().count("model.encoder.layer_norm.weight"), 1u);
  EXPECT_THAT(why_not(changed(first, "decoder-start: end", "decoder-start: token")),
              HasSubstr("model.decoder-start is token, and transformers needs end"));
  EXPECT_THAT(why_not(changed(first, "first-position: 2", "first-position: 5")), HasSubstr("so that <s>, piece 1, can be the padding"));
}

TEST_F(HfExport, RefusesWhatTheFormatCannotHold) {
  EXPECT_THAT(why_not(kOurs + "/gnmt/model"), HasSubstr("needs a transformer preset"));
  EXPECT_THAT(why_not(imported(kTheirs + "/marian/ssru", {kTheirs + "/marian/v.spm", "", "", ""})),
              HasSubstr("model.autoregression is ssru"));
  EXPECT_THAT(why_not(kOurs + "/post/model", true), HasSubstr("--int8"));
  EXPECT_THAT(why_not(changed(kOurs + "/post/model", "  norm: post", "  norm-epsilon: 1e-4\n  norm: post")), HasSubstr("norm-epsilon"));
  EXPECT_THAT(why_not(changed(kOurs + "/post/model", "  norm: post", "  source-end: false\n  norm: post")), HasSubstr("source-end"));
}

}  // namespace
}  // namespace starling
