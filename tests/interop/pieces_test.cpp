// How imported models read text beyond their SentencePiece models: pieces of the other side, added tokens, typed tags of languages.
#include <gmock/gmock.h>

#include "data/tokenize.h"
#include "decode/document_parts.h"
#include "decode/framing.h"
#include "decode/translator.h"
#include "exporting/export.h"
#include "tests/interop/hf_folder.h"
#include "text/listed_pieces.h"

namespace starling {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class PiecesImport : public InteropTest {
 protected:
  static constexpr int64_t kRows = 140;  // of the fixture
  LoadedModel import(const std::string& from, const Languages& languages = {}) {
    const std::string output = fresh();
    said_ = import_text(import_model(*files_, {from, output, {}, languages}), output);
    return load(output);
  }
  HfFolder folder() { return {STARLING_SOURCE_DIR "/tests/fixtures/hf/marian", path("marian")}; }
  // Gives pieces of vocab.json other names, and returns their numbers.
  static std::vector<int32_t> renamed(const HfFolder& f, const std::vector<std::pair<std::string, std::string>>& names) {
    nlohmann::json numbers = f.json("vocab.json");
    std::vector<int32_t> ids;
    for (const auto& [from, to] : names) {
      EXPECT_TRUE(numbers.contains(from)) << from;
      ids.push_back(numbers[from].get<int32_t>());
      numbers[to] = ids.back();
      numbers.erase(from);
    }
    f.write("vocab.json", numbers.dump());
    return ids;
  }
  // The fixture with four more rows, the first of which every translation prefers.
  HfFolder with_four_rows(float bias = 6) {
    HfFolder f = folder();
    HfArrays arrays = f.arrays();
    for (auto& [name, a] : arrays) {
      if (name == "final_logits_bias") {
        a.shape[1] += 4;
        a.values.insert(a.values.end(), {bias, 0, 0, 0});
      } else if (a.shape[0] == kRows) {
        a.shape[0] += 4;
        a.values.resize(a.values.size() + 4 * static_cast<size_t>(a.shape[1]));
      }
    }
    f.store(arrays);
    for (const char* key : {"vocab_size", "decoder_vocab_size"}) f.set("config.json", key, kRows + 4);
    return f;
  }
  static std::vector<int32_t> source(const LoadedModel& m, const std::string& line) {
    const Vocabularies& v = m.description.vocabularies;
    bool cut = false;
    return source_tokens(line, v.source(), with_prefixes(m.description.search, v), 1000, cut);
  }
  static std::vector<std::string> translated(const LoadedModel& m, const std::vector<std::string>& lines, const SearchOptions& search,
                                             std::string* warning = nullptr) {
    Translator translator(*m.model, m.description.vocabularies, search);
    std::vector<std::string> texts;
    for (const auto& list : translator.translate(lines)) texts.push_back(list.front().text);
    if (warning) *warning = translator.tag_warning();
    return texts;
  }
};

std::vector<int32_t> joined(std::vector<int32_t> a, const std::vector<int32_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST_F(PiecesImport, WhatOneSideLacksIsFoundInTheList) {
  const HfFolder f = folder();
  const std::vector<int32_t> ids = renamed(f, {{"Ü", "°"}, {"ß", "日本"}});
  const LoadedModel m = import(f.path());
  const Vocabulary& v = m.description.vocabularies.source();
  EXPECT_EQ(v.encode("35 °").back(), ids[0]);
  EXPECT_EQ(v.encode("日本").back(), ids[1]);
  EXPECT_EQ(v.encode("日本語").back(), v.unk());  // one piece of SentencePiece's, which the list does not have
  EXPECT_EQ(v.encode("ß").back(), v.unk());
  EXPECT_EQ(m.description.vocabularies.target().decode(std::vector{ids[1], ids[0]}), "日本°");
}

TEST_F(PiecesImport, AddedTokens) {
  const LoadedModel plain = import(folder().path());
  const HfFolder f = with_four_rows();
  f.write("added_tokens.json", R"({"<ent>": 140, "</ent>": 141})");
  const LoadedModel m = import(f.path());
  EXPECT_EQ(source(m, "<ent>A man</ent> ."),
            joined(joined({140}, joined(plain.description.vocabularies.source().encode("A man"), {141})), source(plain, ".")));
  EXPECT_THAT(said_, HasSubstr("2 added tokens, such as </ent>, are found in text as they stand."));
  const std::string exported = fresh();
  export_model(*files_, {.model = m.description.directory, .output = exported, .to = Program::huggingface});
  EXPECT_EQ(source(import(exported), "<ent>A man</ent> ."), source(m, "<ent>A man</ent> ."));
  std::string text = translated(m, {"A man."}, m.description.search)[0];
  EXPECT_THAT(text, HasSubstr("<ent> <ent>"));
  // A special token is not written.
  f.set("tokenizer_config.json", "added_tokens_decoder",
        {{"140", {{"content", "<ent>"}, {"special", true}}}, {"141", {{"content", "</ent>"}, {"special", false}}}});
  const LoadedModel special = import(f.path());
  EXPECT_EQ(source(special, "<ent>A man</ent> ."), source(m, "<ent>A man</ent> ."));
  EXPECT_THAT(translated(special, {"A man."}, special.description.search)[0], Not(HasSubstr("<ent>")));
  EXPECT_EQ(special.description.vocabularies.target().decode(std::vector{140, 141}), "</ent>");
  // The list in tokenizer.json alone.
  f.remove("added_tokens.json");
  f.set("tokenizer_config.json", "added_tokens_decoder", nullptr);
  f.write("tokenizer.json", R"({"added_tokens": [{"id": 140, "content": "<ent>", "special": false}, {"id": 141, "content": "</ent>"}]})");
  EXPECT_EQ(source(import(f.path()), "<ent>A man</ent> ."), source(m, "<ent>A man</ent> ."));
  // Text must not end the sentence, though </s> is an added token too.
  const std::string end = std::to_string(plain.description.vocabularies.source().eos());
  f.set("tokenizer_config.json", "added_tokens_decoder", {{end, {{"content", "</s>"}, {"special", true}}}});
  EXPECT_EQ(source(import(f.path()), "A </s> man"), source(plain, "A </s> man"));
  f.write("added_tokens.json", R"({"<ent>": 144})");
  EXPECT_THAT(refusal([&] { import(f.path()); }), HasSubstr("'<ent>' has number 144, but the model has 144 tokens"));
}

TEST_F(PiecesImport, RowsWithoutAPieceAreNeverWritten) {
  const LoadedModel plain = import(folder().path()), m = import(with_four_rows().path());
  EXPECT_EQ(m.description.vocabularies.target().listed().without_piece(), (std::vector<int32_t>{140, 141, 142, 143}));
  const std::vector<std::string> lines{"A man.", "A dog is on a street."};
  const SearchOptions greedy{.beam = 1};  // more rows change what a longer beam prefers
  const std::vector<std::string> expected = translated(plain, lines, greedy);
  EXPECT_EQ(translated(m, lines, greedy), expected);
  EXPECT_THAT(expected, Not(testing::Contains("")));
}

// Files for OPUS-MT's models of several targets have the tag in front of each line.
class TypedTags : public PiecesImport {
 protected:
  HfFolder tagged() {
    HfFolder f = folder();
    ids_ = renamed(f, {{"Ü", ">>fra<<"}, {"ß", ">>por<<"}, {"ü", ">>cmn_Hans<<"}});
    f.set("tokenizer_config.json", "source_lang", "en");
    f.set("tokenizer_config.json", "target_lang", "mul");
    return f;
  }
  std::vector<int32_t> ids_;
};

TEST_F(TypedTags, AreTheTagOfTheirLine) {
  const LoadedModel m = import(tagged().path());
  EXPECT_THAT(said_, HasSubstr("tag of the target language: >>cmn_Hans<<, >>fra<<, >>por<<."));
  EXPECT_EQ(m.description.languages.target, "");
  const std::string text = "A man is on a street.";
  const auto of = [&](const std::string& language) { return into_language(m.description.search, m.description, language); };
  EXPECT_EQ(of("fr").source_prefix, ">>fra<<");
  EXPECT_EQ(of("pt-BR").source_prefix, ">>por<<");
  EXPECT_EQ(of("zh").source_prefix, ">>cmn_Hans<<");
  EXPECT_EQ(of("").source_prefix, "");
  EXPECT_THAT(refusal([&] { of("de"); }),
              HasSubstr("--target-language de: the model has no tag for it; its tags are >>cmn_Hans<<, >>fra<<"));
  std::string warning;
  const std::vector<std::string> typed =
      translated(m, {">>fra<< " + text, ">>por<<" + text, ">>cmn_Hans<< " + text}, m.description.search, &warning);
  EXPECT_EQ(warning, "");
  EXPECT_THAT(typed,
              ElementsAre(translated(m, {text}, of("fra"))[0], translated(m, {text}, of("por"))[0], translated(m, {text}, of("zh"))[0]));
  EXPECT_NE(typed[0], typed[1]);
  // A typed tag takes the place of the prefix's.
  EXPECT_EQ(translated(m, {">>por<< " + text, text}, of("fra"), &warning), (std::vector<std::string>{typed[1], typed[0]}));
  EXPECT_EQ(warning, "");
  // What is wrong or missing is told.
  translated(m, {text, ">>deu<< " + text, "", ">>fra<< " + text, text}, m.description.search, &warning);
  EXPECT_THAT(warning, HasSubstr("warning: 1 line begins with a tag that the model does not have, such as >>deu<<"));
  EXPECT_THAT(warning, HasSubstr("warning: 2 lines have no tag of the target language, which the model needs"));
  EXPECT_THAT(warning, HasSubstr("one of >>cmn_Hans<<, >>fra<<, >>por<<"));
  EXPECT_EQ(source(m, ">>deu<< A man"), joined({m.description.vocabularies.source().unk()}, source(m, "A man")));
}

TEST_F(TypedTags, HoldForScoresAlignmentsAndDocuments) {
  const LoadedModel m = import(tagged().path());
  const Vocabularies& v = m.description.vocabularies;
  SearchOptions plain = with_prefixes(m.description.search, v),
                fra = with_prefixes(into_language(m.description.search, m.description, "fra"), v);
  const std::string text = "A man is on a street.";
  EXPECT_EQ(encode_pair(v.source(), v.target(), ">>fra<< " + text, "x").source,
            encode_pair(v.source(), v.target(), text, "x", fra.source_prefix_ids).source);
  bool cut = false;
  EXPECT_EQ(source_of_pieces(">>fra<< ▁A", v.source(), plain, 9, cut), source_of_pieces("▁A", v.source(), fra, 9, cut));
  plain.alignment = fra.alignment = true;
  const auto alignment = [&](const SearchOptions& search, const std::string& line) {
    Translator translator(*m.model, v, search);
    const auto found = translator.translate(std::vector{line});
    return translator.alignment(line, found[0][0], AlignmentUnit::pieces);
  };
  EXPECT_EQ(alignment(plain, ">>fra<< " + text), alignment(fra, text));
  EXPECT_EQ(alignment(fra, ">>fra<< " + text), alignment(fra, text));
  const EncodedLine tokens = text_tokens(" >>fra<< A man", v.source());
  EXPECT_EQ(tokens.ids, v.source().encode("A man"));
  EXPECT_EQ(tokens.bytes.front().begin, 9);
  const DocumentParts parts(Document(">>fra<< A man. A dog.\nA street. A man.\n>>por<< A dog. " + text, DocumentFormat::text, "en"),
                            v.source(), 40);
  EXPECT_THAT(parts.parts(), ElementsAre(">>fra<< A man.", ">>fra<< A dog.", "A street.", "A man.", ">>por<< A dog.", ">>por<< " + text));
}

TEST_F(TypedTags, ALanguageThatIsChosenAtImport) {
  const HfFolder f = tagged();
  const LoadedModel m = import(f.path(), {"en", "por"});
  EXPECT_EQ(m.description.search.source_prefix, ">>por<<");
  EXPECT_EQ(m.description.languages, (Languages{"en", "por", {}}));
  EXPECT_THAT(said_, HasSubstr("source-prefix: >>por<<, which decode.yml has"));
  EXPECT_EQ(into_language(m.description.search, m.description, "fr").source_prefix, ">>fra<<");
  EXPECT_THAT(languages_with_tags(m.description).directions, IsEmpty());
  SearchOptions own = m.description.search;
  own.source_prefix = ">>cmn_Hans<<";
  EXPECT_THAT(refusal([&] { into_language(own, m.description, "fr"); }), HasSubstr("source-prefix '>>cmn_Hans<<' lacks >>fra<<"));
  // Without one, it serves each.
  EXPECT_THAT(languages_with_tags(import(f.path()).description).directions, ElementsAre("en:cmn-Hans", "en:fra", "en:por"));
  EXPECT_EQ(import(f.path(), {"", "de"}).description.search.source_prefix, "");
  EXPECT_THAT(said_, HasSubstr("It has no tag for de."));
}

}  // namespace
}  // namespace starling
