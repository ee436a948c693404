// Whether the tests of emulated cards run on a real one (use_card.cpp), whose sums have other orders and whose functions other last digits.
#pragma once

#include <cstdlib>
#include <string_view>

namespace starling {

inline bool on_real_card() {
  const char* asked = std::getenv("STARLING_TEST_BACKEND");
  return asked != nullptr && std::string_view(asked).starts_with("card");
}

}  // namespace starling
