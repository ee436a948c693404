// Splits sentences that are too long: after clauses, at spaces, or between any two characters if there is nothing better. The parts
// together are the whole sentence, so nothing is lost.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "document/aligned_text.h"
#include "text/vocabulary.h"

namespace starling {

/// Returns where to split a text of more than `most` bytes: the best place within the first `most` bytes, but after at least one character.
size_t place_to_cut(std::string_view text, size_t most);

/// Splits a sentence into parts of at most `most` pieces of the vocabulary and at least one character each.
std::vector<std::string> parts_that_fit(std::string_view sentence, const Vocabulary& vocabulary, int64_t most);

/// Joins the translations of the parts of a sentence, with spaces between them if their scripts use spaces.
AlignedText joined_parts(std::span<const std::string> parts, std::span<const AlignedText> translations);

}  // namespace starling
