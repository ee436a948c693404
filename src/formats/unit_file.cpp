#include "formats/unit_file.h"

#include "formats/markdown.h"
#include "formats/subtitles.h"
#include "formats/xliff.h"

namespace starling {

std::unique_ptr<UnitFile> open_unit_file(std::string_view format, std::string bytes, const Languages& languages) {
  if (format == "subtitles") return std::make_unique<Subtitles>(std::move(bytes));
  if (format == "markdown") return std::make_unique<Markdown>(std::move(bytes));
  if (format == "xliff") return std::make_unique<Xliff>(std::move(bytes), languages);
  return nullptr;
}

}  // namespace starling
