#include "formats/text_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/utf8.h"
#include "formats/html_pieces.h"

namespace starling {

TextFile::TextFile(std::string text, DocumentFormat format) : text_(std::move(text)), format_(format) {
  if (const auto bad = invalid_utf8_offset(text_))
    throw DataError(fmt::format("line {}: a byte does not belong to UTF-8; convert the file, for instance with iconv -f cp1252",
                                1 + std::count(text_.begin(), text_.begin() + static_cast<ptrdiff_t>(*bad), '\n')));
  check();
}

void TextFile::read() {
  constexpr size_t kPiece = size_t{16} << 10;  // bytes; those of a server's queue at once
  const std::string_view text = text_, mark = text.substr(0, byte_order_mark(text)), all = text.substr(mark.size());
  if (!mark.empty() && !checks()) write(mark);
  if (format_ != DocumentFormat::text) {
    for (const std::string_view piece : format_ == DocumentFormat::html ? html_pieces(all) : xml_pieces(all)) add_piece(piece);
    return;
  }
  for (size_t begin = 0; begin < all.size();) {
    const size_t line = all.size() - begin > kPiece ? all.find('\n', begin + kPiece) : all.npos;
    const size_t end = line == all.npos ? all.size() : line + 1;
    add_piece(all.substr(begin, end - begin));
    begin = end;
  }
}

void TextFile::add_piece(std::string_view piece) {
  add({std::string(piece), format_, {}});
  end_group();
}

void TextFile::write_group(std::span<const std::string> translations, bool) {
  for (const std::string& t : translations) write(t);
}

}  // namespace starling
