// Reads what Starling must know of a SentencePiece model's bytes (a protocol buffer): where our checksum is, what the vocabulary was
// trained with, and whether the normalisation table is safe to walk. A small wire-format reader avoids a dependency on protobuf, which
// SentencePiece does not expose.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace starling::vocabulary_format {

/// FNV-1a, 64 bits.
uint64_t hash(std::string_view bytes);

/// Appends the number of pieces requested (the model states how many there are) and the checksum to a serialized model.
std::string sealed(std::string model, int64_t size);

/// Returns why the bytes must not be passed to SentencePiece: our checksum is wrong, tables point outside, or there are pieces or scores
/// that it cannot handle. Returns nullopt if there is no such defect.
std::optional<std::string> defect(std::string_view model);

/// What a vocabulary was trained with; defaults are those of the format.
struct Settings {
  std::string type = "unigram";        // unigram | bpe | word | char
  int64_t size = 8000;                 // pieces
  int64_t asked_size = 0;              // pieces requested; the text may have yielded fewer; 0: not recorded
  double character_coverage = 0.9995;  // to the precision of a float
  std::string normalization;           // SentencePiece's name of the rule; "spaces" for ours
};
/// Returns the settings recorded in valid bytes; nullopt if there are none.
std::optional<Settings> settings(std::string_view model);

struct Piece {
  std::string_view text;  // within the model's bytes
  float score = 0;        // unigram: logarithm of its probability; bpe: the higher, the earlier it is merged
  bool ordinary = false;  // text that may be segmented otherwise: not unknown, control, user-defined, unused or a byte
};
/// Returns the pieces in valid bytes, by id.
std::vector<Piece> pieces(std::string_view model);

/// Returns a model whose piece number i is pieces[i], for models of networks that were trained with another order than SentencePiece's. Its
/// pieces that are not listed follow behind, and only those listed have an id (Vocabulary::size()); text that needs others is unknown. What
/// is listed and not in the model is a control symbol or, if `written` and not in angle brackets, text that is never read, only written.
/// Throws DataError, naming `name`, if a piece is listed twice, or <unk> or </s> is not.
std::string renumbered(std::string_view model, std::span<const std::string> pieces, bool written, const std::string& name);
/// Returns a model that has no segmentation of its own: it splits text at spaces, and each word is a piece or unknown. For networks whose
/// tokens come from elsewhere. <unk> must be listed; <s>, </s>, <blank> and <pad> stand for no text. Throws DataError as renumbered().
std::string word_model(std::span<const std::string> pieces, const std::string& name);
/// The number of pieces that have an id: all, or those listed for renumbered().
int64_t numbered(std::string_view model);

}  // namespace starling::vocabulary_format
