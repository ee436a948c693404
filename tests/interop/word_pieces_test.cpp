// Models whose text Moses's tokenizer and subword-nmt split, from the package to the translation and back.
#include <gmock/gmock.h>

#include <filesystem>

#include "decode/translator.h"
#include "exporting/export.h"
#include "tests/interop/interop_test.h"

namespace starling {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

const std::string kTransliteration = STARLING_SOURCE_DIR "/tests/fixtures/ct2/v2-aren-transliteration-i8";

class WordPieceModels : public InteropTest {
 protected:
  // CTranslate2's model of letters as a package of words that are letters.
  std::string package(const std::string& metadata) {
    fs::create_directories(path("p/model"));
    for (const char* name : {"model.bin", "source_vocabulary.txt", "target_vocabulary.txt"})
      fs::copy(kTransliteration + "/" + name, path("p/model/") + name, fs::copy_options::overwrite_existing);
    files_->write_file(path("p/bpe.model"), "#version: 0.2\n");
    files_->write_file(path("p/metadata.json"), metadata);
    return path("p");
  }
  std::vector<std::string> translated(const std::string& model, const std::vector<std::string>& lines) {
    const LoadedModel loaded = load(model);
    SearchOptions search = loaded.description.search;
    search.length_penalty = 0;
    Translator translator(*loaded.model, loaded.description.vocabularies, search);
    std::vector<std::string> texts;
    for (const auto& list : translator.translate(lines)) texts.push_back(list[0].text);
    return texts;
  }
};

TEST_F(WordPieceModels, TranslateAsTheirProgramAndGoBack) {
  const std::string model = imported(package(R"({"from_code": "ar", "to_code": "en"})"));
  const std::vector<std::string> lines = lines_of(STARLING_SOURCE_DIR "/tests/fixtures/ct2/input.txt");
  std::vector<std::string> expected;
  bool first = true;
  for (const std::string& line : lines_of(kTransliteration + "/nbest-f32.txt")) {
    if (first && !line.empty()) expected.push_back(line.substr(line.find('\t') + 1));
    first = line.empty();
  }
  EXPECT_EQ(translated(model, lines), expected);
  const std::string bytes = load(model).description.vocabularies.source().bytes();
  for (const Program to : {Program::argos, Program::ctranslate2}) {
    const std::string output = fresh() + (to == Program::argos ? ".argosmodel" : "");
    export_model(*files_, {model, output, to, false, {}});
    const std::string again = fresh();
    import_model(*files_, {output, again, {}, {.source = "ar", .target = "en"}});
    EXPECT_EQ(load(again).description.vocabularies.source().bytes() == bytes, true) << word(to);
    EXPECT_EQ(translated(again, lines), expected);
  }
  for (const Program to : {Program::marian, Program::bergamot, Program::huggingface})
    EXPECT_THAT(refusal([&] {
                  export_model(*files_, {model, fresh(), to, false, {}});
                }),
                HasSubstr("the vocabulary is one of Moses and subword-nmt"));
}

TEST_F(WordPieceModels, TranslationsHaveTheTermsOfAGlossary) {
  const LoadedModel loaded = load(imported(package(R"({"from_code": "ar", "to_code": "en"})")));
  Translator translator(*loaded.model, loaded.description.vocabularies, loaded.description.search);
  translator.set_glossary(Glossary::parse("م\tb\nت\tt\n", "glossary"));
  const std::string text = " " + translator.translate(std::vector<std::string>{"آ ت ز م و ن"})[0][0].text + " ";
  EXPECT_THAT(text, HasSubstr(" b "));
  EXPECT_THAT(text, HasSubstr(" t "));
  EXPECT_EQ(translator.missing_terms(), 0);
}

TEST_F(WordPieceModels, ListsOfAbbreviationsBesideThem) {
  const std::string from = package(R"({"from_code": "en", "to_code": "de"})");
  const auto pieces = [&](const std::string& text) {
    return fmt::format("{}", fmt::join(load(imported(from)).description.vocabularies.source().pieces(text), " "));
  };
  EXPECT_EQ(pieces("I. A x. A"), "I@@ . A x . A");
  files_->write_file(from + "/nonbreaking_prefix.en", "x\n");
  EXPECT_EQ(pieces("I. A x. A"), "I . A x@@ . A");
  EXPECT_THAT(said_, HasSubstr("language en, with its list of abbreviations"));
}

TEST_F(WordPieceModels, PackagesOfTwoCodesAreNoArgosPackages) {
  const std::string model = imported(package("{}"));  // no languages: text is words, which no package can say
  EXPECT_THAT(said_, HasSubstr("nothing says how text becomes words"));
  EXPECT_THAT(refusal([&] {
                export_model(*files_, {model, fresh(), Program::argos, false, {"en", "de"}});
              }),
              HasSubstr("an Argos package needs a SentencePiece model, or the same codes of subword-nmt for both sides"));
}

TEST_F(WordPieceModels, VocabulariesOfOtherModelsAreNoticed) {
  const std::string fixtures = STARLING_SOURCE_DIR "/tests/fixtures";
  const auto why = [&](const std::string& from, const VocabularyFiles& given) { return refusal([&] { imported(from, given); }); };
  const std::string spm = fixtures + "/marian/v.spm", list = fixtures + "/hf/marian/vocab.json";
  EXPECT_THAT(why(fixtures + "/ct2/relative-f16", {.source = spm}), HasSubstr("it has only 0 of the network's 100 pieces of text"));
  files_->write_file(path("codes"), "#version: 0.2\na b\nab c</w>\nb c</w>\n");
  EXPECT_THAT(why(fixtures + "/ct2/relative-f16", {.source = path("codes")}),
              HasSubstr("its merges make only 0 of the network's 100 pieces"));
  for (const char* model : {"/ct2/relative-f16", "/hf/marian"})
    EXPECT_THAT(why(fixtures + model, {.source_numbers = list}), HasSubstr("--numbers is for Marian models"));
}

}  // namespace
}  // namespace starling
