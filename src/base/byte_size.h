// Amounts of memory as people write them: "4G", "500M", "1.5 GiB".
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace starling {

/// Parses an amount and returns its bytes. Units are k, M, G and T, powers of 1024 in either case, alone or followed by B, i or iB; a
/// number needs one. Returns nullopt for any other text, such as a bare number, and for less than a byte or 2^62 bytes and more.
std::optional<int64_t> byte_size(std::string_view text);

}  // namespace starling
