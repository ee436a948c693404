// Each case of the table of ops as a test of its own, computed twice, so that a fault in one leaves the others alone; for real cards.
#include "tests/ops/parity.h"

namespace starling {
namespace {

class CardCase : public testing::TestWithParam<std::string> {
 protected:
  void compare(const std::string& spec, double tolerance) {
    const auto reference = make_backend("reference"), backend = make_backend(spec, 2);
    for (const OpCase& op : op_cases()) {
      if (op.name != GetParam()) continue;
      const auto expected = outputs_of(op, *reference), actual = outputs_of(op, *backend), again = outputs_of(op, *backend);
      ASSERT_EQ(expected.size(), actual.size());
      for (size_t i = 0; i < expected.size(); ++i) {
        ASSERT_EQ(expected[i].size(), actual[i].size()) << "output " << i;
        EXPECT_LT(worst_error(expected[i], actual[i]), tolerance) << "output " << i << " on " << backend->describe();
        EXPECT_EQ(actual[i], again[i]) << "output " << i << " differs between two runs";
      }
    }
  }
};
TEST_P(CardCase, F32) { compare("cuda-emulated:f32", 2e-5); }
TEST_P(CardCase, Bf16) { compare("cuda-emulated:bf16", 0.02); }

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const OpCase& op : op_cases()) all.push_back(op.name);
  return all;
}
std::string letters_of(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}
INSTANTIATE_TEST_SUITE_P(Ops, CardCase, testing::ValuesIn(names()), letters_of);

}  // namespace
}  // namespace starling
