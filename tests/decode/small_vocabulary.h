// A joint vocabulary of twenty pieces of "ab ba abba" and the like.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <string>

#include "decode/model_directory.h"
#include "tests/text/small_vocabulary.h"

namespace starling {

inline Vocabularies small_vocabulary() {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("starling-small-vocabulary-" + std::to_string(::getpid()) + ".spm");
  train_small_vocabulary(path.string());
  Vocabularies result(Vocabulary::load(path.string()), std::nullopt);
  std::filesystem::remove(path);
  return result;
}

}  // namespace starling
