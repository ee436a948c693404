#include "interop/vocabulary_files.h"

namespace starling {

Vocabulary numbered_vocabulary(const ForeignFile& model, const vocabulary_format::Listing& listing) {
  if (const auto why = vocabulary_format::defect(model.content))
    throw DataError(fmt::format("{}: not a SentencePiece model ({})", model.where, *why));
  return Vocabulary::from_bytes(vocabulary_format::renumbered(model.content, listing, model.where), model.where);
}

}  // namespace starling
