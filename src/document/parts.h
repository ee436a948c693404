// Sentences that are too long, in parts that are not: cut behind clauses, at spaces, or anywhere between characters if there is nothing
// better. Together the parts are the sentence, so that nothing of it is lost.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "document/aligned_text.h"
#include "text/vocabulary.h"

namespace starling {

/// Where to cut a text of more than `most` bytes: the best place at most there, at least one character.
size_t place_to_cut(std::string_view text, size_t most);

/// A sentence in parts of at most `most` pieces of the vocabulary each, at least one character each.
std::vector<std::string> parts_that_fit(std::string_view sentence, const Vocabulary& vocabulary, int64_t most);

/// One translation from those of the parts of a sentence, with a space between them where their scripts have spaces.
AlignedText joined_parts(std::span<const std::string> parts, std::span<const AlignedText> translations);

}  // namespace starling
