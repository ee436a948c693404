// Messages in lines of keys and values: Java's properties, and the .strings of Apple's systems.
#pragma once

#include "units/messages.h"

namespace starling {

class Properties final : public MessageFile {
 public:
  /// Takes UTF-8 or Latin-1, with \uXXXX for other characters. Any text is one.
  Properties(std::string text, const Languages& languages);

 private:
  void read() override;
  void add_value(size_t begin, size_t end);
  std::string value_of(std::string_view bytes) const;
  bool latin1_, ascii_;
};

class AppleStrings final : public MessageFile {
 public:
  /// Throws DataError with the line for what is neither a comment nor a key and its value.
  AppleStrings(std::string text, const Languages& languages);

 private:
  void read() override;
  size_t skip_blanks(size_t at) const;
  size_t read_word(size_t at, std::string& word) const;
};

}  // namespace starling
