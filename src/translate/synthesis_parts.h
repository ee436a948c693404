// What the parts of a synthetic text are made from, and what is counted of them.
#pragma once

#include <cstdint>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "data/line_reader.h"

namespace starling {

// Counts of a part, or of several.
struct PartCounts {
  int64_t lines = 0, pairs = 0;
  int64_t blank = 0, too_long = 0;    // lines that are left out
  int64_t unfinished = 0, empty = 0;  // translations that are left out
  int64_t tokens = 0;                 // of the others
  static constexpr int64_t PartCounts::*kAll[] = {&PartCounts::lines,      &PartCounts::pairs, &PartCounts::blank, &PartCounts::too_long,
                                                  &PartCounts::unfinished, &PartCounts::empty, &PartCounts::tokens};
  // Writes and adds the counts as a line of numbers.
  std::string text() const {
    std::string all;
    for (const auto count : kAll) all += fmt::format("{} ", this->*count);
    return all;
  }
  void add(const std::string& note) {
    std::istringstream in(note);
    for (const auto count : kAll) {
      int64_t number = 0;
      in >> number;
      this->*count += number;
    }
  }
};

// The lines of several files, one after the other.
class InputLines {
 public:
  explicit InputLines(const std::vector<std::string>& paths) : paths_(paths) {}
  bool next(std::string_view& line) {
    for (;; reader_.reset()) {
      if (!reader_) {
        if (at_ == paths_.size()) return false;
        reader_.emplace(paths_[at_++]);
      }
      if (reader_->next(line)) return true;
    }
  }
  // Returns the next lines, blank ones included.
  std::vector<std::string> take(int64_t lines) {
    std::vector<std::string> taken;
    std::string_view line;
    while (std::ssize(taken) < lines && next(line)) taken.emplace_back(line);
    return taken;
  }
  void skip(int64_t lines) {
    std::string_view line;
    for (int64_t i = 0; i < lines && next(line);) ++i;
  }

 private:
  const std::vector<std::string>& paths_;
  size_t at_ = 0;
  std::optional<LineReader> reader_;
};

}  // namespace starling
