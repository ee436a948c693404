// What a document is, by its first bytes and its name.
#pragma once

#include <string>
#include <string_view>

namespace starling {

/// Returns "text", "html", "xml" or "subtitles". Throws ConfigError for a format that would be ruined if it were read as one of these.
std::string file_format(std::string_view text, const std::string& path);

}  // namespace starling
