// Whether the tests of emulated cards run on a real one (use_card.cpp), whose sums have other orders and whose functions other last digits.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace starling {

class Memory;

inline bool on_real_card() {
  const char* asked = std::getenv("STARLING_TEST_BACKEND");
  return asked != nullptr && std::string_view(asked).starts_with("card");
}

// As cuda.h's, of a real card; set by use_card.cpp, since these tests see the header of emulated cards.
inline int64_t (*bytes_taken_on_real_card)(const Memory&) = nullptr;

}  // namespace starling
