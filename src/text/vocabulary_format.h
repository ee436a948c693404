// Reads what Starling must know of a SentencePiece model's bytes (a protocol buffer): where our checksum is, what the vocabulary was
// trained with, and whether the normalisation table is safe to walk. A small wire-format reader avoids a dependency on protobuf, which
// SentencePiece does not expose.
#pragma once

#include <cstdint>
#include <map>
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

/// How text comes to a piece that SentencePiece does not look for in it (field 7304 of the piece).
enum class Found : uint8_t {
  usual,         // by SentencePiece, or not at all
  whole,         // as what SentencePiece leaves as one piece, such as a run of unknown characters; written as its text
  added,         // anywhere in a text, before SentencePiece splits the rest; written with spaces around it
  added_symbol,  // likewise, but never written
  tag,           // at the head of a source; never written
};

struct Piece {
  std::string_view text;  // within the model's bytes
  float score = 0;        // unigram: logarithm of its probability; bpe: the higher, the earlier it is merged
  bool ordinary = false;  // text that may be segmented otherwise: not unknown, control, user-defined, unused or a byte
  Found found = Found::usual;
};
/// Returns the pieces in valid bytes, by id.
std::vector<Piece> pieces(std::string_view model);

/// The pieces of a network that was trained with another order than SentencePiece's, by number.
struct Listing {
  std::vector<std::string> pieces;
  std::map<std::string, Found> found;  // of tokens that the tokenizer treats by itself, whether the SentencePiece model has them or not
};
/// The name of a row of a network's tables that has no piece: no text has it, and no translation.
std::string row_without_piece(int64_t number);
bool is_row_without_piece(std::string_view piece);
/// Whether a piece has the form of a language's tag in OPUS-MT's models: ">>fra<<".
bool has_form_of_tag(std::string_view piece);

/// Returns a model whose piece number i is listing.pieces[i]. Its pieces that are not listed follow behind, and only those listed have an
/// id (Vocabulary::size()); text that needs others is unknown. What is listed and not in the model is found as a whole, unless
/// Listing::found says otherwise, or it is a tag by its form, or one of the usual symbols, which stand for no text. Throws DataError,
/// naming `name`, if a piece is listed twice, or <unk> or </s> is not, or if most pieces are strange to the model.
std::string renumbered(std::string_view model, const Listing& listing, const std::string& name);
/// Returns a model that has no segmentation of its own: it splits text at spaces, and each word is a piece or unknown. For networks whose
/// tokens come from elsewhere. <unk> must be listed; <s>, </s>, <blank> and <pad> stand for no text, and tags of languages by their form
/// are found at the head of a source. word_pieces: a message of moses::message_of(), if text is to become tokens by it. Throws DataError as
/// renumbered().
std::string word_model(std::span<const std::string> pieces, const std::string& name, std::string_view word_pieces = "");
/// The number of pieces, settings and texts in it, which SentencePiece takes memory for.
int64_t part_count(std::string_view model);
/// The number of pieces that have an id: all, or those listed for renumbered().
int64_t numbered(std::string_view model);

}  // namespace starling::vocabulary_format
