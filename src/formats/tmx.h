// Translation memories in TMX, versions 1.1 to 1.4, read as their bytes come.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>

namespace starling {

class TmxReader {
 public:
  /// Puts the next bytes of the file, in UTF-8 or UTF-16, into `data` and returns their number; 0 at the end.
  using Read = std::function<size_t(char* data, size_t capacity)>;

  /// Reads the segments of two languages, codes such as "en" or "pt-BR". A segment of just that code comes before one of another region.
  /// source "": the file's srclang; target "": the only other language.
  TmxReader(Read read, std::string source, std::string target);

  /// Gets the segments of the next unit that has both languages, without their inline elements, white space as single spaces; returns false
  /// at the end. Throws DataError for a unit without an end.
  bool next(std::string& source, std::string& target);
  /// Throws DataError, which lists the languages that are there, if no unit had both.
  void require_pairs() const;

  static constexpr size_t kMostUnitBytes = size_t{16} << 20;

 private:
  bool fill();
  bool find_unit(std::string_view& unit);
  void skip_to(size_t at);

  Read read_;
  std::string source_, target_;
  std::set<std::string> languages_;
  std::string raw_;     // bytes of UTF-16 that are not decoded yet
  std::string buffer_;  // UTF-8 from at_ on not read yet
  size_t at_ = 0;
  int64_t line_ = 1, pairs_ = 0;
  enum class Encoding : uint8_t { unknown, utf8, little, big } encoding_ = Encoding::unknown;
  char32_t high_ = 0;  // the first half of a surrogate pair
  bool header_read_ = false, ended_ = false;
};

}  // namespace starling
