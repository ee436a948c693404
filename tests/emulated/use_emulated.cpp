// Backends on emulated cards: "cuda-emulated:f32" and "cuda-emulated:bf16". With STARLING_TEST_BACKEND=cuda-emulated in the environment
// make_backend gives these in place of the CPU's, so that tests of what is above run on them (tests/CMakeLists.txt, label `emulated`).
#include <cstdlib>
#include <string_view>

#include "backend/cuda/cuda.h"
#include "tests/emulated/emulator.h"

namespace starling {
namespace {

bool register_emulated() {
  setenv("STARLING_POISON", "1", 1);  // what an arena gives out again is not a number
  const auto add = [](const char* spec, DType activation) {
    register_backend(spec, [activation](int) { return STARLING_CUDA::make_cuda_backend(emulated_cuda::card_of_thread(), activation); });
  };
  add("cuda-emulated:f32", DType::f32), add("cuda-emulated:bf16", DType::bf16);
  const char* asked = std::getenv("STARLING_TEST_BACKEND");
  if (asked == nullptr || std::string_view(asked) != "cuda-emulated") return false;
  add("cpu", DType::f32), add("cpu:f32", DType::f32), add("cpu:bf16", DType::bf16);
  return true;
}

const bool kRegistered = register_emulated();

}  // namespace
}  // namespace starling
