// Divides HTML and XML so that their pieces can be translated one after the other, as the whole would be.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace starling {

inline constexpr size_t kHtmlPiece = size_t{128} << 10;    // bytes from which on a page is divided
inline constexpr size_t kMostHtmlPiece = size_t{1} << 20;  // of a piece

// Returns the pieces of a page, which together are all of it: they end behind paragraphs and the like, and after `kMostHtmlPiece` bytes
// anywhere between tags. A page is one piece if elements of it are marked as not to be translated, or if it has no tags.
std::vector<std::string_view> html_pieces(std::string_view page);

// Returns the pieces of a text of XML, of at least `kHtmlPiece` bytes: they end between elements all of whose parents have no text of their
// own. XML whose elements cross each other is one piece.
std::vector<std::string_view> xml_pieces(std::string_view xml);

}  // namespace starling
