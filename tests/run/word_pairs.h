// A parallel corpus that a tiny model learns in seconds: random words, each translated into its counterpart from the other end of the list.
#pragma once

#include <fstream>
#include <string>

#include "base/random.h"

namespace starling {

// Lines of `shortest` to `shortest + spread - 1` words out of the first `words` (at most 8) of the list.
inline void write_word_pairs(const std::string& source_path, const std::string& target_path, int lines, int words, int shortest,
                             int spread) {
  const char* const list[] = {"red", "blue", "dog", "cat", "house", "tree", "runs", "sees"};
  Random random(1, 1);
  std::ofstream source(source_path), target(target_path);
  for (int i = 0; i < lines; ++i) {
    for (int n = shortest + static_cast<int>(random.below(static_cast<uint64_t>(spread))); n > 0; --n) {
      const auto w = static_cast<int>(random.below(static_cast<uint64_t>(words)));
      source << list[w] << ' ', target << list[words - 1 - w] << ' ';
    }
    source << '\n', target << '\n';
  }
}

// Lines of three words that do not belong together: little is to be learned, so that the gradient's noise soon is more than its signal.
inline void write_unrelated(const std::string& source_path, const std::string& target_path, int lines) {
  const char* const list[] = {"red", "blue", "dog", "cat", "house", "tree", "runs", "sees"};
  Random random(2, 1);
  std::ofstream source(source_path), target(target_path);
  for (std::ofstream* side : {&source, &target})
    for (int i = 0; i < lines; ++i) {
      for (int n = 0; n < 3; ++n) *side << (n > 0 ? " " : "") << list[random.below(std::size(list))];
      *side << "\n";
    }
}

}  // namespace starling
