// Folders of Hugging Face that cannot be imported, or not without a further file; numbers of languages; damaged files.
#include <gmock/gmock.h>

#include <algorithm>

#include "base/random.h"
#include "interop/hf.h"
#include "tests/interop/hf_folder.h"

namespace starling {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

const std::string kHfFolders = STARLING_SOURCE_DIR "/tests/fixtures/hf";

class HfRefusals : public InteropTest {
 protected:
  HfFolder folder(const std::string& fixture) { return {kHfFolders + "/" + fixture, path(fixture)}; }
  std::string why_not(const HfFolder& f) {
    return refusal([&] { imported(f.path()); });
  }
  // The refusal of a fixture with another setting in a file.
  std::string with(const std::string& fixture, const std::string& key, const Json& value, const std::string& file = "config.json") {
    const HfFolder f = folder(fixture);
    f.set(file, key, value);
    return why_not(f);
  }
};

TEST_F(HfRefusals, SettingsByName) {
  EXPECT_THAT(with("marian", "model_type", "t5"), HasSubstr("model_type 't5' cannot be imported: known are marian"));
  EXPECT_THAT(with("marian", "model_type", nullptr), HasSubstr("model_type is missing"));
  for (const auto& [key, value] : {std::pair<const char*, Json>{"activation_function", "mish"},
                                   {"decoder_ffn_dim", 32},
                                   {"decoder_attention_heads", 2},
                                   {"normalize_embedding", true},
                                   {"normalize_before", true},
                                   {"static_position_embeddings", false},
                                   {"is_encoder_decoder", false},
                                   {"d_model", 15}})
    EXPECT_THAT(with("marian", key, value), HasSubstr(fmt::format("the model has {}: {}", key, value.dump()))) << key;
  EXPECT_THAT(with("marian", "decoder_start_token_id", 5), HasSubstr("decoder_start_token_id: 5"));
  EXPECT_THAT(with("marian", "eos_token_id", 7), HasSubstr("eos_token_id is 7, which is the number of"));
  EXPECT_THAT(with("marian", "pad_token_id", 1000), HasSubstr("pad_token_id is 1000, but the target has 140 tokens"));
  EXPECT_THAT(with("marian", "d_model", nullptr), HasSubstr("lacks d_model"));
  EXPECT_THAT(with("marian", "d_model", "wide"), HasSubstr("d_model is \"wide\""));
  EXPECT_THAT(with("marian", "d_model", 32), HasSubstr("is [140, 16], but config.json asks for [140, 32]"));
  EXPECT_THAT(with("m2m", "normalize_before", false), HasSubstr("normalize_before: false"));
  EXPECT_THAT(with("m2m", "encoder_layers", 3), HasSubstr("tensor model.encoder.layers.2.self_attn.q_proj.weight is missing"));
  EXPECT_THAT(with("m2m", "encoder_layers", 1), HasSubstr("weights that Starling's models do not have: model.encoder.layers.1."));
  EXPECT_THAT(with("m2m", "forced_bos_token_id", 249, "generation_config.json"), HasSubstr("forced_bos_token_id: 249"));
}

TEST_F(HfRefusals, WeightsThatAreAllZero) {
  const HfFolder f = folder("marian");
  HfArrays arrays = f.arrays();
  for (auto& [name, array] : arrays)
    if (!name.ends_with("embed_positions.weight")) std::ranges::fill(array.values, 0.0f);
  f.store(arrays);
  EXPECT_THAT(why_not(f), HasSubstr("all its matrices are zero; fetch the model again"));
}

TEST_F(HfRefusals, FilesThatAreMissing) {
  const auto without = [&](const std::string& fixture, const std::vector<std::string>& names) {
    const HfFolder f = folder(fixture);
    for (const std::string& name : names) f.remove(name);
    return why_not(f);
  };
  EXPECT_THAT(without("marian", {"target.spm"}), HasSubstr("there is no target.spm"));
  EXPECT_THAT(without("marian", {"vocab.json"}), HasSubstr("there is no vocab.json"));
  EXPECT_THAT(without("nllb", {"sentencepiece.bpe.model"}), HasSubstr("there is no sentencepiece.bpe.model"));
  EXPECT_THAT(without("m2m", {"model-00001-of-00002.safetensors"}),
              HasSubstr("names model-00001-of-00002.safetensors, which is not there"));
  EXPECT_THAT(without("m2m", {"model.safetensors.index.json"}), HasSubstr("there are several files of weights"));
  EXPECT_THAT(without("nllb", {"special_tokens_map.json"}), HasSubstr("no file says which numbers the languages have"));
  const HfFolder f = folder("marian");
  std::filesystem::rename(f.file("model.safetensors"), f.file("pytorch_model.bin"));
  EXPECT_THAT(why_not(f), HasSubstr("but as pytorch_model.bin, a Python pickle"));
  EXPECT_THAT(why_not(f), HasSubstr("safe_serialization=True"));
  // The name of the file does not matter if there is one.
  std::filesystem::rename(f.file("pytorch_model.bin"), f.file("opus.safetensors"));
  EXPECT_EQ(why_not(f), "");
  // A vocabulary that is given takes the place of one that is missing.
  const HfFolder nllb = folder("nllb");
  std::filesystem::rename(nllb.file("sentencepiece.bpe.model"), path("v.spm"));
  EXPECT_EQ(refusal([&] { imported(nllb.path(), {path("v.spm"), "", "", ""}); }), "");
}

// Where special_tokens_map.json does not list the languages, other files of the tokenizer number them.
TEST_F(HfRefusals, NumbersOfLanguages) {
  const HfFolder f = folder("nllb");
  const Json listed = f.json("special_tokens_map.json")["additional_special_tokens"];
  const std::string expected = imported(f.path());
  f.remove("special_tokens_map.json");
  Json tokens = Json::array(), decoder = Json::object(), numbers = Json::object();
  for (size_t i = 0; i < listed.size(); ++i) {
    tokens.push_back({{"id", 141 + i}, {"content", listed[i]}, {"special", true}});
    decoder[std::to_string(141 + i)] = {{"content", listed[i]}};
    numbers[listed[i].get<std::string>()] = 141 + i;
  }
  const auto same = [&] {
    const std::string directory = imported(f.path());
    const Vocabulary now = Vocabulary::load(directory + "/vocab.spm"), before = Vocabulary::load(expected + "/vocab.spm");
    for (int32_t id = 0; id < before.size(); ++id) EXPECT_EQ(now.piece(id), before.piece(id)) << id;
    EXPECT_EQ(now.piece(182), "deu_Latn");
    EXPECT_EQ(now.encode("A dog."), before.encode("A dog."));
  };
  f.write("tokenizer.json", Json{{"added_tokens", tokens}, {"model", {{"type", "BPE"}}}}.dump());
  same();
  f.remove("tokenizer.json");
  f.set("tokenizer_config.json", "added_tokens_decoder", decoder);
  same();
  f.set("tokenizer_config.json", "added_tokens_decoder", nullptr);
  f.write("added_tokens.json", numbers.dump());
  same();
  decoder["182"]["content"] = "fra_Latn";
  f.set("tokenizer_config.json", "added_tokens_decoder", decoder);
  EXPECT_THAT(why_not(f), HasSubstr("'fra_Latn' and 'deu_Latn' have the same number, 182"));
  decoder.erase("182");
  decoder["5000"] = {{"content", "xyz_Latn"}};
  f.set("tokenizer_config.json", "added_tokens_decoder", decoder);
  EXPECT_THAT(why_not(f), HasSubstr("'xyz_Latn' has number 5000, but the model has 346 tokens"));
}

TEST_F(HfRefusals, NumbersOfPieces) {
  const HfFolder f = folder("marian");
  Json numbers = f.json("vocab.json");
  numbers["Y"] = numbers["q"];
  f.write("vocab.json", numbers.dump());
  EXPECT_THAT(why_not(f), HasSubstr("have the same number"));
  numbers["Y"] = 700;
  f.write("vocab.json", numbers.dump());
  EXPECT_THAT(why_not(f), HasSubstr("'Y' has number 700, but the model has 139 tokens"));
  numbers["Y"] = "five";
  f.write("vocab.json", numbers.dump());
  EXPECT_THAT(why_not(f), HasSubstr("the number of 'Y' is \"five\""));
  // A number without a piece is a row that no text has.
  numbers.erase("Y");
  f.write("vocab.json", numbers.dump());
  const Vocabulary v = Vocabulary::load(imported(f.path()) + "/vocab.spm");
  EXPECT_EQ(v.piece(5), "<row 5>");
  EXPECT_EQ(v.size(), 139);
}

// The files of a folder in memory, some of them changed.
class HfInMemory : public ForeignFiles {
 public:
  HfInMemory(FileSystem& files, const std::string& directory) {
    for (const std::string& name : files.list(directory)) {
      names_.push_back(name);
      content_[name] = files.read_file(directory + "/" + name);
    }
    std::sort(names_.begin(), names_.end());
  }
  const std::vector<std::string>& names() const override { return names_; }
  std::string read(const std::string& name) const override { return content_.at(name); }
  std::string where(const std::string& name) const override { return "memory/" + name; }
  std::string& content(const std::string& name) { return content_.at(name); }

