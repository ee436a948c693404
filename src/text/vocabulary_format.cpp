// Field numbers are those of sentencepiece_model.proto: ModelProto {1 pieces, 2 trainer_spec, 3 normalizer_spec, 5 denormalizer_spec,
// 200 and above for extensions}, SentencePiece {1 piece, 2 score, 3 type: 1, the default, is normal}, NormalizerSpec {1 name,
// 2 precompiled_charsmap, 6 normalization_rule_tsv}.
#include "text/vocabulary_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/error.h"
#include "text/normalization.h"

namespace starling::vocabulary_format {
namespace {

constexpr uint32_t kPieces = 1, kPieceText = 1, kPieceScore = 2, kPieceType = 3;
constexpr uint32_t kTrainer = 2, kNormalizer = 3, kDenormalizer = 5, kCharsMap = 2, kRuleName = 1, kRulesFrom = 6;
constexpr uint32_t kModelType = 3, kVocabularySize = 4, kCharacterCoverage = 10;  // of TrainerSpec
constexpr uint32_t kAskedSize = 7302;                                             // ours, in the range for extensions, as the checksum
constexpr uint32_t kNumbered = 7303;                                              // ours: pieces that have an id, if not all
constexpr uint32_t kChecksum = 7301;                                              // ours, in the range for extensions
constexpr std::string_view kChecksumTag = "\xaa\xc8\x03\x08";                     // field 7301, length-delimited, 8 bytes
static_assert(((kChecksum << 3) | 2) == (0x2a | (0x48 << 7) | (0x03 << 14)));

struct Field {
  uint32_t number = 0;
  std::string_view bytes;  // of length-delimited fields and of 4-byte ones, else empty
  uint64_t value = 0;      // of varints
};

// Reads the fields of a message one by one; next returns false at the end and if the bytes are not a message (then ok() is false).
class Fields {
 public:
  explicit Fields(std::string_view message) : rest_(message) {}
  bool ok() const { return ok_; }
  bool next(Field& field) {
    uint64_t tag = 0, size = 0;
    if (!ok_ || rest_.empty()) return false;
    if (!varint(tag) || tag >> 32 || tag >> 3 == 0) return ok_ = false;
    field = {static_cast<uint32_t>(tag >> 3), {}, 0};
    switch (tag & 7) {
      case 0:
        return ok_ = varint(field.value);
      case 1:
        return ok_ = take(8);
      case 2:
        return ok_ = varint(size) && take(size, &field.bytes);
      case 5:
        return ok_ = take(4, &field.bytes);
      default:
        return ok_ = false;
    }
  }

 private:
  bool varint(uint64_t& value) {
    value = 0;
    for (int shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }
  bool take(uint64_t size, std::string_view* bytes = nullptr) {
    if (size > rest_.size()) return false;
    if (bytes) *bytes = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return true;
  }

  std::string_view rest_;
  bool ok_ = true;
};

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

void append_varint(std::string& to, uint64_t value) {
  for (; value >= 0x80; value >>= 7) to.push_back(static_cast<char>(value | 0x80));
  to.push_back(static_cast<char>(value));
}
void append_field(std::string& to, uint32_t number, uint64_t value) {
  append_varint(to, uint64_t{number} << 3);
  append_varint(to, value);
}
void append_field(std::string& to, uint32_t number, std::string_view bytes) {
  append_varint(to, uint64_t{number} << 3 | 2);
  append_varint(to, bytes.size());
  to.append(bytes);
}

std::string little_endian(uint64_t value) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(value >> (8 * i));
  return bytes;
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
    Fields inner(field.bytes);
    while (inner.next(field)) {
      if (field.number == kPieceText) piece.text = field.bytes;
      if (field.number == kPieceScore && field.bytes.size() == sizeof piece.score)
        std::memcpy(&piece.score, field.bytes.data(), sizeof piece.score);
      if (field.number == kPieceType) piece.ordinary = field.value == 1;
    }
    pieces.push_back(piece);
  }
  for (size_t id = static_cast<size_t>(numbered(model)); id < pieces.size(); ++id) pieces[id].ordinary = false;
  return pieces;
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

std::string word_model(std::span<const std::string> pieces, const std::string& name) {
  constexpr uint64_t kUnknown = 2, kControl = 3, kWord = 3;  // types of pieces; a type of models
  constexpr std::string_view kSpace = "\u2581";              // as SentencePiece writes a space
  std::unordered_set<std::string_view> taken;
  std::string result;
  for (const std::string& text : pieces) {
    if (!taken.insert(text).second) throw DataError(fmt::format("{}: '{}' is listed twice", name, text));
    const bool unknown = text == "<unk>", control = text == "<s>" || text == "</s>" || text == "<blank>" || text == "<pad>";
    std::string message;
    append_field(message, kPieceText, unknown || control ? text : std::string(kSpace) + text);
    if (unknown || control) append_field(message, kPieceType, unknown ? kUnknown : kControl);
    append_field(result, kPieces, message);
  }
  for (const std::string_view special : {"<unk>", "</s>"})
    if (!taken.contains(special)) throw DataError(fmt::format("{}: {} is missing in the list of pieces", name, special));
  std::string trainer, normalizer;
  append_field(trainer, kModelType, kWord);
  append_field(trainer, kVocabularySize, pieces.size());
  append_field(normalizer, kRuleName, std::string_view("identity"));
  append_field(result, kTrainer, trainer);
  append_field(result, kNormalizer, normalizer);
  const std::string sum = little_endian(hash(result));
  return result.append(kChecksumTag).append(sum);
}

std::string renumbered(std::string_view model, std::span<const std::string> listed, bool written, const std::string& name) {
  constexpr uint64_t kControl = 3, kUnused = 5;  // types of pieces; unused ones are not looked for in text
  std::unordered_map<std::string_view, std::string_view> messages;
  std::vector<std::string_view> order;  // texts as in the model
  std::string rest, result;
  Fields fields(model);
  Field field;
  while (fields.next(field)) {
    if (field.number == kPieces) {
      std::string_view text;
      Fields inner(field.bytes);
      for (Field f; inner.next(f);)
        if (f.number == kPieceText) text = f.bytes;
      if (messages.emplace(text, field.bytes).second) order.push_back(text);
    } else if (field.number == kTrainer || field.number == kNormalizer || field.number == kDenormalizer) {
      append_field(rest, field.number, field.bytes);
    }
  }
  std::unordered_set<std::string_view> taken;
  for (const std::string& text : listed) {
    if (!taken.insert(text).second) throw DataError(fmt::format("{}: piece '{}' is listed twice", name, text));
    if (const auto found = messages.find(text); found != messages.end()) {
      append_field(result, kPieces, found->second);
      continue;
    }
    std::string message;
    append_field(message, kPieceText, text);
    const bool symbol = text.starts_with('<') && text.ends_with('>');
    append_field(message, kPieceType, written && !symbol ? kUnused : kControl);
    append_field(result, kPieces, message);
  }
  for (const std::string_view special : {"<unk>", "</s>"})
    if (!taken.contains(special) || !messages.contains(special))
      throw DataError(
          fmt::format("{}: {} is missing in the list of pieces or in the SentencePiece model; do they belong together?", name, special));
  bool all = true;
  for (const std::string_view text : order)
    if (!taken.contains(text)) {
      append_field(result, kPieces, messages.at(text));
      all = false;
    }
  result += rest;
  if (!all) append_field(result, kNumbered, listed.size());
  const std::string sum = little_endian(hash(result));
  return result.append(kChecksumTag).append(sum);
}

}  // namespace starling::vocabulary_format
