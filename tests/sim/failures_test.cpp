// Ranks that are late, crash, throw or wait for each other, and what the others are told.
#include <atomic>
#include <cstdio>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "config/config.h"
#include "tests/own_directory.h"
#include "tests/sim/common.h"

namespace starling {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(Failures, DeadlineNamesTheLateRankAndWhatItDoes) {
  for (const bool modelled : {false, true}) {
    Scenario s = plain(3);
    s.modelled_collectives = modelled;
    const std::string error = error_of(s, [](World& w) {
      w.comm->set_deadline(300);
      w.comm->set_algorithm(Algorithm::ring);
      if (w.comm->rank() == 2) {
        w.comm->note("validation", 120);
        w.clock->spend(work(int64_t{400} * 1'000'000'000), [] {});
      }
      w.comm->all_reduce(phantom(64)).wait();
    });
    EXPECT_EQ(error,
              "rank 0 (node0): all-reduce (ring) waited 300 s; rank 2 (node2) has not started it: it is in 'validation' at update 120");
  }
}

TEST(Failures, AWaitCanHaveItsOwnDeadlineAndGoOn) {
  const auto result = simulate(plain(2), [](World& w) {
    if (w.comm->rank() == 1) {
      w.clock->spend(work(5'000'000'000), [] {});
      w.comm->send(floats(4, 7), 0, 3).wait();
      return;
    }
    const Tensor x = floats(4);
    const Pending p = w.comm->receive(x, 1, 3);
    try {
      p.wait(2.0);
      ADD_FAILURE();
    } catch (const PeerError& e) {
      EXPECT_STREQ(e.what(), "rank 0 (node0): a message from rank 1 (tag 3) waited 2 s; rank 1 (node1) has not sent it");
    }
    EXPECT_EQ(w.clock->now_ns(), 2'000'000'000);
    EXPECT_FALSE(p.done());
    p.wait(10);  // longer than what is left of the first
    EXPECT_EQ(x.to_doubles()[3], 7);
  });
  EXPECT_EQ(result.virtual_ns, 5'000'000'000 + kLatency + 16);
}

TEST(Failures, CrashIsNoticedAtTheDeadline) {
  for (const bool modelled : {false, true}) {
    Scenario s = plain(4);
    s.modelled_collectives = modelled;
    s.crashes = {{.rank = 2, .at_s = 3}};
    std::atomic<int> told = 0;
    const auto result = simulate(s, [&](World& w) {
      w.comm->set_deadline(20);
      try {
        for (int step = 0; step < 10; ++step) {
          w.clock->spend(work(1'000'000'000), [] {});
          w.comm->all_reduce(phantom(1 << 20)).wait();
        }
        ADD_FAILURE();
      } catch (const PeerError& e) {
        ++told;
        EXPECT_NE(w.comm->rank(), 2);
        EXPECT_THAT(e.what(),
                    AllOf(HasSubstr("all-reduce"), HasSubstr("waited "), HasSubstr("rank 2 (node2)"), HasSubstr("it has crashed")));
      }
    });
    EXPECT_EQ(told, 3);
    EXPECT_EQ(result.virtual_ns, 23'000'000'000);
    EXPECT_THAT(result.ranks[2].error, HasSubstr("crashed at 3 s"));
    EXPECT_EQ(result.ranks[2].finished_ns, 3'000'000'000);
    EXPECT_EQ(result.ranks[0].error, "");
  }
}

// However long a rank would wait for another one's own work, as while a checkpoint is written, it does not wait for one that is lost.
TEST(Failures, ALostRankIsNoticedInWaitsWithoutADeadline) {
  const auto noticed_at = [](const Scenario& s, int64_t begins_ns) {
    int64_t noticed = 0;
    const std::string error = error_of(s, [&](World& w) {
      w.comm->set_deadline(20);
      w.clock->spend(work(w.comm->rank() == 1 ? 9'000'000'000'000 : begins_ns), [] {});
      try {
        w.comm->barrier().wait(kNoDeadline);
      } catch (const PeerError&) {
        if (w.comm->rank() == 0) noticed = w.clock->now_ns();
        throw;
      }
    });
    EXPECT_THAT(error, HasSubstr("rank 1 (node1) has not started it"));
    return noticed;
  };
  Scenario killed = plain(3), cut = plain(3);
  killed.crashes = {{.rank = 1, .at_s = 3}};
  cut.link_faults = {{.node = 1, .from_s = 3, .until_s = 60, .factor = 0}};
  for (const Scenario& s : {killed, cut}) {
    EXPECT_EQ(noticed_at(s, 1'000'000'000), 23'000'000'000) << "while it waits";
    EXPECT_EQ(noticed_at(s, 40'000'000'000), 40'000'000'000) << "before it waits";
  }
}

TEST(Failures, CrashOfARankThatWaitsOrHasEnded) {
  Scenario s = plain(3);
  s.crashes = {{.rank = 0, .at_s = 1}, {.rank = 1, .at_s = 50}};
  const auto result = simulate(s, [](World& w) {
    if (w.comm->rank() == 0) w.comm->receive(phantom(8), 2, 0).wait();
    if (w.comm->rank() == 2) w.clock->spend(work(3'000'000'000), [] {});
  });
  EXPECT_THAT(result.ranks[0].error, HasSubstr("crashed"));
  EXPECT_EQ(result.ranks[1].error, "");
  EXPECT_EQ(result.virtual_ns, 3'000'000'000);
}

// Whether the body of the crashing rank is still computed in real time, or has long ended, is the same.
TEST(Failures, CrashWithinAPieceOfComputing) {
  for (const int sleeper : {0, 1}) {
    Scenario s = plain(2);
    s.crashes = {{.rank = 1, .at_s = 3}};
    s.threads = 2;
    const auto result = simulate(s, [&](World& w) {
      for (int i = 0; i < 2; ++i)
        w.clock->spend(work(w.comm->rank() == 0 ? 1'000'000'000 : 10'000'000'000), [&] {
          if (w.comm->rank() == sleeper) std::this_thread::sleep_for(std::chrono::milliseconds(20));
        });
      EXPECT_EQ(w.comm->rank(), 0);
      w.comm->set_deadline(5);
      EXPECT_THROW(w.comm->barrier().wait(), PeerError);
    });
    EXPECT_EQ(result.ranks[1].finished_ns, 3'000'000'000);
    EXPECT_EQ(result.virtual_ns, 7'000'000'000);
  }
}

TEST(Failures, ErrorsReachEveryRankAndTheCaller) {
  for (const bool in_body : {false, true}) {
    std::atomic<int> told = 0;
    const std::string error = error_of<DataError>(plain(4), [&](World& w) {
      try {
        if (w.comm->rank() == 3) {
          w.clock->spend(work(1000), [&] {
            if (in_body) throw DataError("corpus.en:7: broken");
          });
          throw DataError("corpus.en:7: broken");
        }
        w.comm->all_reduce(floats(10)).wait();
        ADD_FAILURE();
      } catch (const PeerError& e) {
        ++told;
        EXPECT_STREQ(e.what(), "rank 3 (node3) failed: corpus.en:7: broken");
        EXPECT_EQ(w.clock->now_ns(), 1000);
        throw;
      }
    });
    EXPECT_EQ(error, "corpus.en:7: broken");
    EXPECT_EQ(told, 3);
  }
}

TEST(Failures, TheFirstErrorInVirtualTimeCounts) {
  const std::string error = error_of<Error>(plain(3), [](World& w) {
    const int me = w.comm->rank();
    w.clock->spend(work(me == 1 ? 10 : 20), [] {});
    throw Error(fmt::format("error of rank {}", me));
  });
  EXPECT_EQ(error, "error of rank 1");
}

TEST(Failures, DeadlockListsWhoWaitsForWhom) {
  const std::string error = error_of(plain(3), [](World& w) {
    const int me = w.comm->rank();
    if (me == 0) w.comm->receive(phantom(8), 1, 5).wait();
    if (me == 1) w.comm->all_reduce(phantom(8)).wait();
  });
  EXPECT_EQ(error,
            "deadlock: rank 0 waits for a message from rank 1 (tag 5): rank 1 (node1) has not sent it; "
            "rank 1 waits for all-reduce (tree): rank 0 (node0) has not started it, rank 2 (node2) has not started it: it has ended");
  Scenario s = plain(2);
  s.network.eager_bytes = 0;  // two sends that wait for each other's receive
  EXPECT_THAT(error_of(s, [](World& w) { w.comm->send(phantom(8), 1 - w.comm->rank(), 0).wait(); }),
              HasSubstr("rank 0 waits for a message to rank 1 (tag 0): rank 1 (node1) has not received it"));
}

TEST(Failures, MisuseIsFound) {
  EXPECT_THAT(error_of<InternalError>(plain(2), [](World& w) { w.clock->spend(work(10), [&] { w.comm->barrier(); }); }),
              HasSubstr("between begin and end"));
  EXPECT_THAT(error_of<InternalError>(plain(2),
                                      [](World& w) {
                                        if (w.comm->rank() == 0)
                                          w.comm->barrier().wait();
                                        else
                                          w.comm->broadcast(floats(4), 0).wait();
                                      }),
              HasSubstr("where other ranks have started"));
  for (const bool modelled : {false, true}) {
    Scenario s = plain(2);
    s.modelled_collectives = modelled;
    EXPECT_THROW(simulate(s, [](World& w) { w.comm->all_reduce(floats(w.comm->rank() == 0 ? 100 : 200)).wait(); }), InternalError);
  }
  EXPECT_THROW(simulate(plain(2), [](World& w) { w.comm->all_reduce(Tensor({8}, DType::i8)).wait(); }), Error);
}

TEST(Failures, ScenariosAreChecked) {
  const auto refused = [](auto change) {
    Scenario s = plain(2);
    change(s);
    return error_of<ConfigError>(s, [](World&) {});
  };
  EXPECT_THAT(refused([](Scenario& s) { s.network.preset = "10gb"; }), HasSubstr("did you mean '10gbe'"));
  EXPECT_THAT(refused([](Scenario& s) { s.ranks = 0; }), HasSubstr("ranks is 0"));
  EXPECT_THAT(refused([](Scenario& s) { s.speeds = {1}; }), HasSubstr("speeds"));
  EXPECT_THAT(refused([](Scenario& s) { s.crashes = {{.rank = 2}}; }), HasSubstr("crash"));
  EXPECT_THAT(refused([](Scenario& s) { s.stragglers = {{.rank = -1}}; }), HasSubstr("straggler"));
  EXPECT_THAT(refused([](Scenario& s) { s.link_faults = {{.node = 7}}; }), HasSubstr("link fault"));
  EXPECT_THAT(refused([](Scenario& s) { s.network.inter.bandwidth_gbit_s = 0; }), HasSubstr("bandwidth"));
}

TEST(Scenarios, AreReadFromYamlAndFilledFromPresets) {
  Scenario s;
  const std::vector<ConfigSection> sections{config_section("simulation", "", s)};
  ConfigDocument("simulation:\n  ranks: 8\n  network: infiniband\n  latency-us: 3\n  stragglers:\n    - {rank: 2, factor: 5}\n", "s.yaml")
      .read(sections);
  EXPECT_EQ(s.ranks, 8);
  ASSERT_EQ(s.stragglers.size(), 1u);
  EXPECT_EQ(s.stragglers[0].factor, 5);
  const NetworkModel n = resolved(s.network);
  EXPECT_EQ(n.inter.latency_us, 3);
  EXPECT_EQ(n.inter.bandwidth_gbit_s, network_preset("infiniband").inter.bandwidth_gbit_s);
  EXPECT_THROW(network_preset("token-ring"), ConfigError);
}

TEST(Scenarios, GpusBringTheirLinksAndACardEach) {
  Scenario s;
  const std::vector<ConfigSection> sections{config_section("simulation", "", s)};
  ConfigDocument("simulation:\n  network: infiniband-ndr\n  gpu: h200\n  ranks-per-node: 8\n  intra-latency-us: 7\n", "s.yaml")
      .read(sections);
  NetworkModel n = resolved(s.network);
  EXPECT_EQ(n.cards_per_node, 8);
  EXPECT_EQ(n.inter.bandwidth_gbit_s, 388);
  EXPECT_GT(n.intra.bandwidth_gbit_s, 5 * n.inter.bandwidth_gbit_s);
  EXPECT_EQ(n.intra.latency_us, 7);
  s.network.cards_per_node = 4;
  EXPECT_EQ(resolved(s.network).cards_per_node, 4);
  s.network.gpu = "none", s.network.cards_per_node = 0;
  EXPECT_EQ(resolved(s.network).cards_per_node, 1);
  EXPECT_THAT(error_of<ConfigError>(s, [](World&) { gpu_rates("h20"); }), HasSubstr("did you mean 'h200'"));
}

TEST(Traces, AreReadableAndPiecesDoNotOverlap) {
  const OwnDirectory directory;
  const std::string path = directory.file("trace.json");
  Scenario s = plain(4);
  s.network.ranks_per_node = 2;
  const auto result = simulate(
      s,
      [](World& w) {
        for (int i = 0; i < 3; ++i) {
          w.clock->spend({Work::forward, 20'000, 0}, [] {});
          const Pending a = w.comm->all_reduce(phantom(4000)), b = w.comm->all_reduce(phantom(8000));
          w.clock->spend({Work::backward, 5000, 0}, [] {});
          a.wait();
          b.wait();
          w.clock->spend({Work::update, 0, 1000}, [] {});
        }
        if (w.comm->rank() == 0) w.comm->send(phantom(100), 3, 0).wait();
        if (w.comm->rank() == 3) w.comm->receive(phantom(100), 0, 0).wait();
      },
      path);
  std::ifstream file(path);
  const auto json = nlohmann::json::parse(file);
  std::remove(path.c_str());
  std::map<int, double> line_ends;
  std::map<std::string, int> names;
  double last = 0;
  for (const auto& e : json["traceEvents"]) {
    ++names[e["name"]];
    if (e["ph"] == "M") continue;
    ASSERT_EQ(e["ph"], "X");
    const int tid = e["tid"];
    EXPECT_EQ(e["pid"], tid / 2 / 2);
    EXPECT_GE(e["ts"].get<double>() + 1e-6, line_ends[tid]);
    line_ends[tid] = e["ts"].get<double>() + e["dur"].get<double>();
    last = std::max(last, line_ends[tid]);
    if (e["name"] == "all-reduce (tree)") {
      EXPECT_GT(e["args"]["bytes"], 0);
    }
  }
  EXPECT_NEAR(last, 1e-3 * static_cast<double>(result.virtual_ns), 1e-3);
  EXPECT_EQ(names["forward"], 12);
  EXPECT_EQ(names["update"], 12);
  EXPECT_EQ(names["all-reduce (tree)"], 24);
  EXPECT_EQ(names["message"], 1);
  EXPECT_EQ(names["thread_name"], 8);
  EXPECT_GT(names["wait"], 0);
  EXPECT_THROW(simulate(
                   s, [](World&) {}, "/nowhere/trace.json"),
               IoError);
}

}  // namespace
}  // namespace starling
