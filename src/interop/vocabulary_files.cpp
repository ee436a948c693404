#include "interop/vocabulary_files.h"

#include "text/vocabulary_format.h"

namespace starling {

Vocabulary numbered_vocabulary(const ForeignFile& model, std::span<const std::string> pieces, bool written) {
  if (const auto why = vocabulary_format::defect(model.content))
    throw DataError(fmt::format("{}: not a SentencePiece model ({})", model.where, *why));
  return Vocabulary::from_bytes(vocabulary_format::renumbered(model.content, pieces, written, model.where), model.where);
}

}  // namespace starling
