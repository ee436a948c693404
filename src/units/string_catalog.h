// Xcode's string catalogs (.xcstrings): JSON with the translations of each text by language. The target language's are added, to be
// reviewed; translations that are there already stay.
#pragma once

#include "units/messages.h"

namespace starling {

class StringCatalog final : public MessageFile {
 public:
  /// Throws DataError with the line for what is not such a catalog, or one whose source language is another than the model's.
  StringCatalog(std::string text, const Languages& languages);

 private:
  class Reader;
  void read() override;

  const Languages languages_;
  std::string source_;  // language of the keys
  size_t strings_ = 0;  // where their object begins
};

}  // namespace starling
