// Word alignments as fast_align, Moses and Marian write them: pairs "source-target" with spaces between them, positions from 0.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/batch.h"
#include "text/vocabulary.h"

namespace starling {

// What positions count: words, which are what stands between spaces, or the pieces of the vocabularies.
enum class AlignmentUnit : uint8_t { words, pieces };
constexpr auto words(AlignmentUnit) { return std::array{"words", "pieces"}; }

using Links = std::vector<std::pair<int32_t, int32_t>>;  // source, target

/// Returns links, or another range of pairs of positions, as a line of a file of them.
template <class Pairs>
std::string links_line(const Pairs& links) {
  std::string text;
  for (const auto& [source, target] : links) text += fmt::format("{}{}-{}", text.empty() ? "" : " ", source, target);
  return text;
}
/// Reads a line of links; throws DataError, without a place, for one that is not a pair of numbers.
Links parse_links(std::string_view line);
/// The same in gold alignments, which mark possible links: 1-2 is sure, and 1?2 or 1p2 possible (Och and Ney 2003).
struct GoldLinks {
  Links sure, possible;  // possible: without the sure ones
};
GoldLinks parse_gold_links(std::string_view line);

/// Returns for each byte of a text the number of its word; -1 for spaces.
std::vector<int64_t> word_of_bytes(std::string_view text);

// One side of a pair for token_links: its line, and its pieces without prefixes and end of sentence.
struct LinkedSide {
  std::string_view text;
  const EncodedLine& pieces;
};
// Positions of tokens, the last one included.
struct TokenRange {
  size_t first = 0, last = 0;
};
/// Returns the links of tokens that have been cut again, from those of the tokens before; the ranges say where each of these is now. The
/// last token of a side is its end; a token with another link is not linked to the source's end.
std::vector<TokenLink> moved_links(std::span<const TokenLink> links, std::span<const TokenRange> source,
                                   std::span<const TokenRange> target);

/// Returns the links between the tokens of a pair, in the order of the targets, that an alignment of its words or pieces means: those of
/// all pieces of two words that are linked. The target's end, and tokens without a link, are linked to the source's end, which stands for
/// no word; without any link in the line, nothing is. prefix: tokens in front of the source. Throws DataError, without a place, for a
/// position beyond a side.
std::vector<TokenLink> token_links(const Links& links, AlignmentUnit unit, const LinkedSide& source, const LinkedSide& target,
                                   int64_t prefix);

}  // namespace starling
