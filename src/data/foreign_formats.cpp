#include "data/foreign_formats.h"

#include <fmt/format.h>

namespace starling {
namespace {

using namespace std::string_view_literals;

struct Mark {
  size_t at;  // byte of the file
  std::string_view bytes;
  ForeignFormat format;
};

// The signatures are those of the formats' specifications; each contains a byte that cannot occur in text or is too long to be text.
constexpr Mark kMarks[] = {
    {0, "\xfd\x37zXZ\0"sv, {"an xz archive", "xz -dc"}},
    {0, "\x5d\0\0"sv, {"an lzma archive", "xz -dc --format=lzma"}},
    {0, "LZIP\1"sv, {"an lzip archive", "lzip -dc"}},
    {0, "\x04\x22\x4d\x18"sv, {"an lz4 archive", "lz4 -dc"}},
    {0, "\x02\x21\x4c\x18"sv, {"an lz4 archive", "lz4 -dc"}},
    {0, "\x89LZO\0\r\n\x1a\n"sv, {"an lzop archive", "lzop -dc"}},
    {0, "\x1f\x9d"sv, {"a compress (.Z) archive", "gzip -dc"}},
    {0, "\xff\x06\0\0sNaPpY"sv, {"a snappy archive", "snzip -dc"}},
    {0, "PK\x03\x04"sv, {"a zip archive (or an office document, which is one)", "unzip -p"}},
    {0, "PK\x05\x06"sv, {"a zip archive without files", ""}},
    {0, "PK\x07\x08"sv, {"a part of a zip archive", ""}},
    {0, "7z\xbc\xaf\x27\x1c"sv, {"a 7z archive", "7z x -so"}},
    {0, "Rar!\x1a\x07"sv, {"a rar archive", "unrar p -inul"}},
    {0, "MSCF\0\0\0\0"sv, {"a cabinet archive", "cabextract -p"}},
    {257, "ustar\0"sv, {"a tar archive", "tar -xOf"}},
    {257, "ustar  \0"sv, {"a tar archive", "tar -xOf"}},
    {0, "PAR1\x15"sv, {"a Parquet file", ""}},
    {0, "ARROW1\0\0"sv, {"an Arrow file", ""}},
    {0, "Obj\x01"sv, {"an Avro file", ""}},
    {0, "\x89HDF\r\n\x1a\n"sv, {"an HDF5 file", ""}},
    {0, "\x93NUMPY"sv, {"a NumPy array", ""}},
    {0, "SQLite format 3\0"sv, {"an SQLite database", ""}},
    {0, "%PDF-1."sv, {"a PDF document", "pdftotext -layout FILE -"}},
    {0, "%PDF-2."sv, {"a PDF document", "pdftotext -layout FILE -"}},
    {0, "{\\rtf1"sv, {"an RTF document", ""}},
    {0, "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"sv, {"an old office document", ""}},
};

// The signature of bzip2 consists of letters: "BZh", the block size, then the digits of pi (a block) or of the square root of pi (the end).
bool is_bzip2(std::string_view head) {
  if (!head.starts_with("BZh") || head.size() < 10 || head[3] < '1' || head[3] > '9') return false;
  return head.substr(4, 6) == "\x31\x41\x59\x26\x53\x59" || head.substr(4, 6) == "\x17\x72\x45\x38\x50\x90";
}

}  // namespace

std::optional<ForeignFormat> foreign_format(std::string_view head) {
  if (is_bzip2(head)) return ForeignFormat{"a bzip2 archive", "bzip2 -dc"};
  for (const Mark& mark : kMarks)
    if (head.size() > mark.at && head.substr(mark.at).starts_with(mark.bytes)) return mark.format;
  return std::nullopt;
}

bool may_become_foreign(std::string_view head) {
  if (head.size() < 10 && std::string_view("BZh").starts_with(head.substr(0, 3))) return true;
  for (const Mark& mark : kMarks)
    if (mark.at == 0 && mark.bytes.starts_with(head)) return true;
  return false;
}

std::string describe(const ForeignFormat& format, const std::string& path) {
  const std::string file = path == "-" ? "FILE" : path;
  std::string mend = "convert it to text with one sentence per line first";
  if (const size_t place = format.unpack.find("FILE"); place != std::string_view::npos)
    mend = fmt::format("{}: {}{}{} > TEXT", mend, format.unpack.substr(0, place), file, format.unpack.substr(place + 4));
  else if (!format.unpack.empty())
    mend = fmt::format("unpack it first: {} {} > TEXT", format.unpack, file);
  return fmt::format("this is {}, which cannot be read (only text, gzip and Zstandard can); {}", format.name, mend);
}

}  // namespace starling
