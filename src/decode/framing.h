// What stands around the text of a sentence in the input and the output of a model: prefixes that say, for example, into which language a
// model of many languages is to translate, and ends of sentences.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "decode/model_directory.h"

namespace starling {

// Returns the options with the numbers of the pieces of prefixes and of what is suppressed. Throws ConfigError naming a piece that the
// vocabulary does not have, or if the end of sentence is to be suppressed.
SearchOptions with_prefixes(SearchOptions options, const Vocabularies& vocabularies);

// Returns the tags of languages that may be typed in front of a source: those of the target's language, such as >>fra<<, or, if there are
// none, those of the source's.
std::vector<std::string> typed_tags(const Vocabulary& source);

// Returns the languages of a model, with a direction into each language that its source vocabulary has a typed tag for, if the model says
// the source's language, but neither the target's nor directions.
Languages languages_with_tags(const ModelDescription& model);

// Returns the piece by which an imported model is told to translate into a language: >>fra<< in front of the source, or fra_Latn or __fr__
// in front of the translation; "" if there is none.
std::string target_tag(const ModelDescription& model, const std::string& language);

// Returns the options to translate into a language with a model that has several: with the language's tag as source prefix (or target
// prefix). Without a language, a source prefix must be there, unless tags are typed into the text. Throws ConfigError for a language that
// the model does not have.
SearchOptions into_language(SearchOptions options, const ModelDescription& model, const std::string& target);

// Throws ConfigError if the prefixes leave no room for text in the most tokens that a model's sentences may have.
void require_room(const SearchOptions& options, const ModelConfig& config);

// Returns what the model reads for a line: the source prefix, at most `most` tokens of the text (at least one), the end of sentence;
// nothing for a blank line. A tag that is typed in front of the text (Vocabulary::take_tag) takes the place of the prefix's, or follows the
// prefix. The options must be those of with_prefixes(). Sets `cut` if the text has more tokens.
std::vector<int32_t> source_tokens(std::string_view text, const Vocabulary& source, const SearchOptions& options, int64_t most, bool& cut);

// The same for a line of pieces with spaces between them; what the vocabulary does not have is unknown to the model. An end of sentence may
// be among them as the last one.
std::vector<int32_t> source_of_pieces(std::string_view pieces, const Vocabulary& source, const SearchOptions& options, int64_t most,
                                      bool& cut);

// Returns the tokens of a line's text with their bytes in the line, without a typed tag of the model's: what alignments count.
EncodedLine text_tokens(std::string_view line, const Vocabulary& source);
// Returns the options for one source: their prefix is as long as the one that it begins with.
SearchOptions options_for(std::span<const int32_t> source_tokens, const Vocabulary& source, SearchOptions options);

// Counts lines whose tag of the target language is not one of the model's, or is missing though the model needs one. For models with tags
// such as >>fra<< that are typed.
class TagCheck {
 public:
  // The options must be those of with_prefixes().
  TagCheck(const Vocabulary& source, const SearchOptions& options);
  void see(std::string_view line);
  // Returns whether each line must bring its tag.
  bool needs_tags() const { return !tags_.empty() && !given_; }
  // Returns a warning with the counts and an example, sentences that end with line breaks; "" if there is none.
  std::string warning() const;

 private:
  const Vocabulary* source_;
  std::vector<std::string> tags_;
  bool given_ = false;  // the prefix has a tag
  int64_t wrong_ = 0, missing_ = 0;
  std::string example_;
};

// Notices text where pieces of a vocabulary are expected.
class PieceCheck {
 public:
  // Takes a line and what source_of_pieces() made of it.
  void see(std::string_view line, std::span<const int32_t> ids, const Vocabulary& vocabulary);
  // Returns a warning, a sentence that ends with a line break, if no line had the mark of a word and most pieces are unknown; else "".
  std::string warning(const std::string& option) const;

 private:
  bool marked_ = false;
  int64_t pieces_ = 0, unknown_ = 0;
};

}  // namespace starling
