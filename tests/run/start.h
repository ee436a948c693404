// Runs of a few updates on a tiny text, as the command line would start them, with and without an architecture of their own.
#pragma once

#include <fstream>
#include <string>
#include <vector>

#include "tests/run/word_run.h"

namespace starling {

class StartTest : public WordRunTest {
 protected:
  // Without architecture and vocabulary.
  std::vector<Override> given(const std::string& run) const {
    std::vector<Override> all = WordRunTest::given(run);
    std::erase_if(all, [](const Override& o) { return o.first.starts_with("model.") || o.first.starts_with("vocab."); });
    return all;
  }
  std::string log(const std::string& run) const {
    std::ifstream file(path(run) + "/train.log");
    return {std::istreambuf_iterator<char>(file), {}};
  }
  template <class E>
  static std::string error(const Config& c) {
    return WordRunTest::error<E>([&] { run_training(c); });
  }
};

}  // namespace starling
