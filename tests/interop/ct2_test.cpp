// Directories of CTranslate2: its own lists of hypotheses, formats of numbers, packages, what is refused, damaged files.
#include "interop/ct2.h"

#include <gmock/gmock.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/random.h"
#include "decode/translator.h"
#include "exporting/export.h"
#include "tests/interop/archives.h"
#include "tests/interop/interop_test.h"

namespace starling {
namespace {

using testing::HasSubstr;

const std::string kCt2Fixtures = STARLING_SOURCE_DIR "/tests/fixtures/ct2";

class Ct2Import : public InteropTest {
 protected:
  LoadedModel import(const std::string& from, const std::string& precision = "f32") { return load(imported(from), precision); }
  // The hypotheses of all sentences, one list after another.
  static std::vector<Translation> n_best(const LoadedModel& loaded) {
    SearchOptions search = loaded.description.search;
    search.beam = search.n_best = 4;
    search.length_penalty = 0;
    Translator translator(*loaded.model, loaded.description.vocabularies, search);
    std::vector<Translation> all;
    for (const auto& list : translator.translate(lines_of(kCt2Fixtures + "/input.txt"))) all.insert(all.end(), list.begin(), list.end());
    return all;
  }
  static void expect_lists(const LoadedModel& loaded, const std::string& file, double tolerance) {
    const std::vector<Translation> found = n_best(loaded);
    size_t i = 0;
    for (const std::string& line : lines_of(file)) {
      if (line.empty()) continue;
      ASSERT_LT(i, found.size());
      EXPECT_EQ(found[i].text, line.substr(line.find('\t') + 1)) << file << " hypothesis " << i;
      EXPECT_NEAR(found[i].log_probability, std::stod(line), tolerance) << file << " hypothesis " << i;
      ++i;
    }
    EXPECT_EQ(i, found.size());
  }
};

TEST_F(Ct2Import, ListsAreCTranslate2sOwn) {
  expect_lists(import(kCt2Fixtures + "/v1-aren-transliteration-i16"), kCt2Fixtures + "/v1-aren-transliteration-i16/nbest-f32.txt", 1e-4);
  EXPECT_THAT(said_, HasSubstr("CTranslate2's model.bin (binary version 1)"));
  EXPECT_THAT(said_, HasSubstr("6+6 layers, width 32, feed-forward 128 (relu), 8 heads, pre-norm, output bias"));
  EXPECT_THAT(said_, HasSubstr("text must be tokens separated by spaces"));
  expect_lists(import(kCt2Fixtures + "/v2-aren-transliteration-i8"), kCt2Fixtures + "/v2-aren-transliteration-i8/nbest-f32.txt", 1e-4);
}

// What CTranslate2 makes of them.
TEST_F(Ct2Import, RelativePositionsAreCTranslate2s) {
  const std::string from = kCt2Fixtures + "/relative-f16";
  const LoadedModel loaded = import(from);
  EXPECT_EQ(loaded.description.config.relative_positions, 6);
  EXPECT_EQ(loaded.description.config.embedding_scale, 1);
  SearchOptions search = loaded.description.search;
  search.beam = 4, search.length_penalty = 0, search.allow_unknown = true;
  Translator translator(*loaded.model, loaded.description.vocabularies, search);
  const std::vector<std::string> expected = lines_of(from + "/expected.txt");
  const auto found = translator.translate(lines_of(from + "/input.txt"));
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    const size_t tab = expected[i].find('\t');
    EXPECT_EQ(found[i][0].text, expected[i].substr(0, tab)) << i;
    EXPECT_NEAR(found[i][0].log_probability, std::stod(expected[i].substr(tab + 1)), 1e-4) << i;
  }
}

// The best hypothesis, as int8 products are rounded elsewhere in another way.
TEST_F(Ct2Import, IntegersTranslateAlike) {
  const std::string from = kCt2Fixtures + "/v2-aren-transliteration-i8";
  const std::vector<Translation> found = n_best(import(from, "int8"));
  const std::vector<std::string> expected = lines_of(from + "/nbest-int8.txt");
  for (size_t sentence = 0, line = 0; line < expected.size(); ++sentence) {
    EXPECT_EQ(found[4 * sentence].text, expected[line].substr(expected[line].find('\t') + 1));
    while (line < expected.size() && !expected[line].empty()) ++line;
    ++line;
  }
}

// Other directories of the fixtures, where they are at hand.
TEST_F(Ct2Import, EveryDirectoryOfTheFixtures) {
  const char* const data = std::getenv("STARLING_DATA");
  const std::string all = std::string(data ? data : STARLING_SOURCE_DIR "/../shared/data") + "/../fixtures/ct2";
  if (!std::filesystem::exists(all)) GTEST_SKIP() << "the directories of CTranslate2 are not there (STARLING_DATA)";
  for (const std::string name : {"v1/aren-transliteration", "v2/aren-transliteration", "v2/aren-transliteration-i16"})
    expect_lists(import(all + "/" + name), all + "/" + name + "/nbest-f32.txt", 1e-4);
}

// A file of version 6 in the making.
class Ct2Writer {
 public:
  void array(const std::string& name, const std::vector<int64_t>& shape, int type, const std::string& bytes) {
    variables_ += name_of(name) + static_cast<char>(shape.size());
    for (const int64_t n : shape) variables_ += bytes_of(static_cast<uint64_t>(n), 4);
    variables_ += static_cast<char>(type) + bytes_of(bytes.size(), 4) + bytes;
    ++count_;
  }
  void alias(const std::string& name, const std::string& of) { aliases_ += name_of(name) + name_of(of), ++alias_count_; }
  std::string file() const {
    return bytes_of(6, 4) + name_of("TransformerSpec") + bytes_of(7, 4) + bytes_of(count_, 4) + variables_ + bytes_of(alias_count_, 4) +
           aliases_;
  }

