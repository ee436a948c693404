// A translation with links between its bytes and those of the source, for transferring markup and for display.
#pragma once

#include <string>
#include <vector>

#include "base/range.h"

namespace starling {

struct AlignedText {
  struct Link {
    Range source, target;  // bytes
    bool operator==(const Link&) const = default;
  };
  std::string text;
  std::vector<Link> links;  // by target token; empty if not requested
};

}  // namespace starling
