// What Starling must know about the bytes of a SentencePiece model (a protocol buffer): where its own checksum is, and whether the
// normalisation table is safe to walk. Forty lines of wire format instead of a dependency on protobuf, which SentencePiece hides.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace starling::vocabulary_format {

/// FNV-1a, 64 bits.
uint64_t hash(std::string_view bytes);

/// Appends how many pieces were asked for (the model says how many there are) and the checksum to a serialized model.
std::string sealed(std::string model, int64_t size);

/// Why the bytes must not be given to SentencePiece, or nothing: a wrong checksum of ours, tables that lead outside, pieces or scores
/// that it cannot compute with.
std::optional<std::string> defect(std::string_view model);

/// What a vocabulary was trained with; defaults are those of the format.
struct Settings {
  std::string type = "unigram";        // unigram | bpe | word | char
  int64_t size = 8000;                 // pieces
  int64_t asked_size = 0;              // pieces that were asked for, of which the text may have held fewer; 0: not told
  double character_coverage = 0.9995;  // to the precision of a float
  std::string normalization;           // SentencePiece's name of the rule; "spaces" for ours
};
/// Of sound bytes; nothing if they do not say.
std::optional<Settings> settings(std::string_view model);

struct Piece {
  std::string_view text;  // within the model's bytes
  float score = 0;        // unigram: logarithm of its probability; bpe: the higher, the earlier it is merged
  bool ordinary = false;  // text that SentencePiece may cut otherwise: not unknown, control, user-defined, unused or a byte
};
/// Of sound bytes, by id.
std::vector<Piece> pieces(std::string_view model);

}  // namespace starling::vocabulary_format