 private:
  static std::string name_of(const std::string& text) { return bytes_of(text.size() + 1, 2) + text + '\0'; }
  std::string variables_, aliases_;
  uint64_t count_ = 0, alias_count_ = 0;
};

std::string floats(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

TEST(Ct2File, ReadsEveryTypeAndAliases) {
  Ct2Writer w;
  w.array("a", {2, 1}, 0, floats({1.5f, -2}));
  w.array("half", {3}, 4, bytes_of(0x3c00, 2) + bytes_of(0xc100, 2) + bytes_of(0x0001, 2));  // 1, -2.5, 2^-24
  w.array("brain", {1}, 5, bytes_of(0x3fc0, 2));                                             // 1.5
  w.array("flag", {}, 1, "\1");
  w.array("heads", {}, 2, bytes_of(8, 2));
  w.alias("b", "a");
  const std::string bytes = w.file();
  const Ct2File file = read_ct2(bytes, "model.bin");
  EXPECT_EQ(file.version, 6u);
  EXPECT_EQ(file.spec, "TransformerSpec");
  EXPECT_EQ(file.find("b"), file.find("a"));
  EXPECT_EQ(file.find("c"), nullptr);
  EXPECT_EQ(file.number("heads", 0), 8);
  EXPECT_EQ(file.number("flag", 0), 1);
  EXPECT_EQ(file.number("other", 3), 3);
  EXPECT_EQ(file.find("half")->type, "f2");
  EXPECT_TRUE(is_ct2(w.file()));
  EXPECT_FALSE(is_ct2("PK\3\4 and so on"));
}

// A tiny post-norm model whose types and options a test chooses.
struct TinyCt2 {
  int type = 0;                        // of the matrices
  bool biases = true;                  // of attention
  std::vector<float> positions = {};   // [rows, 8]
  std::pair<std::string, int> option;  // one more flag

  std::string file() const {
    Ct2Writer w;
    Random random(3, 3);
    const auto matrix = [&](const std::string& name, int64_t rows, int64_t columns) {
      std::string bytes;
      for (int64_t i = 0; i < rows * columns; ++i) {
        const float x = widen(round_to_bf16(static_cast<float>(0.3 * random.normal())));
        uint32_t bits;
        std::memcpy(&bits, &x, 4);
        bytes += type == 0 ? bytes_of(bits, 4) : bytes_of(bits >> 16, 2);
      }
      w.array(name, {rows, columns}, type, bytes);
    };
    const auto vector = [&](const std::string& name, int64_t n, float value) {
      w.array(name, {n}, 0, floats(std::vector<float>(static_cast<size_t>(n), value)));
    };
    const auto layer = [&](const std::string& name, int64_t out, int64_t in, bool bias) {
      matrix(name + "/weight", out, in);
      if (bias) vector(name + "/bias", out, 0);
    };
    const auto norm = [&](const std::string& name) { vector(name + "/layer_norm/gamma", 8, 1), vector(name + "/layer_norm/beta", 8, 0); };
    for (const std::string side : {"encoder", "decoder"}) {
      w.array(side + "/num_heads", {}, 2, bytes_of(2, 2));
      w.array(side + "/pre_norm", {}, 1, std::string(1, '\0'));
      w.array(side + "/activation", {}, 1, "\2");
      const std::string l = side + "/layer_0";
      layer(l + "/self_attention/linear_0", 24, 8, biases), layer(l + "/self_attention/linear_1", 8, 8, biases);
      norm(l + "/self_attention");
      if (side == "decoder") {
        layer(l + "/attention/linear_0", 8, 8, biases), layer(l + "/attention/linear_1", 16, 8, biases);
        layer(l + "/attention/linear_2", 8, 8, biases), norm(l + "/attention");
      }
      layer(l + "/ffn/linear_0", 16, 8, true), layer(l + "/ffn/linear_1", 8, 16, true), norm(l + "/ffn");
      if (!positions.empty())
        w.array(side + "/position_encodings/encodings", {static_cast<int64_t>(positions.size()) / 8, 8}, 0, floats(positions));
    }
    matrix("decoder/embeddings/weight", 6, 8);
    w.alias("encoder/embeddings_0/weight", "decoder/embeddings/weight");
    w.alias("decoder/projection/weight", "decoder/embeddings/weight");
    if (!option.first.empty()) w.array(option.first, {}, 1, std::string(1, static_cast<char>(option.second)));
    return w.file();
  }
};

class TinyCt2Import : public Ct2Import {
 protected:
  LoadedModel make(const TinyCt2& model, const std::string& config = "{\"add_source_eos\": true, \"layer_norm_epsilon\": 1e-6}") {
    const std::string folder = path("ct2");
    std::filesystem::create_directories(folder);
    files_->write_file(folder + "/model.bin", model.file());
    std::filesystem::remove(folder + "/config.json");  // which older directories do not have
    if (!config.empty()) files_->write_file(folder + "/config.json", config);
    files_->write_file(folder + "/shared_vocabulary.json", R"(["<unk>", "<s>", "</s>", "a", "b", "c"])");
    return import(folder);
  }
  // Directories of models that were written.
  int64_t outputs() const {
    int64_t n = 0;
    for (const auto& entry : std::filesystem::directory_iterator(directory_)) n += entry.path().filename().string().starts_with("output");
    return n;
  }
  std::string why_not(const TinyCt2& model, const std::string& config = "{}") {
    return refusal([&] { make(model, config); });
  }
};

TEST_F(TinyCt2Import, SettingsOfToday) {
  const LoadedModel m = make({});
  const ModelConfig& c = m.description.config;
  EXPECT_EQ(c.norm, NormPlace::post);
  EXPECT_EQ(c.activation, Activation::swish);
  EXPECT_EQ(c.heads, 2);
  EXPECT_EQ(c.tied_embeddings, TiedEmbeddings::all);
  EXPECT_FALSE(c.output_bias);
  EXPECT_TRUE(c.source_end);
  EXPECT_EQ(c.norm_epsilon, 1e-6);
  EXPECT_EQ(c.first_position, 1);
  EXPECT_EQ(m.description.vocabularies.source().encode("b c d"), (std::vector<int32_t>{4, 5, 0}));
  EXPECT_FALSE(make({}, "{}").description.config.source_end);
  EXPECT_TRUE(make({.option = {"decoder/start_from_zero_embedding", 1}}, "{}").description.config.source_end)
      << "of transformers' MarianMT, whose tokenizer gives it";
  EXPECT_EQ(make({}, R"({"add_source_bos": true})").description.search.source_prefix, "<s>");
  EXPECT_EQ(make({}, R"({"decoder_start_token": "</s>"})").description.config.decoder_start, DecoderStart::end);
  EXPECT_EQ(make({.option = {"with_target_bos", 0}}, "").description.config.decoder_start, DecoderStart::end);
  EXPECT_EQ(make({.option = {"with_target_bos", 1}}, "").description.config.decoder_start, DecoderStart::token);
  EXPECT_EQ(make({.option = {"with_source_eos", 1}}, "").description.config.source_end, true);
  EXPECT_EQ(make({.option = {"encoder/scale_embeddings", 1}}).description.config.embedding_scale, 0);
  EXPECT_EQ(make({.option = {"decoder/start_from_zero_embedding", 1}}).description.config.decoder_start, DecoderStart::zero);
  EXPECT_EQ(std::pair(c.alignment_layer, c.alignment_head), std::pair(c.decoder_layers, int64_t{1})) << "its default";
  EXPECT_EQ(make({.option = {"decoder/alignment_heads", 0}}).description.config.alignment_head, 0);
  EXPECT_EQ(make({.option = {"decoder/alignment_layer", 0}}).description.config.alignment_layer, 1);
}

TEST_F(TinyCt2Import, BrainFloatsAndMissingBiasesAreTheSameModel) {
  const auto values = [&](const TinyCt2& model) { return make(model).model->parameters().values().to_doubles(); };
  const std::vector<double> plain = values({});
  EXPECT_EQ(values({.type = 5}), plain);
  EXPECT_EQ(values({.biases = false}), plain);  // whose biases are zeros
}

// A table with our sinusoids is none; another one is kept, and sentences beyond it are cut.
TEST_F(TinyCt2Import, TablesOfPositions) {
  std::vector<float> sinusoids, other;
  for (int p = 0; p < 20; ++p)
    for (int c = 0; c < 8; ++c) {
      const double angle = (p + 2) * std::pow(10000.0, -(c % 4) / 3.0);
      sinusoids.push_back(static_cast<float>(c < 4 ? std::sin(angle) : std::cos(angle)));
      other.push_back(static_cast<float>(0.01 * (p * 8 + c)));
    }
  const LoadedModel computed = make({.positions = sinusoids});
  EXPECT_EQ(computed.description.config.position_table, 0);
  EXPECT_EQ(computed.description.config.first_position, 2);
  const LoadedModel stored = make({.positions = other});
  EXPECT_EQ(stored.description.config.position_table, 20);
  Translator translator(*stored.model, stored.description.vocabularies, stored.description.search);
  std::string line = "a";
  for (int i = 0; i < 40; ++i) line += " b";
  const auto translated = translator.translate(std::vector{line});
  EXPECT_EQ(translator.truncated(), 1);
  EXPECT_LE(translated[0][0].tokens, 20);
  // Prefixes must leave room for text.
  SearchOptions search = stored.description.search;
  for (int i = 0; i < 18; ++i) search.source_prefix += "▁a ";
  EXPECT_EQ(Translator(*stored.model, stored.description.vocabularies, search).translate(std::vector{line}).size(), 1u);
  search.source_prefix += "▁a";
  EXPECT_THAT(refusal([&] { Translator(*stored.model, stored.description.vocabularies, search); }),
              HasSubstr("source-prefix: 19 pieces leave no room in the 20 tokens"));
  // A model of ours may begin with a later row, CTranslate2 begins with the first.
  change(stored.description.directory + "/config.yml", "first-position: 0", "first-position: 2");
  const std::string exported = fresh();
  export_model(*files_, {stored.description.directory, exported, Program::ctranslate2, false, {}});
  const std::string bytes = files_->read_file(exported + "/model.bin");
  const Ct2File file = read_ct2(bytes, "");
  EXPECT_EQ(elements_of<float>(file.find("decoder/position_encodings/encodings")->bytes),
            std::vector<float>(other.begin() + 16, other.end()));
}

TEST_F(TinyCt2Import, RefusesByName) {
  EXPECT_THAT(why_not({.option = {"encoder/alibi", 1}}), HasSubstr("encoder/alibi, which Starling's models do not have"));
  EXPECT_EQ(why_not({.option = {"encoder/alibi", 0}}), "");
  EXPECT_THAT(why_not({}, R"({"layer_norm_epsilon": 0.5})"), HasSubstr("cannot be imported"));
  EXPECT_EQ(outputs(), 1);  // that of the option which is off
  EXPECT_THAT(why_not({}, R"({"decoder_start_token": "a"})"), HasSubstr("the decoder begins with a"));
  EXPECT_THAT(why_not({}, "{"), HasSubstr("config.json: is not JSON"));
}

// Weights that have no elements, or other dimensions than weights have.
TEST(Ct2Tensors, ShapesThatWeightsDoNotHave) {
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{512, 512, 0}, {2, 3, 4}, {}, {0, 8}}) {
    Ct2Writer w;
    int64_t count = 1;
    for (const int64_t n : shape) count *= n;
    w.array("decoder/embeddings/weight", shape, 0, std::string(static_cast<size_t>(4 * count), '\0'));
    const std::string bytes = w.file();
    EXPECT_THROW(ct2_config(read_ct2(bytes, "model.bin"), "model.bin"), DataError);
  }
}

