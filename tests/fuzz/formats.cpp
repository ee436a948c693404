// libFuzzer's target for files of many texts: whatever comes back for the texts, the file can be read again. See CONTRIBUTING.md for how to
// run it.
#include <cstdint>
#include <cstdlib>

#include "base/error.h"
#include "formats/unit_file.h"

namespace {

using namespace starling;

std::string mixed(const std::string& sentence, uint32_t seed) {
  constexpr const char* kSaid[] = {"word",     "a < b & c > d",        "\"quoted\" it's", "- 1. # | * _x_ `",
                                   "a: b # c", "l\xC3\xA9 \\n %s {x}", "@? [a](b)!",      ""};
  return seed % 3 == 0 ? sentence : seed % 3 == 1 ? kSaid[seed / 3 % std::size(kSaid)] : sentence + kSaid[seed / 3 % std::size(kSaid)];
}

}  // namespace

// The first byte chooses the format.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  constexpr const char* kFormats[] = {"subtitles",  "markdown", "xliff",   "po",   "json", "yaml",
                                      "properties", "strings",  "android", "resx", "qt"};
  const std::string format = kFormats[data[0] % std::size(kFormats)];
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const Languages languages{"en", data[0] & 64 ? "pl" : "", {}};
  std::unique_ptr<UnitFile> file;
  try {
    file = open_unit_file(format, text, languages);
  } catch (const DataError&) {
    return 0;
  }
  std::vector<std::string> translations;
  uint32_t seed = static_cast<uint32_t>(size) * 2654435761u;
  for (const TextUnit& unit : file->units()) {
    const Document document(unit.text, unit.format, "en", unit.options);
    std::vector<AlignedText> sentences;
    for (const std::string& s : document.sentences()) sentences.push_back({mixed(s, seed = seed * 1664525u + 1013904223u), {}});
    translations.push_back(document.assemble(sentences));
  }
  open_unit_file(format, file->assemble(translations), languages);  // or it throws
  return 0;
}
