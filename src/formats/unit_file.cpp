#include "formats/unit_file.h"

#include <algorithm>

#include "formats/file_format.h"
#include "formats/office.h"
#include "formats/subtitles.h"
#include "formats/text_file.h"
#include "units/gettext.h"
#include "units/json_messages.h"
#include "units/line_messages.h"
#include "units/markdown.h"
#include "units/string_catalog.h"
#include "units/xliff.h"
#include "units/xml_messages.h"
#include "units/yaml_messages.h"

namespace starling {

std::unique_ptr<UnitFile> open_unit_file(std::string_view format, std::string bytes, const Languages& languages, uint64_t most_unpacked) {
  if (format == "subtitles") return std::make_unique<Subtitles>(std::move(bytes));
  if (format == "markdown") return std::make_unique<Markdown>(std::move(bytes));
  if (format == "po") return std::make_unique<Gettext>(std::move(bytes), languages);
  if (format == "json") return std::make_unique<JsonMessages>(std::move(bytes), languages);
  if (format == "xcstrings") return std::make_unique<StringCatalog>(std::move(bytes), languages);
  if (format == "properties") return std::make_unique<Properties>(std::move(bytes), languages);
  if (format == "strings") return std::make_unique<AppleStrings>(std::move(bytes), languages);
  if (format == "android") return std::make_unique<AndroidStrings>(std::move(bytes), languages);
  if (format == "resx") return std::make_unique<Resx>(std::move(bytes), languages);
  if (format == "qt") return std::make_unique<QtLinguist>(std::move(bytes), languages);
  if (format == "yaml") return std::make_unique<YamlMessages>(std::move(bytes), languages);
  if (format == "xliff") return std::make_unique<Xliff>(std::move(bytes), languages);
  if (std::ranges::count(office_formats(), format)) return std::make_unique<OfficeFile>(format, std::move(bytes), languages, most_unpacked);
  return std::make_unique<TextFile>(std::move(bytes), text_format(format));
}

}  // namespace starling
