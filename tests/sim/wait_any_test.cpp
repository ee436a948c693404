// Waiting for any of several operations: in the order of their ends, to the nanosecond, with deadlines and ranks that are gone.
#include "tests/sim/common.h"

namespace starling {
namespace {

using testing::HasSubstr;

// Rank 0 receives from all others, which send after so many microseconds of computing; the order in which it takes the messages.
std::vector<size_t> served(const std::vector<int>& after_us, std::vector<int64_t>* times = nullptr) {
  std::vector<size_t> order;
  simulate(plain(static_cast<int>(after_us.size()) + 1), [&](World& w) {
    const int me = w.comm->rank();
    if (me > 0) {
      w.clock->spend(work(int64_t{1000} * after_us[static_cast<size_t>(me - 1)]), [] {});
      w.comm->send(floats(2, me), 0, 4).wait();
      return;
    }
    std::vector<Pending> open;
    std::vector<Tensor> x;
    for (size_t i = 0; i < after_us.size(); ++i) x.push_back(floats(2)), open.push_back(w.comm->receive(x[i], static_cast<int>(i) + 1, 4));
    std::vector<size_t> ranks(open.size());
    for (size_t i = 0; i < ranks.size(); ++i) ranks[i] = i + 1;
    while (!open.empty()) {
      const size_t i = wait_any(open);
      EXPECT_TRUE(open[i].done());
      EXPECT_EQ(x[i].to_doubles()[1], static_cast<double>(ranks[i]));
      order.push_back(ranks[i]);
      if (times) times->push_back(w.clock->now_ns());
      const auto at = static_cast<ptrdiff_t>(i);
      open.erase(open.begin() + at), x.erase(x.begin() + at), ranks.erase(ranks.begin() + at);
    }
  });
  return order;
}

TEST(WaitAny, GivesTheFirstToEndAndTakesNoTimeOfItsOwn) {
  std::vector<int64_t> times;
  EXPECT_EQ(served({30, 10, 20}, &times), (std::vector<size_t>{2, 3, 1}));
  EXPECT_EQ(times, (std::vector<int64_t>{10'000 + kLatency + 8, 20'000 + kLatency + 8, 30'000 + kLatency + 8}));
}

TEST(WaitAny, TiesFollowTheNumbersAndRepeat) {
  const auto first = served({10, 10, 10, 5});
  EXPECT_EQ(first, (std::vector<size_t>{4, 1, 2, 3}));
  EXPECT_EQ(served({10, 10, 10, 5}), first);
}

// Those that ended while the rank did something else are given in the order in which they ended, not in that of the list.
TEST(WaitAny, OfSeveralThatHaveEndedTheFirstOneCounts) {
  simulate(plain(4), [](World& w) {
    const int me = w.comm->rank();
    if (me > 0) {
      w.clock->spend(work(100'000 - 10'000 * me), [] {});
      w.comm->send(floats(1, me), 0, 1).wait();
      return;
    }
    std::vector<Pending> open;
    for (int r = 1; r < 4; ++r) open.push_back(w.comm->receive(floats(1), r, 1));
    w.clock->spend(work(1'000'000), [] {});
    const int64_t before = w.clock->now_ns();
    for (const size_t expected : {2u, 1u, 0u}) {
      EXPECT_EQ(wait_any(open), expected);
      open.pop_back();
    }
    EXPECT_EQ(w.clock->now_ns(), before);
  });
}

TEST(WaitAny, CollectivesAndMessagesTogether) {
  for (const bool modelled : {false, true}) {
    Scenario s = plain(2);
    s.modelled_collectives = modelled;
    simulate(s, [](World& w) {
      const Pending sum = w.comm->all_reduce(floats(1000, 1));
      if (w.comm->rank() == 0) {
        const std::vector<Pending> both = {w.comm->receive(floats(1), 1, 1), sum};
        EXPECT_EQ(wait_any(both), 1u);
        both[0].wait();
      } else {
        w.clock->spend(work(1'000'000), [] {});
        w.comm->send(floats(1), 0, 1).wait();
      }
      sum.wait();
    });
  }
}

TEST(WaitAny, DeadlineNamesEveryoneAndTheWaitCanBeRepeated) {
  simulate(plain(3), [](World& w) {
    if (w.comm->rank() > 0) {
      w.comm->note("validation", 120);
      w.clock->spend(work(5'000'000'000), [] {});
      if (w.comm->rank() == 2) w.comm->send(floats(1), 0, 9).wait();
      return;
    }
    w.comm->set_deadline(2);
    const std::vector<Pending> open = {w.comm->receive(floats(1), 1, 8), w.comm->receive(floats(1), 2, 9)};
    try {
      wait_any(open);
      ADD_FAILURE();
    } catch (const PeerError& e) {
      EXPECT_STREQ(
          e.what(),
          "rank 0 (node0): any of 2 operations waited 2 s; a message from rank 1 (tag 8): rank 1 (node1) has not sent it: it is in "
          "'validation' at update 120, a message from rank 2 (tag 9): rank 2 (node2) has not sent it: it is in 'validation' at "
          "update 120");
    }
    EXPECT_EQ(w.clock->now_ns(), 2'000'000'000);
    EXPECT_EQ(wait_any(open, 10), 1u);
    EXPECT_EQ(w.clock->now_ns(), 5'000'000'000 + kLatency + 4);
  });
}

TEST(WaitAny, ACrashedRankDoesNotHoldUpTheOthers) {
  Scenario s = plain(4);
  s.crashes = {{.rank = 1, .at_s = 1}};
  const auto result = simulate(s, [](World& w) {
    const int me = w.comm->rank();
    w.comm->set_deadline(20);
    if (me > 0) {
      for (int i = 0; i < 3; ++i) {
        w.clock->spend(work(2'000'000'000), [] {});
        w.comm->send(floats(1, i), 0, 1).wait();
      }
      return;
    }
    std::vector<Pending> open;
    for (int r = 1; r < 4; ++r) open.push_back(w.comm->receive(floats(1), r, 1));
    std::vector<int> taken(3);
    try {
      for (;;) {
        const size_t i = wait_any(open);
        if (++taken[i] == 3)
          open[i] = w.comm->receive(floats(1), 1, 2);  // who is through is not heard of again
        else
          open[i] = w.comm->receive(floats(1), static_cast<int>(i) + 1, 1);
      }
    } catch (const PeerError& e) {
      EXPECT_THAT(e.what(), HasSubstr("any of 3 operations waited 15 s; a message from rank 1 (tag 1): rank 1 (node1) has not sent it: it "
                                      "has crashed"));
    }
    EXPECT_EQ(taken, (std::vector<int>{0, 3, 3}));
  });
  EXPECT_THAT(result.ranks[1].error, HasSubstr("crashed"));
}

TEST(WaitAny, OfARankThatCrashesItselfOrOthersThatFail) {
  Scenario s = plain(2);
  s.crashes = {{.rank = 0, .at_s = 1}};
  const auto result = simulate(s, [](World& w) {
    if (w.comm->rank() == 1) {
      w.clock->spend(work(3'000'000'000), [] {});
      w.comm->send(floats(1), 0, 1);  // to nobody: the message's other side still exists
      return;
    }
    const std::vector<Pending> open = {w.comm->receive(floats(1), 1, 1), w.comm->receive(floats(1), 1, 2)};
    wait_any(open);
    ADD_FAILURE();
  });
  EXPECT_THAT(result.ranks[0].error, HasSubstr("crashed at 1 s"));
  EXPECT_EQ(error_of<DataError>(plain(2),
                                [](World& w) {
                                  if (w.comm->rank() == 1) throw DataError("corpus.en:7: broken");
                                  const std::vector<Pending> open = {w.comm->receive(floats(1), 1, 1), w.comm->receive(floats(1), 1, 2)};
                                  EXPECT_THROW(wait_any(open), PeerError);
                                }),
            "corpus.en:7: broken");
}

TEST(WaitAny, DeadlockSaysSo) {
  EXPECT_EQ(
      error_of(plain(2),
               [](World& w) {
                 if (w.comm->rank() == 0)
                   wait_any(std::vector<Pending>{w.comm->receive(floats(1), 1, 1), w.comm->receive(floats(1), 1, 2)});
               }),
      "deadlock: rank 0 waits for any of 2 operations: a message from rank 1 (tag 1): rank 1 (node1) has not sent it: it has ended, a "
      "message from rank 1 (tag 2): rank 1 (node1) has not sent it: it has ended");
}

}  // namespace
}  // namespace starling
