// libFuzzer's target for office documents: their XML in an archive, whole archives, and the languages that they name.
#include "formats/office.h"

#include <cstdint>
#include <cstdlib>

#include "base/error.h"
#include "changed.h"
#include "formats/file_format.h"

namespace {

using namespace starling;

std::string archive_of(size_t kind, const std::string& xml) {
  const std::string types =
      "<Types><Override PartName=\"/a.xml\" ContentType=\"wordprocessingml.document.main+xml\"/>"
      "<Override PartName=\"/b.xml\" ContentType=\"spreadsheetml.table+xml\"/></Types>";
  const std::pair<std::string, std::string> files[][3] = {
      {{"[Content_Types].xml", types}, {"a.xml", xml}, {"b.xml", "<tableColumn name=\"a\"/>"}},
      {{"content.xml", xml}, {"styles.xml", xml}, {"meta.xml", xml}},
      {{"META-INF/container.xml", "<a full-path=\"b.opf\"/>"}, {"b.opf", xml}, {"a.xhtml", xml}},
      {{"[Content_Types].xml", xml}, {"META-INF/container.xml", xml}, {"META-INF/encryption.xml", xml}},
  };
  return zip_archive(files[kind]);
}

}  // namespace

// The first byte chooses where the text stands; with its highest bit it is a whole archive.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string bytes = data[0] & 128 ? text : archive_of(data[0] % 4, text);
  try {
    const std::string format = data[0] & 64 ? file_format(bytes, "a") : std::string(office_formats()[data[0] / 4 % 7]);
    if (format == "text" || format == "html" || format == "xml" || format == "subtitles") return 0;
    OfficeFile file(format, bytes, {"en", "de", {}}, 1 << 20);
    const std::string done = changed(file, static_cast<uint32_t>(size) * 2654435761u);
    const size_t again = OfficeFile(format, done, {"de", "en", {}}).units().size();
    if (again == SIZE_MAX) std::abort();
  } catch (const Error&) {
  }
  return 0;
}
