// A vocabulary that is trained in a moment.
#pragma once

#include <string>

#include "text/vocabulary.h"

namespace starling {

// Writes one of twenty pieces of "ab ba abba" and the like.
inline void train_small_vocabulary(const std::string& path) {
  int next = 0;
  train_vocabulary(
      [&](std::string_view& line) {
        line = next % 2 ? "ab ba abba" : "baab ab aa";
        return next++ < 200;
      },
      {.size = 20}, path);
}

}  // namespace starling
