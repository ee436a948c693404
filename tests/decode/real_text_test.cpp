// Sentences as people write them, through a model and back: with placeholders anywhere no word of what the model wrote is missing, and
// characters that are not seen and decomposed letters change nothing. The model is the tiny one of the fixtures; another one and more text
// are taken with STARLING_TEST_MODEL=run/best STARLING_TEST_SOURCE=text.en in the environment.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "base/random.h"
#include "base/utf8.h"
#include "decode/document_parts.h"
#include "decode/translator.h"
#include "text/composition.h"
#include "text/unicode.h"

namespace starling {
namespace {

class RealText : public testing::Test {
 protected:
  RealText() {
    const char* const model = std::getenv("STARLING_TEST_MODEL");
    const char* const source = std::getenv("STARLING_TEST_SOURCE");
    loaded_.emplace(load_model(*files_, model ? model : STARLING_SOURCE_DIR "/tests/fixtures/models/pre/model", {"f32", 1}));
    const std::string fixtures = STARLING_SOURCE_DIR "/tests/fixtures/models";
    for (const std::string& path :
         source ? std::vector<std::string>{source} : std::vector{fixtures + "/source.en", fixtures + "/target.de"}) {
      std::ifstream in(path);
      for (std::string line; lines_.size() < 1000 && std::getline(in, line);)
        if (sentences_of(line) == 1 && line[0] != '#') lines_.push_back(line);  // no bullet
    }
    EXPECT_GE(lines_.size(), source ? 1000u : 10u);
  }
  const Vocabularies& vocabularies() const { return loaded_->description.vocabularies; }
  size_t sentences_of(const std::string& text) const { return Document(text, DocumentFormat::text, "").sentences().size(); }

  struct Result {
    std::string model, document;  // what the model wrote of the sentence, and what became of that
  };
  // Each text a document of one sentence.
  std::vector<Result> translate(const std::vector<std::string>& texts) const {
    std::vector<DocumentParts> documents;
    std::vector<std::string> parts;
    for (const std::string& text : texts) {
      documents.emplace_back(Document(text, DocumentFormat::text, ""), vocabularies().source(), 200);
      EXPECT_EQ(documents.back().parts().size(), 1u) << text;
      parts.push_back(documents.back().parts().at(0));
    }
    SearchOptions search = loaded_->description.search;
    search.alignment = true;
    Translator translator(*loaded_->model, vocabularies(), search);
    std::vector<Result> results;
    for (auto& best : translator.translate(parts)) {
      const DocumentParts& document = documents[results.size()];
      const PartTranslation part{best.front().text, best.front().hypothesis};
      const std::string whole = document.assemble(std::vector{part}, vocabularies().source(), vocabularies().target());
      results.push_back({part.text, std::string(without_trailing_space(whole))});
    }
    return results;
  }

  std::unique_ptr<FileSystem> files_ = real_file_system();
  std::optional<LoadedModel> loaded_;
  std::vector<std::string> lines_;
};

// Runs of letters and digits.
std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  bool in_word = false;
  for (const char32_t c : decode_utf8(text)) {
    const bool letter =
        !is_unicode_space(c) && c > ' ' && (character_class(c) == CharacterClass::other || character_class(c) == CharacterClass::number);
    if (letter && !in_word) words.emplace_back();
    if (letter) append_utf8(words.back(), c);
    in_word = letter;
  }
  return words;
}

TEST_F(RealText, PlaceholdersTakeNoWordWithThem) {
  const auto clean = translate(lines_);
  Random random(40, 2);
  for (const std::string& placeholder : std::vector<std::string>{"😆", "1️⃣", "@anna", "#fun", "%s", "https://example.org/x"}) {
    SCOPED_TRACE(placeholder);
    std::vector<std::string> front, middle, end;
    std::string text;
    for (const std::string& line : lines_) {
      front.push_back(placeholder + " " + line);
      const std::string_view bare = without_trailing_space(line);
      end.push_back(bare.ends_with(".") ? std::string(bare.substr(0, bare.size() - 1)) + " " + placeholder + "."
                                        : std::string(bare) + " " + placeholder);
      do {  // where it does not make two sentences of one
        auto words = split_on_space(bare);
        words.insert(words.begin() + 1 + static_cast<ptrdiff_t>(random.below(std::max<size_t>(1, words.size() - 1))), placeholder);
        text.clear();
        for (const std::string_view word : words) text += (text.empty() ? "" : " ") + std::string(word);
      } while (sentences_of(text) != 1);
      middle.push_back(text);
    }
    const auto in_front = translate(front), at_end = translate(end), within = translate(middle);
    for (size_t i = 0; i < lines_.size(); ++i) {
      SCOPED_TRACE(lines_[i]);
      EXPECT_EQ(in_front[i].document, placeholder + " " + clean[i].document);
      std::string rest = at_end[i].document;
      ASSERT_NE(rest.find(" " + placeholder), std::string::npos) << rest;
      rest.erase(rest.find(" " + placeholder), placeholder.size() + 1);
      EXPECT_EQ(rest, clean[i].document);
      // Words of what the model wrote, but those that are spelled like the placeholder, and the unknown symbols.
      std::vector<std::string> wrote = words_of(within[i].model), there = words_of(within[i].document);
      const auto like = [&](const std::string& word) { return to_lower_utf8(placeholder).find(to_lower_utf8(word)) != std::string::npos; };
      std::erase_if(wrote, like);
      std::erase_if(there, like);
      EXPECT_EQ(there, wrote) << middle[i] << "\n" << within[i].model << "\n" << within[i].document;
      EXPECT_NE(within[i].document.find(placeholder), std::string::npos) << within[i].document;
    }
  }
}

TEST_F(RealText, InvisibleCharactersAndDecomposedLettersChangeNothing) {
  const auto clean = translate(lines_);
  const char* const invisible[] = {"\u00AD", "\u200B", "\u200C", "\u200E", "\u200F", "\u2060",
                                   "\u061C", "\u034F", "\u202A", "\u202E", "\uFE0F"};
  Random random(40, 3);
  std::vector<std::string> dirty, decomposed;
  for (const std::string& line : lines_) {
    dirty.emplace_back();
    const std::u32string text = decode_utf8(line);
    for (size_t i = 0; i < text.size(); ++i) {
      const bool within =
          i > 0 && character_class(text[i]) == CharacterClass::other && !is_unicode_space(text[i]) && !is_unicode_space(text[i - 1]);
      if (within && random.below(5) == 0) dirty.back() += invisible[random.below(std::size(invisible))];
      append_utf8(dirty.back(), text[i]);
    }
    decomposed.emplace_back();
    for (const char32_t c : text) {  // by one of the marks that are there, if it makes the letter
      std::u32string letters{c};
      for (char32_t base = 'A'; base <= 'z'; ++base)
        for (const char32_t mark : {0x300, 0x301, 0x302, 0x303, 0x308, 0x30A, 0x327})
          if (composed(encode_utf8(std::u32string{base, mark})) == encode_utf8(std::u32string{c})) letters = {base, mark};
      decomposed.back() += encode_utf8(letters);
    }
  }
  const auto of_dirty = translate(dirty), of_decomposed = translate(decomposed);
  for (size_t i = 0; i < lines_.size(); ++i) {
    EXPECT_EQ(of_dirty[i].document, clean[i].document) << dirty[i];
    EXPECT_EQ(of_decomposed[i].document, clean[i].document) << decomposed[i];
  }
}

}  // namespace
}  // namespace starling
