// The tests of emulated cards on a real one. With STARLING_TEST_BACKEND=card in the environment what they call cuda-emulated is the first
// card; with card-all what they call cpu is, too. Registered when the tests begin, so after the emulated cards.
#include <gtest/gtest.h>

#include "backend/backend.h"
#include "tests/card/real_card.h"

namespace starling::cuda {
std::unique_ptr<Backend> make_cuda_backend(int device, DType activation);  // these tests see the header of emulated cards
int64_t bytes_taken(const Memory& card);
}  // namespace starling::cuda

namespace starling {
namespace {

class RealCard : public testing::Environment {
 public:
  void SetUp() override {
    if (!on_real_card()) return;
    bytes_taken_on_real_card = cuda::bytes_taken;
    const auto add = [](const char* spec, DType activation) {
      register_backend(spec, [activation](int) { return cuda::make_cuda_backend(0, activation); });
    };
    add("cuda-emulated:f32", DType::f32);
    add("cuda-emulated:bf16", DType::bf16);
    if (std::string_view(std::getenv("STARLING_TEST_BACKEND")) != "card-all") return;
    add("cpu", DType::f32);
    add("cpu:f32", DType::f32);
    add("cpu:bf16", DType::bf16);
  }
};
const auto* const kRealCard = testing::AddGlobalTestEnvironment(new RealCard);

}  // namespace
}  // namespace starling
