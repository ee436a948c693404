#include "text/vocabulary_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "text/normalization.h"
#include "text/vocabulary_fields.h"

namespace starling::vocabulary_format {
namespace {

// The table is a length, a double-array trie of 32-bit units and NUL-terminated replacement strings. SentencePiece follows a unit's
// offset XOR a byte without bounds checks; every index this can reach must lie inside, and every leaf must point to a string.
bool safe_charsmap(std::string_view map) {
  uint32_t trie_bytes = 0;
  if (map.empty()) return true;
  if (map.size() < sizeof trie_bytes) return false;
  std::memcpy(&trie_bytes, map.data(), sizeof trie_bytes);
  map.remove_prefix(sizeof trie_bytes);
  if (trie_bytes > map.size() || trie_bytes % 4 != 0 || trie_bytes == 0) return false;
  std::vector<uint32_t> units(trie_bytes / 4);
  std::memcpy(units.data(), map.data(), trie_bytes);
  const std::string_view strings = map.substr(trie_bytes);
  if (strings.empty() || strings.back() != '\0') return false;
  for (size_t at = 0; at < units.size(); ++at) {
    const uint32_t unit = units[at];
    if (unit >> 31) {
      if ((unit & 0x7fffffffu) >= strings.size()) return false;
    } else if (((at ^ (uint64_t{unit >> 10} << ((unit & (1u << 9)) >> 6))) | 0xff) >= units.size()) {
      return false;
    }
  }
  return true;
}

bool safe_normalizer(std::string_view spec) {
  Fields fields(spec);
  Field field;
  while (fields.next(field))
    if (field.number == kCharsMap && !safe_charsmap(field.bytes)) return false;
  return fields.ok();
}

// A model does not record the name of our rule, but it records the path that the rule was read from, which is always the same.
std::string normalization_of(std::string_view spec) {
  std::string name;
  Fields fields(spec);
  Field field;
  while (fields.next(field)) {
    if (field.number == kRuleName) name = field.bytes;
    if (field.number == kRulesFrom && field.bytes == kSpaceRulesPath) return kSpaces;
  }
  return name;
}

constexpr size_t kMostPieceBytes = 4096;  // the builder of SentencePiece's table recurses once per byte
constexpr float kMostScore = 1e9F;        // far above real scores; sums over a sentence stay finite

// Returns why SentencePiece must not be given this piece, or nullopt.
std::optional<std::string> defect_of_piece(std::string_view message, int64_t id) {
  Fields fields(message);
  Field field;
  while (fields.next(field)) {
    if (field.number == kPieceText && field.bytes.size() > kMostPieceBytes)
      return fmt::format("piece {} is {} bytes long, more than {}", id, field.bytes.size(), kMostPieceBytes);
    float score = 0;
    if (field.number != kPieceScore || field.bytes.size() != sizeof score) continue;
    std::memcpy(&score, field.bytes.data(), sizeof score);
    if (!(std::abs(score) <= kMostScore)) return fmt::format("the score of piece {} is {}", id, score);
  }
  if (!fields.ok()) return fmt::format("piece {} is cut short", id);
  return std::nullopt;
}

}  // namespace

uint64_t hash(std::string_view bytes) {
  uint64_t h = 0xcbf29ce484222325u;
  for (const char c : bytes) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return h;
}

std::string sealed(std::string model, int64_t size) {
  append_field(model, kAskedSize, static_cast<uint64_t>(size));
  const std::string sum = little_endian(hash(model));
  return model.append(kChecksumTag).append(sum);
}

std::optional<std::string> defect(std::string_view model) {
  if (model.empty()) return "the file is empty";
  const size_t trailer = kChecksumTag.size() + 8;
  if (model.size() > trailer && model.substr(model.size() - trailer, kChecksumTag.size()) == kChecksumTag) {
    const std::string_view body = model.substr(0, model.size() - trailer);
    if (little_endian(hash(body)) != model.substr(model.size() - 8)) return "its checksum is wrong";
  }
  Fields fields(model);
  Field field;
  for (int64_t id = 0; fields.next(field);) {
    if (field.number == kPieces)
      if (auto why = defect_of_piece(field.bytes, id++)) return why;
    const bool normalizer = field.number == kNormalizer || field.number == kDenormalizer;
    if (normalizer && !safe_normalizer(field.bytes)) return "its normalisation table is broken";
  }
  if (!fields.ok()) return "it is not a protocol buffer, or is cut short";
  return std::nullopt;
}

std::optional<Settings> settings(std::string_view model) {
  std::optional<Settings> found;
  int64_t asked = 0;
  std::string normalization;
  Fields fields(model);
  Field field;
  while (fields.next(field)) {
    if (field.number == kAskedSize) asked = static_cast<int64_t>(field.value);
    if (field.number == kNormalizer) normalization = normalization_of(field.bytes);
    if (field.number != kTrainer) continue;
    found.emplace();
    Fields inner(field.bytes);
    while (inner.next(field)) {
      constexpr const char* types[] = {"", "unigram", "bpe", "word", "char"};
      if (field.number == kModelType && field.value >= 1 && field.value <= 4) found->type = types[field.value];
      if (field.number == kVocabularySize) found->size = static_cast<int64_t>(field.value);
      if (field.number == kCharacterCoverage && field.bytes.size() == sizeof(float)) {
        float coverage = 0;
        std::memcpy(&coverage, field.bytes.data(), sizeof coverage);
        found->character_coverage = coverage;
      }
    }
  }
  if (found) {
    found->asked_size = asked;
    found->normalization = normalization;
  }
  return found;
}

std::vector<Piece> pieces(std::string_view model) {
  std::vector<Piece> pieces;
  Fields fields(model);
  Field field;
  while (fields.next(field)) {
    if (field.number != kPieces) continue;
    Piece piece{.ordinary = true};
    bool own = false;
    Fields inner(field.bytes);
    while (inner.next(field)) {
      if (field.number == kPieceText && !own) piece.text = field.bytes;
      if (field.number == kPieceOwnText) piece.text = field.bytes, own = true;
      if (field.number == kPieceScore && field.bytes.size() == sizeof piece.score)
        std::memcpy(&piece.score, field.bytes.data(), sizeof piece.score);
      if (field.number == kPieceType) piece.ordinary = field.value == 1;
      if (field.number == kPieceFound && field.value <= static_cast<uint64_t>(Found::tag)) piece.found = static_cast<Found>(field.value);
    }
    pieces.push_back(piece);
  }
  for (size_t id = static_cast<size_t>(numbered(model)); id < pieces.size(); ++id) pieces[id].ordinary = false;
  return pieces;
}

int64_t part_count(std::string_view model) {
  int64_t count = 0;
  Fields fields(model);
  Field field;
  while (fields.next(field)) {
    ++count;
    if (field.number == kPieces) continue;
    Fields inner(field.bytes);
    while (inner.next(field)) ++count;
  }
  return count;
}

int64_t numbered(std::string_view model) {
  int64_t all = 0, listed = -1;
  Fields fields(model);
  Field field;
  while (fields.next(field)) {
    all += field.number == kPieces;
    if (field.number == kNumbered) listed = static_cast<int64_t>(std::min<uint64_t>(field.value, INT32_MAX));
  }
  return listed < 0 ? all : std::min(listed, all);
}

}  // namespace starling::vocabulary_format