 private:
  std::vector<std::string> names_;
  std::map<std::string, std::string> content_;
};

TEST_F(HfRefusals, MutationsAreReadOrRefused) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> mutated{
      {"marian", {"config.json", "generation_config.json", "model.safetensors", "vocab.json", "tokenizer_config.json", "source.spm"}},
      {"m2m", {"config.json", "model.safetensors.index.json", "model-00001-of-00002.safetensors", "vocab.json"}},
      {"nllb", {"config.json", "model.safetensors", "special_tokens_map.json", "sentencepiece.bpe.model"}}};
  std::vector<HfInMemory> whole;
  for (const auto& [fixture, names] : mutated) whole.emplace_back(*files_, kHfFolders + "/" + fixture);
  Random random(5, 9);
  int refused = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::vector<std::string>& names = mutated[static_cast<size_t>(i) % mutated.size()].second;
    HfInMemory folder = whole[static_cast<size_t>(i) % mutated.size()];
    std::string& bytes = folder.content(names[random.below(names.size())]);
    for (int k = 0; k < 1 + i % 4; ++k) {
      char& c = bytes[random.below(std::min<uint64_t>(bytes.size(), 8000))];  // of weights the header
      c = random.below(2) ? "0123456789-\"{}[],:etru\n"[random.below(22)] : static_cast<char>(random.below(256));
    }
    if (i % 9 == 0) bytes.resize(random.below(bytes.size()));
    try {
      read_hf(*files_, folder, {}, {});
    } catch (const DataError&) {
      ++refused;
    } catch (const ConfigError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 500);
}

}  // namespace
}  // namespace starling
