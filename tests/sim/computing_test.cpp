// How long a piece of computing takes: kinds of work, jitter that lasts, a node for itself, and a communication thread that takes a core.
#include <numeric>

#include "tests/sim/common.h"

namespace starling {
namespace {

// Nanoseconds of a run of one body on every rank.
int64_t duration(const Scenario& s, const std::function<void(World&)>& body) { return simulate(s, body).virtual_ns; }

TEST(Computing, CodingHasARateOfItsOwnOrThatOfTheMemory) {
  Scenario s = plain(1);
  s.compute.memory_gb_s = 2;
  const auto codes = [](World& w) { w.clock->spend({Work::coding, 0, 6000}, [] {}); };
  EXPECT_EQ(duration(s, codes), 3000);
  s.compute.coding_gb_s = 6;
  EXPECT_EQ(duration(s, codes), 1000);
  s.compute.coding_gb_s = 0;
  EXPECT_EQ(duration(s, codes), 0);
}

TEST(Computing, ARankWithANodeForItselfIsFaster) {
  const auto ends = [](int ranks, int64_t per_node) {
    Scenario s = plain(ranks);
    s.network.ranks_per_node = per_node;
    s.compute.alone_speed = 2;
    std::vector<int64_t> times;
    for (const RankReport& r : simulate(s, [](World& w) { w.clock->spend(work(1000), [] {}); }).ranks) times.push_back(r.finished_ns);
    return times;
  };
  EXPECT_EQ(ends(1, 4), std::vector<int64_t>({500}));
  EXPECT_EQ(ends(2, 1), std::vector<int64_t>({500, 500}));
  EXPECT_EQ(ends(2, 2), std::vector<int64_t>({1000, 1000}));
  EXPECT_EQ(ends(3, 2), std::vector<int64_t>({1000, 1000, 500})) << "the last node has one rank";
}

// By hand: of a node whose ranks are 1.5 times as fast alone, rank 1 is done at 400 and waits; rank 0 has 600 of its 1000 left, which take
// 400. With four ranks, k of which compute, a rank's speed is 1 + 0.5 (4 / k - 1) / 3.
TEST(Computing, ARankIsFasterWhileOthersOfItsNodeWait) {
  for (const bool timing : {false, true}) {
    const auto ends = [&](const std::vector<std::vector<int64_t>>& pieces, int64_t per_node) {
      Scenario s = plain(static_cast<int>(pieces.size()));
      s.network.ranks_per_node = per_node;
      s.compute.alone_speed = 1.5;
      s.timing_only = timing;
      const auto body = [&](World& w) {
        for (const int64_t each : pieces[static_cast<size_t>(w.comm->rank())]) {
          if (each < 0)
            w.clock->sleep_until(-each);
          else
            w.clock->spend(work(each), [] {});
        }
      };
      std::vector<int64_t> times;
      for (const RankReport& r : simulate(s, body).ranks) times.push_back(r.finished_ns);
      return times;
    };
    EXPECT_EQ(ends({{1000}, {400}}, 2), std::vector<int64_t>({800, 400})) << timing;
    EXPECT_EQ(ends({{500, 500}, {400}}, 2), std::vector<int64_t>({800, 400})) << "however the work is cut";
    EXPECT_EQ(ends({{1500}, {-200, 300}}, 2), std::vector<int64_t>({1100, 500})) << "200 alone: 300; 300 beside the other; 900 alone: 600";
    EXPECT_EQ(ends({{1000}, {400}, {1000}}, 2), std::vector<int64_t>({800, 400, 667})) << "the third has a node for itself";
    // Four at speed 1 until 100; three at 1 + 0.5 / 9 = 1.0556 until 200, so that 794.4 are left; one at 1.5.
    EXPECT_EQ(ends({{1000}, {100}, {206}, {206}}, 4)[0], 730) << timing;
    EXPECT_EQ(ends({{1000}, {1000}}, 2), std::vector<int64_t>({1000, 1000}));
    EXPECT_EQ(ends({{600}, {600}, {600}, {600}, {600}, {600}}, 4)[4], 514) << "two of a node for four: at 1 + 0.5 / 3";
  }
}

// The times of `pieces` equal pieces, one after the other.
std::vector<int64_t> piece_times(const Scenario& s, int pieces, int64_t each) {
  std::vector<int64_t> times;
  simulate(s, [&](World& w) {
    for (int i = 0; i < pieces; ++i) {
      const int64_t start = w.clock->now_ns();
      w.clock->spend(work(each), [] {});
      times.push_back(w.clock->now_ns() - start);
    }
  });
  return times;
}
int64_t total(const std::vector<int64_t>& times) { return std::accumulate(times.begin(), times.end(), int64_t{0}); }

Scenario with_spells(double jitter, double ms) {
  Scenario s = plain(1);
  s.jitter = jitter;
  s.jitter_ms = ms;
  return s;
}

TEST(Computing, ASlowSpellLastsHoweverTheWorkIsCut) {
  const Scenario s = with_spells(0.2, 1);
  const int64_t whole = total(piece_times(s, 1, 20'000'000));
  EXPECT_NE(whole, 20'000'000);
  for (const int pieces : {4, 50, 1000}) EXPECT_NEAR(total(piece_times(s, pieces, 20'000'000 / pieces)), whole, pieces) << pieces;
  // Within a spell all pieces take equally long.
  const std::vector<int64_t> first = piece_times(s, 9, 50'000);
  for (const int64_t time : first) EXPECT_NEAR(time, first.front(), 1);
}

TEST(Computing, SpellsHaveMeanOneAndTheGivenDeviation) {
  const int n = 20'000;
  // A piece per spell: pieces are so short that they do not reach into the next one, and a pause leads there.
  std::vector<double> factors;
  simulate(with_spells(0.1, 1), [&](World& w) {
    for (int i = 0; i < n; ++i) {
      w.clock->sleep_until(int64_t{i} * 1'000'000);
      const int64_t start = w.clock->now_ns();
      w.clock->spend(work(100'000), [] {});
      factors.push_back(static_cast<double>(w.clock->now_ns() - start) / 100'000);
    }
  });
  double sum = 0, squares = 0;
  for (const double f : factors) sum += f / n, squares += f * f / n;
  EXPECT_NEAR(sum, 1, 4 * 0.1 / std::sqrt(n));
  EXPECT_NEAR(std::sqrt(squares - sum * sum), 0.1, 4 * 0.1 / std::sqrt(2 * n));
}

TEST(Computing, RanksHaveSpellsOfTheirOwn) {
  Scenario s = with_spells(0.2, 1);
  s.ranks = 2;
  std::vector<int64_t> ends;
  for (const RankReport& r : simulate(s, [](World& w) { w.clock->spend(work(500'000), [] {}); }).ranks) ends.push_back(r.finished_ns);
  EXPECT_NE(ends[0], ends[1]);
}

// Both ranks compute while a message passes: its time on the link is taken from their computing, half from each.
TEST(Computing, ACommunicationThreadThatSharesACoreSlowsComputing) {
  const auto ends = [](double slows, bool computes, double within_a_node = 8) {
    Scenario s = plain(2);
    s.compute.exchange_slows = slows;
    s.network.intra.bandwidth_gbit_s = within_a_node;
    std::vector<int64_t> times;
    const SimulationResult result = simulate(s, [&](World& w) {
      const Pending message = w.comm->rank() == 0 ? w.comm->send(phantom(400'000), 1, 5) : w.comm->receive(phantom(400'000), 0, 5);
      if (computes)
        for (int i = 0; i < 2; ++i) w.clock->spend(work(1'000'000), [] {});
      message.wait();
    });
    for (const RankReport& r : result.ranks) times.push_back(r.finished_ns);
    return times;
  };
  EXPECT_EQ(ends(0, true), std::vector<int64_t>({2'000'000, 2'000'000}));
  EXPECT_EQ(ends(1, true), std::vector<int64_t>({2'200'000, 2'200'000}));
  EXPECT_EQ(ends(0.5, true), std::vector<int64_t>({2'100'000, 2'100'000}));
  EXPECT_EQ(ends(1, false), std::vector<int64_t>({400'000, 400'000 + kLatency})) << "ranks that wait lose nothing";
  // Where memory is faster than the link, the thread mostly waits, too.
  EXPECT_EQ(ends(1, true, 80), std::vector<int64_t>({2'020'000, 2'020'000}));
}

// Sums within a collective count too, modelled or message by message, with computing or timed only.
TEST(Computing, ACollectivesArithmeticSlowsComputing) {
  const auto ends = [](double slows, bool modelled, bool timing_only) {
    Scenario s = plain(2);
    s.network.inter = {.latency_us = 0, .bandwidth_gbit_s = 1e6, .message_us = 0};
    s.compute.memory_gb_s = 1;
    s.compute.exchange_slows = slows;
    s.modelled_collectives = modelled;
    s.timing_only = timing_only;
    return simulate(s,
                    [&](World& w) {
                      const Tensor x = floats(50'000);
                      const Pending sum = w.comm->all_reduce(x);
                      w.clock->spend(work(10'000'000), [] {});
                      w.clock->spend({Work::memory, 0, 1}, [] {});  // of another kind before the rank is heard of again
                      const Pending barrier = w.comm->barrier();
                      w.clock->spend(work(10'000'000), [] {});
                      sum.wait();
                      barrier.wait();
                    })
        .virtual_ns;
  };
  // A ring of two adds half of the elements: 12 bytes an element.
  for (const bool modelled : {false, true})
    for (const bool timing_only : {false, true}) {
      EXPECT_NEAR(static_cast<double>(ends(0, modelled, timing_only)), 20'000'000, 2000) << modelled << timing_only;
      EXPECT_NEAR(static_cast<double>(ends(1, modelled, timing_only)), 20'000'000 + 25'000 * 12, 3000) << modelled << timing_only;
    }
}

}  // namespace
}  // namespace starling
