// Recognises by their first bytes files that are neither text nor a supported archive: what they are, and how to convert them to text.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace starling {

struct ForeignFormat {
  std::string_view name;    // with its article: "an xz archive"
  std::string_view unpack;  // the command that writes the content of FILE to standard output; empty: there is no common one
};

// The number of leading bytes of a file that identify its format.
constexpr size_t kFormatBytes = 512;

/// Returns the format of a file that begins with these bytes (kFormatBytes of them, or the whole file); nullopt if it may be text.
std::optional<ForeignFormat> foreign_format(std::string_view head);

/// Returns whether these bytes are the beginning of a format's signature, so that more bytes could show that the file is not text.
bool may_become_foreign(std::string_view head);

/// Returns a message about such a file, with the command that converts it.
std::string describe(const ForeignFormat& format, const std::string& path);

}  // namespace starling