TEST_F(TinyCt2Import, MutationsAreReadOrRefused) {
  const std::string whole = TinyCt2{}.file();
  Random random(5, 5);
  int refused = 0;
  for (int i = 0; i < 1000; ++i) {
    std::string bytes = whole;
    for (int k = 0; k < 1 + i % 4; ++k) bytes[random.below(i % 2 ? bytes.size() : 600)] = static_cast<char>(random.below(256));
    if (i % 9 == 0) bytes.resize(random.below(bytes.size()));
    try {
      const Ct2File file = read_ct2(bytes, "model.bin");
      const ModelConfig config = ct2_config(file, "model.bin");
      ByteBudget budget(bytes.size());
      ct2_tensors(file, config, "model.bin", budget);
    } catch (const DataError&) {
      ++refused;
    } catch (const ConfigError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 300);
}

// A package as Argos Translate and LibreTranslate install it.
TEST_F(TinyCt2Import, ArgosPackages) {
  const std::string spm = files_->read_file(STARLING_SOURCE_DIR "/tests/fixtures/marian/v.spm");
  const auto package = [&](const std::string& metadata) {
    return zip_of({{"translate-ar_en-1_9/metadata.json", metadata},
                   {"translate-ar_en-1_9/model/model.bin", TinyCt2{}.file()},
                   {"translate-ar_en-1_9/model/shared_vocabulary.json", R"(["<unk>", "<blank>", "</s>", "▁ein", "▁Mann", "."])"},
                   {"translate-ar_en-1_9/model/config.json", R"({"bos_token": "</s>", "add_source_eos": false})"},
                   {"translate-ar_en-1_9/sentencepiece.model", spm},
                   {"translate-ar_en-1_9/README.md", "from OPUS"}},
                  true);
  };
  files_->write_file(path("ar_en.argosmodel"), package(R"({"from_code": "ar", "to_code": "en", "package_version": "1.9"})"));
  const LoadedModel m = import(path("ar_en.argosmodel"));
  EXPECT_EQ(m.description.languages, (Languages{"ar", "en"}));
  EXPECT_THAT(said_, HasSubstr("Argos package ar to en, version 1.9"));
  EXPECT_EQ(m.description.vocabularies.source().encode("ein Mann."), (std::vector<int32_t>{3, 4, 5}));
  EXPECT_EQ(m.description.search.length_penalty, 0.2);
  files_->write_file(path("b.argosmodel"), package(R"({"from_code": "ar", "to_code": "en", "target_prefix": "▁ein"})"));
  EXPECT_EQ(import(path("b.argosmodel")).description.search.target_prefix, "▁ein");
}

// An older package, whose text sacremoses and subword-nmt split.
TEST_F(TinyCt2Import, ArgosPackagesOfSubwordNmt) {
  std::vector<std::pair<std::string, std::string>> files{
      {"translate-fr_en-1_0/metadata.json", R"({"from_code": "fr", "to_code": "en", "package_version": "1.0"})"},
      {"translate-fr_en-1_0/model/model.bin", TinyCt2{}.file()},
      {"translate-fr_en-1_0/model/shared_vocabulary.txt", "<unk>\n<blank>\n</s>\nhom@@\nme\n&apos;s\n"},
      {"translate-fr_en-1_0/model/config.json", R"({"bos_token": "</s>", "add_source_eos": false})"},
      {"translate-fr_en-1_0/bpe.model", "#version: 0.2\nm e</w>\nh o\nho m\n&apos; s</w>\n"}};
  files_->write_file(path("fr_en.argosmodel"), zip_of(files, true));
  const LoadedModel m = import(path("fr_en.argosmodel"));
  EXPECT_EQ(m.description.languages, (Languages{"fr", "en"}));
  EXPECT_THAT(said_, HasSubstr("Text is split as sacremoses and subword-nmt do it (language fr)."));
  const Vocabularies& v = m.description.vocabularies;
  EXPECT_FALSE(v.joint());  // the languages have rules of their own
  const std::vector<int32_t> ids{3, 4, 0, 0, 0, 0, 0, 0, 0, 4, 0};
  EXPECT_EQ(v.source().encode("homme d'me."), ids);
  EXPECT_THAT(v.source().pieces("homme d'me."),
              testing::ElementsAre("hom@@", "me", "d@@", "&@@", "a@@", "p@@", "o@@", "s@@", ";", "me", "."));
  EXPECT_EQ(v.target().decode(std::vector<int32_t>{3, 4, 5, 4, 2}), "homme's me");
  EXPECT_EQ(v.target().decode(std::vector<int32_t>{3}), "hom");  // the beginning of a word
  EXPECT_EQ(v.source().token(3), "hom@@");
  EXPECT_EQ(v.source().token_id("&apos;s"), 5);
  EXPECT_EQ(Vocabulary::from_bytes(v.source().bytes()).hash(), v.source().hash());

  files.back().second = "#version: 0.2\nm e</w>\nhom\n";
  files_->write_file(path("broken.argosmodel"), zip_of(files, true));
  EXPECT_THAT(refusal([&] { import(path("broken.argosmodel")); }), HasSubstr("bpe.model:3: 'hom' is not a pair of pieces"));
}

}  // namespace
}  // namespace starling
