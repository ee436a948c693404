// Waiting for any of several operations, where nothing is ever under way; the worlds with more ranks have tests of their own.
#include <gtest/gtest.h>

#include "comm/world.h"

namespace starling {
namespace {

// An operation that has not ended, and gives the position it is asked for.
class Open : public Operation {
 public:
  bool done() override { return false; }
  void wait(double) override { throw PeerError("waited for one"); }
  size_t wait_any(std::span<Operation* const> operations, double deadline_s) override {
    EXPECT_EQ(operations[0], this);
    deadline = deadline_s;
    return operations.size() - 1;
  }
  double deadline = 0;
};

TEST(WaitAny, OfNothingEndsAtOnce) {
  const World world = make_local_world();
  const std::vector<Pending> both = {world.comm->barrier(), world.comm->all_reduce(Tensor({4}, DType::f32))};
  EXPECT_EQ(wait_any(both), 0u);
  EXPECT_EQ(wait_any(std::vector<Pending>{Pending(std::make_shared<Open>(), 1), Pending(), Pending()}), 1u);
  EXPECT_THROW(wait_any(std::vector<Pending>{}), InternalError);
}

TEST(WaitAny, TheShortestDeadlineCounts) {
  const auto open = std::make_shared<Open>();
  const std::vector<Pending> three = {Pending(open, 30), Pending(std::make_shared<Open>(), 10), Pending(std::make_shared<Open>(), 20)};
  EXPECT_EQ(wait_any(three), 2u);
  EXPECT_EQ(open->deadline, 10);
  EXPECT_EQ(wait_any(three, 5), 2u);
  EXPECT_EQ(open->deadline, 5);
}

}  // namespace
}  // namespace starling
