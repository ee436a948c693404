// A file that holds many texts, each of which is a document by itself: subtitles, catalogues of messages, office documents.
#pragma once

#include <span>
#include <string>
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

}  // namespace starling
