// What a document is, by its first bytes and its name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "document/document.h"

namespace starling {

/// The formats that documents may have: "auto" and what file_format() returns.
std::vector<std::string> document_formats();

/// Returns the endings of the names of files in these formats: ".txt", ".docx" and so on.
std::vector<std::string> document_endings();

/// Returns how the text of a format that is one text is read: of "text", "html" and "xml".
DocumentFormat text_format(std::string_view format);

/// Returns "text", "html", "xml" or the format of a file of units (unit_file.h). Throws ConfigError for a format that would be ruined if it
/// were read as one of these.
std::string file_format(std::string_view text, const std::string& path);

}  // namespace starling
