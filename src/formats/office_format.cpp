// Tells office documents by their bytes.
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "formats/office.h"

namespace starling {
namespace {

constexpr std::string_view kFormats[] = {"docx", "odt", "pptx", "odp", "xlsx", "ods", "epub"};

// By what its file "mimetype" begins with, or its list of content types contains.
struct OfficeSign {
  std::string_view text, format;
};
constexpr OfficeSign kMimetypes[] = {
    {"application/epub+zip", "epub"},
    {"application/vnd.oasis.opendocument.text", "odt"},
    {"application/vnd.oasis.opendocument.presentation", "odp"},
    {"application/vnd.oasis.opendocument.graphics", "odp"},
    {"application/vnd.oasis.opendocument.spreadsheet", "ods"},
};
constexpr OfficeSign kContentTypes[] = {
    {"wordprocessingml.document.main+xml", "docx"},   {"wordprocessingml.template.main+xml", "docx"},
    {"ms-word.document.macroEnabled", "docx"},        {"ms-word.template.macroEnabled", "docx"},
    {"presentationml.presentation.main+xml", "pptx"}, {"presentationml.slideshow.main+xml", "pptx"},
    {"presentationml.template.main+xml", "pptx"},     {"ms-powerpoint.presentation.macroEnabled", "pptx"},
    {"ms-powerpoint.slideshow.macroEnabled", "pptx"}, {"ms-powerpoint.template.macroEnabled", "pptx"},
    {"spreadsheetml.sheet.main+xml", "xlsx"},         {"spreadsheetml.template.main+xml", "xlsx"},
    {"ms-excel.sheet.macroEnabled", "xlsx"},          {"ms-excel.template.macroEnabled", "xlsx"},
};

}  // namespace

std::span<const std::string_view> office_formats() { return kFormats; }

std::string office_format(std::string_view bytes, const std::string& path) {
  constexpr std::string_view kCompoundFile = "\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1";
  constexpr uint64_t kMost = 1 << 20;
  if (bytes.starts_with(kCompoundFile)) {
    std::string wide;  // as its directory writes names
    for (const char c : std::string_view("EncryptedPackage")) wide += c, wide += '\0';
    if (bytes.find(wide) != std::string_view::npos)
      throw ConfigError(fmt::format("{}: the document is encrypted; save it without a password", path));
    throw ConfigError(
        fmt::format("{}: a document of Office 97 to 2003 (doc, xls, ppt) is not supported; save it as docx, xlsx or pptx", path));
  }
  const auto span = std::as_bytes(std::span(bytes));
  if (!is_zip(span)) return "";
  const ZipArchive archive(span, path);
  for (const ZipEntry& e : archive.entries()) {
    if (e.name == "mimetype") {
      const std::string type = archive.read_begin(e, kMost);
      for (const OfficeSign& s : kMimetypes)
        if (type.starts_with(s.text)) return std::string(s.format);
    }
    if (e.name == "[Content_Types].xml") {
      const std::string types = archive.read_begin(e, kMost);
      for (const OfficeSign& s : kContentTypes)
        if (types.find(s.text) != std::string::npos) return std::string(s.format);
    }
    if (e.name == "META-INF/container.xml") return "epub";
  }
  throw ConfigError(
      fmt::format("{}: an archive, but not a docx, odt, pptx, odp, xlsx, ods or epub file; unpack it and translate the files in it", path));
}

}  // namespace starling
