// libFuzzer's target for files of many texts: whatever comes back for the texts, the file can be read again. See CONTRIBUTING.md for how to
// run it.
#include <cstdint>
#include <cstdlib>

#include "base/error.h"
#include "changed.h"
#include "formats/unit_file.h"

using namespace starling;

// The first byte chooses the format.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  constexpr const char* kFormats[] = {"subtitles",  "markdown", "xliff",   "po",   "json", "yaml",
                                      "properties", "strings",  "android", "resx", "qt",   "xcstrings"};
  const std::string format = kFormats[data[0] % std::size(kFormats)];
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const Languages languages{"en", data[0] & 64 ? "pl" : "", {}};
  std::unique_ptr<UnitFile> file;
  try {
    file = open_unit_file(format, text, languages);
  } catch (const DataError&) {
    return 0;
  }
  const std::string done = changed(*file, static_cast<uint32_t>(size) * 2654435761u);
  open_unit_file(format, done, languages);  // or it throws
  return 0;
}
