// Messages that are lost and sent again, late, carried twice, or held up by a network that is cut: each arrives once, whole, at a time
// that follows from the fault.
#include <set>

#include "tests/sim/common.h"

namespace starling {
namespace {

constexpr int64_t kUs = 1'000, kMs = 1'000'000, kBytes = 40'000;  // which take 40 us

Scenario with(const MessageFault& fault) {
  Scenario s = plain(2);
  s.message_faults = {fault};
  return s;
}

// When each of some messages from rank 0 to rank 1 has arrived; all are sent at once.
std::vector<int64_t> arrivals(const Scenario& s, int count, SimulationResult* result = nullptr) {
  std::vector<int64_t> all;
  const auto r = simulate(s, [&](World& w) {
    std::vector<Pending> sent;
    for (int i = 0; i < count; ++i) {
      if (w.comm->rank() == 0) {
        sent.push_back(w.comm->send(floats(kBytes / 4, i), 1, i));
      } else {
        const Tensor x = floats(kBytes / 4);
        w.comm->receive(x, 0, i).wait();
        EXPECT_EQ(x.to_doubles().back(), i);
        all.push_back(w.clock->now_ns());
      }
    }
    for (const Pending& p : sent) p.wait();
  });
  EXPECT_EQ(r.ranks[0].traffic.bytes_sent, count * kBytes);
  EXPECT_EQ(r.ranks[1].traffic.bytes_received, count * kBytes);
  if (result) *result = r;
  return all;
}

TEST(MessageFaults, LostOnesAreSentAgainAfterWaitsThatDouble) {
  SimulationResult result;
  const Scenario s = with({.lost = 0.5, .retry_ms = 100});
  const std::vector<int64_t> times = arrivals(s, 1000, &result);
  // A message is sent n + 1 times with probability 2^-(n + 1): on average it is lost once.
  EXPECT_NEAR(static_cast<double>(result.lost), 1000, 140);  // three standard deviations
  // Some message is lost three times: it comes after 100 + 200 + 400 ms.
  EXPECT_GT(times.back(), 700 * kMs);
  EXPECT_EQ(arrivals(s, 1000), times) << "a function of the seed";
  Scenario other = s;
  other.seed = 2;
  EXPECT_NE(arrivals(other, 1000), times);
}

TEST(MessageFaults, OnlyWhileTheyLast) {
  // Lost until 150 ms, with certainty as good as it gets: tries begin at 0, 100.04 and 300.08 ms.
  SimulationResult result;
  std::set<int64_t> seen;
  for (uint64_t seed = 1; seed < 60; ++seed) {
    Scenario s = with({.until_s = 0.15, .lost = 0.9, .retry_ms = 100});
    s.seed = seed;
    const int64_t arrived = arrivals(s, 1, &result).front();
    ASSERT_LE(result.lost, 2);
    const int64_t began[] = {0, 100 * kMs + 40 * kUs, 300 * kMs + 80 * kUs};
    EXPECT_EQ(arrived, began[result.lost] + 40 * kUs + kLatency) << result.lost;
    seen.insert(result.lost);
  }
  EXPECT_THAT(seen, testing::ElementsAre(0, 1, 2));
}

TEST(MessageFaults, DelaysAreEvenlyDistributed) {
  SimulationResult result;
  Scenario s = with({.delayed = 0.25, .delay_ms = 50});
  s.network.inter.bandwidth_gbit_s = 8e4;  // a message takes 4 ns: only the delays count
  double sum = 0;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    s.seed = seed;
    const int64_t late = arrivals(s, 1, &result).front() - 4 - kLatency;
    EXPECT_EQ(late > 0, result.delayed == 1);
    EXPECT_LE(late, 50 * kMs);
    sum += static_cast<double>(late);
  }
  EXPECT_NEAR(sum / 400 / kMs, 0.25 * 25, 2.0);  // three standard errors
}

TEST(MessageFaults, DoubledOnesTakeTheLinkTwice) {
  SimulationResult result;
  const std::vector<int64_t> times = arrivals(with({.doubled = 1}), 10, &result);
  EXPECT_EQ(result.doubled, 10);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(times[static_cast<size_t>(i)], (80 * i + 40) * kUs + kLatency);
}

TEST(MessageFaults, ACutNetworkPassesNothingUntilItIsWhole) {
  Scenario s = plain(2);
  s.link_faults = {{.node = 1, .from_s = 60e-6, .until_s = 3, .factor = 0}};
  const std::vector<int64_t> times = arrivals(s, 3);
  // The second message is cut off in its middle: half of it arrives with the rest of the network's time.
  // Node 1 receives from 10 us on, when the first bytes arrive.
  EXPECT_EQ(times[0], 40 * kUs + kLatency);
  EXPECT_EQ(times[1], 3000 * kMs + 30 * kUs);
  EXPECT_EQ(times[2], 3000 * kMs + 70 * kUs);
  s.link_faults[0].until_s = 1e9;
  EXPECT_THAT(error_of(s,
                       [](World& w) {
                         w.comm->set_deadline(30);
                         w.comm->all_reduce(floats(1 << 22)).wait();
                       }),
              testing::HasSubstr("waited 30 s"));
}

// Within a node there is no network.
TEST(MessageFaults, SpareRanksOfOneNode) {
  Scenario s = with({.lost = 0.9, .delayed = 1, .doubled = 1});
  s.network.ranks_per_node = 2;
  SimulationResult result;
  arrivals(s, 5, &result);
  EXPECT_EQ(result.lost + result.delayed + result.doubled, 0);
}

TEST(MessageFaults, AreRefusedWhereNoMessagesAreSent) {
  Scenario s = with({.lost = 0.1});
  s.modelled_collectives = true;
  EXPECT_THAT(error_of<ConfigError>(s, [](World&) {}), testing::HasSubstr("modelled-collectives"));
  s.message_faults.clear();
  s.link_faults = {{.factor = 0}};
  EXPECT_THAT(error_of<ConfigError>(s, [](World&) {}), testing::HasSubstr("modelled-collectives"));
}

}  // namespace
}  // namespace starling
