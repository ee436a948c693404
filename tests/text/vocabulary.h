// Small texts to train vocabularies on, in a directory of the test's own.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "base/random.h"
#include "tests/data/fixtures.h"
#include "text/vocabulary.h"

namespace starling {

inline LineSource source_of(const std::vector<std::string>& lines) {
  return [&lines, at = size_t{0}](std::string_view& line) mutable {
    if (at == lines.size()) return false;
    line = lines[at++];
    return true;
  };
}

inline std::vector<std::string> nonsense_lines(int64_t count, uint64_t seed = 1) {
  static const char* const words[] = {"Haus",   "grün",    "laufen", "über",   "straße", "the",
                                      "runner", "running", "walks",  "walked", "blue",   "Mädchen"};
  Random random(seed, 0);
  std::vector<std::string> lines;
  while (count-- > 0) {
    std::string& line = lines.emplace_back();
    for (int i = 0; i < 8; ++i) line += std::string(words[random.below(std::size(words))]) + (i == 7 ? "." : " ");
  }
  return lines;
}

class VocabularyTest : public ::testing::Test {
 protected:
  VocabularyTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "starling-text-XXXXXX").string();
    directory_ = mkdtemp(pattern.data());
    options_.size = 60;
  }
  ~VocabularyTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }
  std::string path(const std::string& name = "v.model") const { return directory_ + "/" + name; }
  VocabularyReport train(const std::vector<std::string>& lines, const std::string& name = "v.model") const {
    return train_vocabulary(source_of(lines), options_, path(name));
  }
  std::string bytes(const std::string& name = "v.model") const {
    std::ostringstream out;
    out << std::ifstream(path(name), std::ios::binary).rdbuf();
    return out.str();
  }

  std::string directory_;
  VocabularyOptions options_;
};

}  // namespace starling
