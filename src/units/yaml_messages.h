// YAML with the messages of a program, as Rails has them: values that are texts are translated, in the style that they are written in.
#pragma once

#include "units/messages.h"

namespace starling {

class YamlMessages final : public MessageFile {
 public:
  /// Throws DataError with the line for what is not YAML.
  YamlMessages(std::string text, const Languages& languages);

 private:
  class Reader;
  void read() override;

  const Languages languages_;
};

}  // namespace starling
