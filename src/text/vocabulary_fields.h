// The fields of SentencePiece models, by the numbers of sentencepiece_model.proto: ModelProto {1 pieces, 2 trainer_spec,
// 3 normalizer_spec, 5 denormalizer_spec, 200 and above for extensions}, SentencePiece {1 piece, 2 score, 3 type: 1, the default, is
// normal; 200 and above for extensions}, NormalizerSpec {1 name, 2 precompiled_charsmap, 6 normalization_rule_tsv}. For
// vocabulary_format.h, which is what others include.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace starling::vocabulary_format {

inline constexpr uint32_t kPieces = 1, kPieceText = 1, kPieceScore = 2, kPieceType = 3;
inline constexpr uint32_t kTrainer = 2, kNormalizer = 3, kDenormalizer = 5, kCharsMap = 2, kRuleName = 1, kRulesFrom = 6;
inline constexpr uint32_t kModelType = 3, kVocabularySize = 4, kCharacterCoverage = 10;  // of TrainerSpec
inline constexpr uint32_t kAskedSize = 7302;                          // ours, in the range for extensions, as the checksum
inline constexpr uint32_t kNumbered = 7303;                           // ours: pieces that have an id, if not all
inline constexpr uint32_t kPieceFound = 7304;                         // ours, of a SentencePiece: a Found
inline constexpr uint32_t kPieceOwnText = 7305;                       // ours: its text, if SentencePiece has a name instead
inline constexpr uint32_t kWordPieces = 7306;                         // ours: how text becomes tokens, text/word_pieces.h
inline constexpr uint32_t kChecksum = 7301;                           // ours, in the range for extensions
inline constexpr std::string_view kChecksumTag = "\xaa\xc8\x03\x08";  // field 7301, length-delimited, 8 bytes
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

inline void append_varint(std::string& to, uint64_t value) {
  for (; value >= 0x80; value >>= 7) to.push_back(static_cast<char>(value | 0x80));
  to.push_back(static_cast<char>(value));
}
inline void append_field(std::string& to, uint32_t number, uint64_t value) {
  append_varint(to, uint64_t{number} << 3);
  append_varint(to, value);
}
inline void append_field(std::string& to, uint32_t number, std::string_view bytes) {
  append_varint(to, uint64_t{number} << 3 | 2);
  append_varint(to, bytes.size());
  to.append(bytes);
}

inline std::string little_endian(uint64_t value) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(value >> (8 * i));
  return bytes;
}

}  // namespace starling::vocabulary_format
