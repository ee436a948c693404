// Loops over a part of the cases must not be loops over none.
#include "tests/whole_matrix.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace starling {
namespace {

class WholeMatrix : public testing::Test {
 protected:
  WholeMatrix() {
    if (const char* value = std::getenv(kName)) before_ = value;
    unsetenv(kName);
  }
  ~WholeMatrix() override {
    if (before_) {
      setenv(kName, before_->c_str(), 1);
    } else {
      unsetenv(kName);
    }
  }

  static constexpr const char* kName = "STARLING_WHOLE_MATRIX";
  std::optional<std::string> before_;
};

TEST_F(WholeMatrix, HasAllCasesAndAChangeTheFirstOnes) {
  EXPECT_EQ(of_cases(250, 40), 40);
  EXPECT_EQ(of_cases<int>({4, 2, 8}, 2), (std::vector<int>{4, 2}));
  EXPECT_EQ(of_cases<int>({4, 2}, 5), (std::vector<int>{4, 2}));
  setenv(kName, "1", 1);
  EXPECT_EQ(of_cases(250, 40), 250);
  EXPECT_EQ(of_cases<int>({4, 2, 8}, 2), (std::vector<int>{4, 2, 8}));
}

}  // namespace
}  // namespace starling
