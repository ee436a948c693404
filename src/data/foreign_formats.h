// Files that are no text and no archive that is read here, told by their first bytes: what they are, and how text is made of them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace starling {

struct ForeignFormat {
  std::string_view name;    // with its article: "an xz archive"
  std::string_view unpack;  // the command that writes what is in FILE to standard output; empty: there is no common one
};

// Bytes of a file that tell its format.
constexpr size_t kFormatBytes = 512;

/// The format of a file that begins with these bytes, kFormatBytes of them or all; nothing if it may be text.
std::optional<ForeignFormat> foreign_format(std::string_view head);

/// Whether more bytes could make something else of these than text: they are the beginning of a mark.
bool may_become_foreign(std::string_view head);

/// What to say of such a file.
std::string describe(const ForeignFormat& format, const std::string& path);

}  // namespace starling
