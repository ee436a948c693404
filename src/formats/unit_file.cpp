#include "formats/unit_file.h"

#include "formats/subtitles.h"

namespace starling {

std::unique_ptr<UnitFile> open_unit_file(std::string_view format, std::string bytes, const Languages&) {
  if (format == "subtitles") return std::make_unique<Subtitles>(std::move(bytes));
  return nullptr;
}

}  // namespace starling
