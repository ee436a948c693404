// Every op of the CUDA backend on an emulated card against the double-precision reference.
#include "tests/ops/parity.h"

namespace starling {
namespace {

// STARLING_TEST_CASES: only those whose names contain this.
std::string part() {
  const char* asked = std::getenv("STARLING_TEST_CASES");
  return asked == nullptr ? "" : asked;
}

TEST(CudaParity, F32MatchesReference) { compare_with_reference("cuda-emulated:f32", 2e-5, part()); }
TEST(CudaParity, Bf16MatchesReferenceToItsPrecision) { compare_with_reference("cuda-emulated:bf16", 0.02, part()); }

}  // namespace
}  // namespace starling
