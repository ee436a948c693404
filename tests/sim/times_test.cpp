// Virtual times against closed forms.
#include "tests/sim/common.h"

namespace starling {
namespace {

using Body = std::function<void(World&)>;

// When each rank ended.
std::vector<int64_t> ends(const Scenario& s, const Body& body) {
  std::vector<int64_t> times;
  for (const RankReport& r : simulate(s, body).ranks) times.push_back(r.finished_ns);
  return times;
}

void one_message(World& w, int64_t bytes) {
  if (w.comm->rank() == 0) w.comm->send(phantom(bytes), 1, 5).wait();
  if (w.comm->rank() == 1) w.comm->receive(phantom(bytes), 0, 5).wait();
}

TEST(Times, MessageIsLatencyAndBytesOverBandwidth) {
  for (const int64_t bytes : {1, 1000, 1'000'000})
    EXPECT_EQ(ends(plain(2), [&](World& w) { one_message(w, bytes); }), (std::vector<int64_t>{bytes, kLatency + bytes}));
}

TEST(Times, SendersSoftwareComesFirst) {
  Scenario s = plain(2);
  s.network.inter.message_us = 3;
  EXPECT_EQ(ends(s, [](World& w) { one_message(w, 500); }), (std::vector<int64_t>{3500, 13'500}));
}

TEST(Times, LongMessagesWaitForTheReceiver) {
  Scenario s = plain(2);
  s.network.eager_bytes = 999;
  const auto late = [](int64_t bytes) {
    return [=](World& w) {
      if (w.comm->rank() == 1) w.clock->spend(work(50'000), [] {});
      one_message(w, bytes);
    };
  };
  EXPECT_EQ(ends(s, late(999)), (std::vector<int64_t>{999, 50'000}));
  EXPECT_EQ(ends(s, late(1000)), (std::vector<int64_t>{50'000 + kLatency + 1000, 50'000 + 2 * kLatency + 1000}));
}

TEST(Times, WithinANodeTheOtherLinkCounts) {
  Scenario s = plain(2);
  s.network.ranks_per_node = 2;
  EXPECT_EQ(ends(s, [](World& w) { one_message(w, 10'000); }), (std::vector<int64_t>{1000, 2000}));
}

TEST(Times, ManySendersShareTheReceiversCard) {
  const int N = 8;
  const int64_t M = 100'000;
  const auto times = ends(plain(N + 1), [&](World& w) {
    if (w.comm->rank() < N) return w.comm->send(phantom(M), N, 0).wait();
    std::vector<Pending> all;
    for (int r = 0; r < N; ++r) all.push_back(w.comm->receive(phantom(M), r, 0));
    for (const Pending& p : all) p.wait();
  });
  EXPECT_EQ(times.back(), kLatency + N * M);
}

TEST(Times, RanksOfANodeShareTheirCardAndDirectionsDoNot) {
  Scenario s = plain(4);
  s.network.ranks_per_node = 2;
  const int64_t M = 100'000;
  // 0 and 1 send to 2 and 3, and the other way.
  const auto times = ends(s, [&](World& w) {
    const int peer = (w.comm->rank() + 2) % 4;
    const Pending in = w.comm->receive(phantom(M), peer, 0), out = w.comm->send(phantom(M), peer, 0);
    in.wait();
    out.wait();
  });
  EXPECT_EQ(*std::max_element(times.begin(), times.end()), kLatency + 2 * M);
}

TEST(Times, NetworkCardsOfANodeServeTheirRanksOnly) {
  const int64_t M = 100'000;
  const auto last = [&](int64_t cards, int64_t ranks) {
    Scenario s = plain(8);
    s.network.ranks_per_node = 4, s.network.cards_per_node = cards;
    const auto times = ends(s, [&](World& w) {  // the first ranks of both nodes to one another
      if (w.comm->rank() % 4 >= ranks) return;
      const int peer = (w.comm->rank() + 4) % 8;
      const Pending in = w.comm->receive(phantom(M), peer, 0), out = w.comm->send(phantom(M), peer, 0);
      in.wait();
      out.wait();
    });
    return *std::max_element(times.begin(), times.end());
  };
  EXPECT_EQ(last(0, 4), kLatency + 4 * M);
  EXPECT_EQ(last(2, 4), kLatency + 2 * M);
  EXPECT_EQ(last(2, 2), kLatency + 2 * M);  // they have one, the other idles
  EXPECT_EQ(last(4, 4), kLatency + M);
  EXPECT_EQ(last(9, 4), kLatency + M);
}

TEST(Times, GpusReduceOverTheirOwnLinks) {
  const int N = 8;
  const int64_t bytes = 240'000'000;  // of transformer-base's gradients
  for (const bool modelled : {false, true}) {
    Scenario s;
    s.ranks = N, s.network.ranks_per_node = N, s.network.gpu = "h200", s.network.eager_bytes = int64_t{1} << 40;
    s.compute = gpu_rates("h200");
    s.modelled_collectives = modelled;
    const auto times = ends(s, [&](World& w) {
      w.comm->set_algorithm(Algorithm::ring);
      w.comm->all_reduce(phantom(bytes)).wait();
    });
    const double step_us = 8 + 2 + 1e6 * bytes / N / 360e9, add_us = 1e6 * 3 * bytes / N / 4.3e12;
    EXPECT_NEAR(1e-3 * static_cast<double>(*std::max_element(times.begin(), times.end())), 14 * step_us + 7 * add_us, 1);
  }
}

TEST(Times, RingTakesItsClosedForm) {
  for (const int N : {2, 3, 4, 8, 16})
    for (const bool modelled : {false, true}) {
      Scenario s = plain(N);
      s.modelled_collectives = modelled;
      const int64_t elements = 16 * 100 * N, M = 4 * elements;
      const auto result = simulate(s, [&](World& w) {
        w.comm->set_algorithm(Algorithm::ring);
        w.comm->all_reduce(Tensor({elements}, DType::f32, meta_memory())).wait();
      });
      EXPECT_EQ(result.virtual_ns, 2 * (N - 1) * (kLatency + M / N)) << N;
      EXPECT_EQ(result.messages, 2 * (N - 1) * N);
      EXPECT_EQ(result.ranks[0].traffic.bytes_sent, 2 * (N - 1) * M / N);
      EXPECT_EQ(result.ranks[0].traffic.bytes_received, 2 * (N - 1) * M / N);
      EXPECT_EQ(result.ranks[0].traffic.messages_sent, 2 * (N - 1));
      EXPECT_EQ(result.ranks[0].traffic.waited_ns, result.virtual_ns);
    }
}

TEST(Times, AddingTakesMemoryTime) {
  Scenario s = plain(2);
  s.compute.memory_gb_s = 2;
  s.speeds = {1, 0.5};
  // A tree of two: 1 sends 400 bytes, 0 touches 1200 of them at 2 bytes a nanosecond, and sends back.
  EXPECT_EQ(ends(s, [](World& w) { w.comm->all_reduce(Tensor({100}, DType::f32, meta_memory())).wait(); }),
            (std::vector<int64_t>{kLatency + 400 + 600 + 400, 2 * (kLatency + 400) + 600}));
}

TEST(Times, CommunicationIsHiddenBehindComputing) {
  const auto body = [](World& w) {
    const Pending p = w.comm->all_reduce(Tensor({16 * 1024}, DType::f32, meta_memory()));
    w.clock->spend(work(1'000'000), [] {});
    p.wait();
  };
  const auto result = simulate(plain(2), body);
  EXPECT_EQ(result.virtual_ns, 1'000'000);
  EXPECT_EQ(result.ranks[0].computed_ns, 1'000'000);
  EXPECT_EQ(result.ranks[0].waited_ns, 0);
}

TEST(Times, CollectivesOfOneCommunicatorShareTheNetwork) {
  for (const bool modelled : {false, true}) {
    Scenario s = plain(2);
    s.modelled_collectives = modelled;
    const int64_t M = 4 * 16 * 10'000;
    const auto result = simulate(s, [&](World& w) {
      w.comm->set_algorithm(Algorithm::ring);
      const Pending a = w.comm->all_reduce(Tensor({M / 4}, DType::f32, meta_memory()));
      const Pending b = w.comm->all_reduce(Tensor({M / 4}, DType::f32, meta_memory()));
      a.wait();
      b.wait();
    });
    EXPECT_LE(result.virtual_ns, 2 * (M + 2 * kLatency));
    EXPECT_GE(result.virtual_ns, 2 * M);
  }
}

TEST(Times, ComputingFollowsKindSpeedAndPieces) {
  Scenario s = plain(2);
  s.compute = {.forward_gflops = 2, .backward_gflops = 4, .update_gb_s = 8, .memory_gb_s = 16, .piece_us = 1};
  s.speeds = {1, 0.5};
  const auto times = ends(s, [](World& w) {
    w.clock->spend({Work::forward, 16'000, 0}, [] {});
    w.clock->spend({Work::backward, 16'000, 0}, [] {});
    w.clock->spend({Work::update, 0, 16'000}, [] {});
    w.clock->spend({Work::memory, 0, 16'000}, [] {});
    EXPECT_EQ(w.clock->now_ns(), (4000 + 8000 + 4000 + 2000 + 1000) * (w.comm->rank() + 1));
  });
  EXPECT_EQ(times, (std::vector<int64_t>{19'000, 38'000}));
}

// Weights that a pass moves have a rate of their own; clusters written before it was known have the memory's.
TEST(Times, PassesMoveWeightsAtTheirRate) {
  Scenario s = plain(1);
  s.compute = {.forward_gflops = 2, .backward_gflops = 4, .update_gb_s = 8, .memory_gb_s = 16, .piece_us = 0};
  const auto passes = [](World& w) {
    w.clock->spend({Work::forward, 16'000, 32'000}, [] {});
    w.clock->spend({Work::backward, 16'000, 32'000}, [] {});
    w.clock->spend({Work::memory, 0, 32'000}, [] {});
  };
  EXPECT_EQ(ends(s, passes), (std::vector<int64_t>{8000 + 2000 + 4000 + 2000 + 2000}));
  s.compute.weights_gb_s = 4;
  EXPECT_EQ(ends(s, passes), (std::vector<int64_t>{8000 + 8000 + 4000 + 8000 + 2000}));
  s.compute.weights_gb_s = 0;
  EXPECT_EQ(ends(s, passes), (std::vector<int64_t>{8000 + 4000 + 2000}));
}

TEST(Times, StragglersAreSlowWhileTheyAre) {
  Scenario s = plain(2);
  s.stragglers = {{.rank = 1, .from_s = 1e-3, .until_s = 2e-3, .factor = 4}};
  // One piece of 2 ms from 0: 1 ms undisturbed, 1 ms gives a quarter, the rest undisturbed.
  EXPECT_EQ(ends(s, [](World& w) { w.clock->spend(work(2'000'000), [] {}); }), (std::vector<int64_t>{2'000'000, 2'750'000}));
}

TEST(Times, FaultyCardsAreSlowWhileTheyAre) {
  for (const int node : {0, 1}) {
    Scenario s = plain(2);
    s.link_faults = {{.node = node, .from_s = 20e-6, .until_s = 1, .factor = 0.1}};
    const auto times = ends(s, [](World& w) { one_message(w, 50'000); });
    // Card 0 is full speed for 20 us, then a tenth; card 1 begins to receive at 10 us.
    EXPECT_EQ(times[1], node == 0 ? kLatency + 20'000 + 300'000 : 20'000 + 400'000);
  }
  Scenario s = plain(2);
  s.modelled_collectives = true;
  s.link_faults = {{.node = 1, .from_s = 1, .until_s = 2, .factor = 0.5}};
  std::vector<int64_t> took;
  simulate(s, [&](World& w) {
    w.comm->set_algorithm(Algorithm::ring);
    for (int i = 0; i < 3; ++i) {
      const int64_t began = w.clock->now_ns();
      w.comm->all_reduce(Tensor({32'000}, DType::f32, meta_memory())).wait();
      if (w.comm->rank() == 0) took.push_back(w.clock->now_ns() - began);
      w.clock->spend(work(1'000'000'000), [] {});
    }
  });
  EXPECT_EQ(took[0], took[2]);
  EXPECT_NEAR(static_cast<double>(took[1]), 2 * (10'000 + 128'000), 1.0);
  EXPECT_NEAR(static_cast<double>(took[0]), 2 * (10'000 + 64'000), 1.0);
}

TEST(Times, JitterIsSeededAndKeepsTheMean) {
  Scenario s = plain(2);
  s.jitter = 0.2;
  const int pieces = 2000;
  const auto run = [&] {
    return ends(s, [&](World& w) {
      for (int i = 0; i < pieces; ++i) w.clock->spend(work(1000), [] {});
    });
  };
  const auto first = run();
  EXPECT_EQ(first, run());
  EXPECT_NE(first[0], first[1]);
  EXPECT_NEAR(static_cast<double>(first[0]), pieces * 1000.0, 4 * 0.2 * 1000 * std::sqrt(pieces));
  s.seed = 2;
  EXPECT_NE(first, run());
}

TEST(Times, PollingEnds) {
  simulate(plain(2), [](World& w) {
    if (w.comm->rank() == 1) w.clock->spend(work(30'000), [] {});
    const Pending p = w.comm->barrier();
    while (!p.done()) {
    }
    // What rank 0 sent has been there for long; rank 1's byte travels.
    EXPECT_NEAR(static_cast<double>(w.clock->now_ns()), w.comm->rank() == 1 ? 30'000 : 30'000 + kLatency, 1100);
  });
}

// A modelled collective against the same message by message, on an idle network.
TEST(Times, ModelledCollectivesAgreeWithMessages) {
  for (const int per_node : {1, 4})
    for (const int N : {2, 4, 7, 16})
      for (const int64_t elements : {100, 5000, 400'000})
        for (const int what : {0, 1, 2, 3, 4, 5, 6}) {
          Scenario s = plain(N);
          s.network = network_preset("10gbe");
          s.network.ranks_per_node = per_node;
          s.compute.memory_gb_s = 8;
          int64_t times[2];
          for (const bool modelled : {false, true}) {
            s.modelled_collectives = modelled;
            times[modelled] =
                simulate(s, [&](World& w) {
                  const Tensor x = Tensor({elements}, DType::f32, meta_memory());
                  if (what < 3) {
                    w.comm->set_algorithm(what == 0 ? Algorithm::ring : what == 1 ? Algorithm::tree : Algorithm::halving_doubling);
                    w.comm->all_reduce(x).wait();
                  } else if (what == 3) {
                    w.comm->all_reduce_bf16(x).wait();
                  } else if (what == 4) {
                    w.comm->broadcast(x, N / 2).wait();
                  } else if (what == 5) {
                    w.comm->barrier().wait();
                  } else {
                    const std::vector<int> servers{0};
                    w.comm->run(server_push({w.comm->rank(), N, elements, DType::f32, N, servers, false}), x, "push").wait();
                  }
                }).virtual_ns;
          }
          EXPECT_NEAR(static_cast<double>(times[1]), static_cast<double>(times[0]), 0.1 * static_cast<double>(times[0]))
              << "N " << N << " per node " << per_node << " elements " << elements << " what " << what;
        }
}

}  // namespace
}  // namespace starling
