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

/// Returns `second`, the translation of the text of `first`, with links to the source of `first`: each link of `second` leads on by the
/// link of `first` with whose target it shares most bytes, the first of several. Links that share none are left out.
AlignedText linked_through(const AlignedText& first, AlignedText second);

}  // namespace starling
