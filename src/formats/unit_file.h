// Files that hold many texts, each of which is a document by itself: subtitles, catalogues of messages, office documents.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "document/document.h"
#include "text/languages.h"

namespace starling {

struct TextUnit {
  std::string text;
  DocumentFormat format = DocumentFormat::text;
  DocumentOptions options;
};

class UnitFile {
 public:
  virtual ~UnitFile() = default;
  /// The texts to translate, in order.
  const std::vector<TextUnit>& units() const { return units_; }
  /// Returns the file with its texts replaced by their translations, one for each unit; everything else stays byte for byte.
  virtual std::string assemble(std::span<const std::string> translations) const = 0;

 protected:
  std::vector<TextUnit> units_;
};

/// Opens a file of a format of file_format(); null for text, HTML and XML, which are one text. Throws DataError for a broken file, and for
/// an archive with more than `most_unpacked` bytes of text and tags.
std::unique_ptr<UnitFile> open_unit_file(std::string_view format, std::string bytes, const Languages& languages,
                                         uint64_t most_unpacked = uint64_t{512} << 20);

}  // namespace starling
