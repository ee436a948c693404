// The texts that the translations of lines begin with: behind a tab in each line, or in a file of their own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/line_reader.h"

namespace starling {

struct TranslateOptions;

class Beginnings {
 public:
  explicit Beginnings(const TranslateOptions& options);

  // Returns the beginnings of the next lines and leaves their sources in `lines`; none if lines have no beginnings. At what is wrong, the
  // line and those after it are dropped, and wrong() says why.
  std::vector<std::string> take(std::vector<std::string>& lines);
  const std::string& wrong() const { return wrong_; }
  // Returns a warning, a sentence that ends with a line break, if the file has more beginnings than there were lines; else "".
  std::string warning();

 private:
  std::vector<std::string> cut_off(std::vector<std::string>& lines);
  std::vector<std::string> read(std::vector<std::string>& lines);

  const bool tsv_;
  const std::string input_;  // as messages call it
  std::optional<LineReader> file_;
  int64_t lines_before_ = 0;
  std::string wrong_;
};

}  // namespace starling
