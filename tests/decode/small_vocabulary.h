// A joint vocabulary of twenty pieces of "ab ba abba" and the like.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <string>

#include "decode/model_directory.h"

namespace starling {

inline Vocabularies small_vocabulary() {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("starling-small-vocabulary-" + std::to_string(::getpid()) + ".spm");
  int next = 0;
  train_vocabulary(
      [&](std::string_view& line) {
        line = next % 2 ? "ab ba abba" : "baab ab aa";
        return next++ < 200;
      },
      {.size = 20}, path.string());
  Vocabularies result(Vocabulary::load(path.string()), std::nullopt);
  std::filesystem::remove(path);
  return result;
}

}  // namespace starling
