// What stands around the text of a sentence in the input and the output of a model: prefixes that say, for example, into which language a
// model of many languages is to translate, and ends of sentences.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "decode/model_directory.h"

namespace starling {

// Returns the options with the numbers of the pieces of prefixes and of what is suppressed. Throws ConfigError naming a piece that the
// vocabulary does not have, or if the end of sentence is to be suppressed.
SearchOptions with_prefixes(SearchOptions options, const Vocabularies& vocabularies);

// Returns the options to translate into a language with a model that has several: with the language's tag as source prefix. Without a
// language, a source prefix must be there. Throws ConfigError for a language that the model does not have.
SearchOptions into_language(SearchOptions options, const Languages& model, const std::string& target);

// Throws ConfigError if the prefixes leave no room for text in the most tokens that a model's sentences may have.
void require_room(const SearchOptions& options, const ModelConfig& config);

// Returns what the model reads for a line: the source prefix, at most `most` tokens of the text (at least one), the end of sentence;
// nothing for a blank line. The options must be those of with_prefixes(). Sets `cut` if the text has more tokens.
std::vector<int32_t> source_tokens(std::string_view text, const Vocabulary& source, const SearchOptions& options, int64_t most, bool& cut);

// The same for a line of pieces with spaces between them; what the vocabulary does not have is unknown to the model. An end of sentence may
// be among them as the last one.
std::vector<int32_t> source_of_pieces(std::string_view pieces, const Vocabulary& source, const SearchOptions& options, int64_t most,
                                      bool& cut);

}  // namespace starling
