// Reads and writes the bytes of files of other programs: little-endian numbers, one after another.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/quotes.h"

namespace starling {

// Every read is checked; the errors begin with `where` and say that it cannot be read as `what`.
class ForeignBytes {
 public:
  ForeignBytes(std::string_view bytes, std::string where, std::string what)
      : bytes_(bytes), where_(std::move(where)), what_(std::move(what)) {}
  template <class T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string_view take(uint64_t size) {
    if (size > bytes_.size() - at_) broken("it is cut short");
    at_ += size;
    return bytes_.substr(at_ - size, size);
  }
  uint64_t size() const { return bytes_.size(); }
  // The name of an array: refused if a terminal could not show it, or if it is so long that it would hide the rest of a message.
  std::string name(std::string_view text) const {
    if (std::string name = printable(text); name == text) return name;
    broken(fmt::format("an array is called '{}'", printable(text)));
  }
  [[noreturn]] void broken(const std::string& why) const {
    throw DataError(fmt::format("{}: cannot be read as {} ({}); fetch the file again", where_, what_, why));
  }

 private:
  std::string_view bytes_;
  std::string where_, what_;
  uint64_t at_ = 0;
};

inline void append_number(std::string& to, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) to += i < 8 ? static_cast<char>(value >> (8 * i)) : '\0';
}

}  // namespace starling
