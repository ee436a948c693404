// A translation that knows which of its bytes came from which bytes of the source, for whoever moves markup or shows it.
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
  std::vector<Link> links;  // by target token; none if nobody asked
};

}  // namespace starling
