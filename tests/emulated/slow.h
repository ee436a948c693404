// Emulated cards compute a thousand times slower than the processor. With STARLING_TEST_BACKEND=cuda-emulated tests take smaller cases.
#pragma once

#include <cstdlib>
#include <string_view>

namespace starling {

// The size of a case: the first, on an emulated card the second.
template <class T>
T unless_emulated(T size, T smaller) {
  const char* backend = std::getenv("STARLING_TEST_BACKEND");
  return backend != nullptr && std::string_view(backend) == "cuda-emulated" ? smaller : size;
}

}  // namespace starling
