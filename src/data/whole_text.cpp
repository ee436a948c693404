#include "data/whole_text.h"

#include <algorithm>

#include "base/error.h"
#include "base/utf8.h"
#include "data/foreign_formats.h"
#include "data/line_reader.h"

namespace starling {

std::string read_whole_text(const std::string& path) {
  constexpr size_t kMost = size_t{1} << 30, kChunk = size_t{1} << 18;
  const std::string shown = path == "-" ? "standard input" : path;
  const auto bytes = open_bytes(path, true);
  std::string text;
  const auto line_at = [&](size_t at) { return 1 + std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(at), '\n'); };
  for (size_t got = 1; got > 0;) {
    const size_t size = text.size();
    if (size > kMost) throw IoError(fmt::format("{}: has more than {} bytes, the limit for one document; split it", shown, kMost));
    text.resize(size + kChunk);
    try {
      got = bytes->read(text.data() + size, kChunk);
    } catch (const DataError& e) {
      throw DataError(fmt::format("{}:{}: {}", shown, line_at(size), e.what()));
    }
    text.resize(size + got);
  }
  // Office documents, new and old, are archives; their reader judges them.
  if (text.starts_with("PK\x03\x04") || text.starts_with("\xD0\xCF\x11\xE0")) return text;
  if (const auto foreign = foreign_format(text)) throw DataError(fmt::format("{}:1: {}", shown, describe(*foreign, path)));
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff"))
    throw DataError(fmt::format("{}:1: the text is UTF-16; convert it with: iconv -f UTF-16 -t UTF-8 {}", shown, shown));
  if (const auto at = invalid_utf8_offset(text))
    throw DataError(fmt::format("{}:{}: invalid UTF-8 (0x{:02x}); convert the file, e.g. with: iconv -f LATIN1 -t UTF-8 {}", shown,
                                line_at(*at), static_cast<unsigned char>(text[*at]), path == "-" ? "FILE" : path));
  return text;
}

}  // namespace starling
