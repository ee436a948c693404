#include "interop/vocabulary_files.h"

#include <algorithm>

#include "text/vocabulary_budget.h"

namespace starling {
namespace {

// Throws unless the bytes may be given to SentencePiece, and it would not take too much for them.
void require_usable(const ForeignFile& model, size_t further, ByteBudget& budget) {
  if (const auto why = vocabulary_format::defect(model.content))
    throw DataError(fmt::format("{}: not a SentencePiece model ({})", model.where, *why));
  const auto pieces = static_cast<int64_t>(further) + vocabulary_format::part_count(model.content);
  if (pieces > kMostPieces) throw DataError(fmt::format("{}: has {} pieces, more than {}", model.where, pieces, kMostPieces));
  charge_vocabulary(budget, model.content, further, model.where);
}

}  // namespace

Vocabulary usual_vocabulary(ForeignFile model, ByteBudget& budget) {
  require_usable(model, 0, budget);
  return Vocabulary::from_bytes(std::move(model.content), model.where);
}

Vocabulary numbered_vocabulary(const ForeignFile& model, const vocabulary_format::Listing& listing, ByteBudget& budget) {
  require_usable(model, listing.pieces.size(), budget);
  return Vocabulary::from_bytes(vocabulary_format::renumbered(model.content, listing, model.where), model.where);
}

std::vector<std::string> pieces_in_lines(const std::string& text, const std::string& where, ByteBudget& budget) {
  std::vector<std::string> pieces;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size()), size = end - begin;
    if (pieces.size() == kMostPieces) throw DataError(fmt::format("{}: has more than {} pieces", where, kMostPieces));
    budget.take(kPieceBytes + (size > kShortPiece ? size + 16 : 0), where, "the list of its pieces");
    pieces.push_back(text.substr(begin, size));
    if (pieces.back().ends_with('\r')) pieces.back().pop_back();
    begin = end + 1;
  }
  return pieces;
}

}  // namespace starling
