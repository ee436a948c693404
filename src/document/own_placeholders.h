// Placeholders that a user names by regular expressions, in addition to those that find_placeholders() knows.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/range.h"

namespace starling {

class OwnPlaceholders {
 public:
  /// Expressions are in RE2's syntax, whose search takes linear time. Throws ConfigError, naming `option`, for one that is wrong, or that
  /// matches the empty text.
  OwnPlaceholders(const std::vector<std::string>& expressions, const std::string& option);
  ~OwnPlaceholders();
  OwnPlaceholders(const OwnPlaceholders&) = delete;
  OwnPlaceholders& operator=(const OwnPlaceholders&) = delete;

  /// Adds the matches in a text to ranges that are in order; those that overlap become one.
  void add_to(std::vector<Range>& found, std::string_view text) const;

 private:
  class Expression;
  std::vector<std::unique_ptr<Expression>> expressions_;
};

}  // namespace starling
