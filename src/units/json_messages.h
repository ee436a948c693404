// JSON with the messages of a program (i18next, ARB, Chrome's, FormatJS's): strings that are values are translated.
#pragma once

#include "units/messages.h"

namespace starling {

class JsonMessages final : public MessageFile {
 public:
  /// Throws DataError with the line for what is not JSON.
  JsonMessages(std::string text, const Languages& languages);

 private:
  class Reader;
  void read() override;

  const Languages languages_;
};

}  // namespace starling
