// What Starling must know about the bytes of a SentencePiece model (a protocol buffer): where its own checksum is, and whether the
// normalisation table is safe to walk. Forty lines of wire format instead of a dependency on protobuf, which SentencePiece hides.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace starling::vocabulary_format {

/// FNV-1a, 64 bits.
uint64_t hash(std::string_view bytes);

/// Appends the checksum field to a serialized model.
std::string with_checksum(std::string model);

/// Why the bytes must not be given to SentencePiece, or nothing. A model without our checksum is examined more closely.
std::optional<std::string> defect(std::string_view model);

}  // namespace starling::vocabulary_format
