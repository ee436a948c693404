// Asynchronous workers and servers: where they must equal one process, what staleness they see, and what their equations say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "config/config.h"
#include "sim/simulate.h"
#include "tests/strategies/slow_cluster.h"
#include "tests/whole_matrix.h"

namespace starling {
namespace {

using testing::HasSubstr;

TEST(Asynchronous, OnePushOfEachAndWaitingForTheStepIsSynchronous) {
  for (const std::string optimizer : {"adam", "sgd", "adagrad"})
    for (const int64_t servers : {1, 3}) {
      AsynchronousRun run = in_step(servers);
      run.optimizer = optimizer;
      if (optimizer == "sgd") run.rate = 0.1;
      const AsynchronousTrace one = alone(run);
      for (const int workers : of_cases<int>({4, 2, 1}, 1)) {
        if (optimizer != "adam" && (workers != 4 || servers != 3)) continue;
        const Simulated many = simulated(run, slow_cluster(workers + static_cast<int>(servers)));
        const AsynchronousTrace& first = many.first();
        // The sums over all workers come with the fetch after them, those of the last update with the word to end.
        EXPECT_LT(largest_distance(first.told, one.told), 1e-9) << optimizer << ", " << workers << " workers";
        EXPECT_EQ(first.told_tokens, one.told_tokens);
        EXPECT_EQ(std::vector<double>(first.rates.begin() + 1, first.rates.end()),
                  std::vector<double>(one.rates.begin(), one.rates.end() - 1));
        for (size_t t = 0; t < one.state.size(); ++t)
          EXPECT_LT(largest_distance(first.state[t].tensor.to_doubles(), one.state[t].tensor.to_doubles()), 1e-9) << first.state[t].name;
        for (int r = 0; r < workers; ++r) {
          EXPECT_EQ(many.ranks[static_cast<size_t>(r)].looked, first.values()) << "rank " << r;
          EXPECT_TRUE(many.ranks[static_cast<size_t>(r)].finished);
        }
        EXPECT_EQ(first.figures.at("staleness-steps-largest"), 0);
        EXPECT_EQ(first.figures.at("pushes"), static_cast<double>(run.max_steps * workers));
      }
    }
}

TEST(Asynchronous, OneWorkerIsASingleProcess) {
  AsynchronousRun run;
  run.clip = 0.5, run.strategy.overlap = false;
  const AsynchronousTrace one = alone(run), server = simulated(run, slow_cluster(2)).first();
  EXPECT_LT(largest_distance(server.norms, one.norms), 1e-9);
  EXPECT_GT(*std::max_element(one.norms.begin(), one.norms.end()), 0.5) << "clipping was not needed";
  EXPECT_LT(largest_distance(server.values(), one.values()), 1e-9);
  EXPECT_EQ(server.figures.at("staleness-largest"), 0);
  // An update ahead, the gradient is of the parameters before the last one.
  run.strategy.overlap = true;
  const AsynchronousTrace ahead = simulated(run, slow_cluster(2)).first();
  EXPECT_EQ(ahead.norms[0], server.norms[0]);
  EXPECT_NE(ahead.norms[2], server.norms[2]);
  EXPECT_EQ(ahead.figures.at("staleness-largest"), 1);
}

TEST(Asynchronous, TwoSimulationsAreEqual) {
  AsynchronousRun run;
  run.strategy.asynchronous.sum_pushes = 2;
  Scenario scenario = slow_cluster(5);
  scenario.jitter = 0.2, scenario.hash_payloads = true;
  const Simulated a = simulated(run, scenario);
  scenario.threads = 1;
  const Simulated b = simulated(run, scenario);
  EXPECT_EQ(a.result.trace_hash, b.result.trace_hash);
  EXPECT_EQ(a.first().values(), b.first().values());
  EXPECT_EQ(a.first().told, b.first().told);
  EXPECT_EQ(a.first().text, b.first().text);
  scenario.seed = 2;
  EXPECT_NE(simulated(run, scenario).first().values(), a.first().values()) << "the order of coming does not matter";
}

// Wherever a part of the parameters lives; computing times that differ make the order of coming the same for all servers.
TEST(Asynchronous, ServersShareTheWorkAndChangeNothing) {
  AsynchronousRun run;
  run.strategy.asynchronous.delay_compensation = 0.5;
  const auto train = [&](int64_t servers) {
    run.strategy.servers = servers;
    Scenario s = slow_cluster(3 + static_cast<int>(servers));
    s.speeds = std::vector<double>(static_cast<size_t>(s.ranks), 1);
    s.speeds[1] = 0.83, s.speeds[2] = 0.61;
    s.compute.update_gb_s = s.compute.memory_gb_s = s.compute.piece_us = 0;
    return simulated(run, s);
  };
  const Simulated one = train(1), two = train(2);
  EXPECT_EQ(two.first().values(), one.first().values());
  for (const size_t t : {1u, 2u}) EXPECT_EQ(two.first().state[t].tensor.to_doubles(), one.first().state[t].tensor.to_doubles());
  EXPECT_EQ(two.first().told, one.first().told);
  EXPECT_EQ(two.first().text, one.first().text);
  EXPECT_GT(one.first().figures.at("most-updates"), one.first().figures.at("fewest-updates"));
}

// Between a worker's fetch and its push every other worker pushes once; with the fetch an update ahead, twice, and the worker itself once.
TEST(Asynchronous, StalenessIsTheNumberOfTheOthers) {
  for (const int workers : {4, 8}) {
    AsynchronousRun run;
    run.backend = "cpu:f32", run.max_steps = 30, run.sentences = 8 * workers;
    Scenario scenario = slow_cluster(workers + 1);
    scenario.jitter = 0.05;
    for (const bool ahead : {false, true}) {
      run.strategy.overlap = ahead;
      const auto figures = simulated(run, scenario).first().figures;
      const double expected = ahead ? 2 * workers - 1 : workers - 1;
      EXPECT_NEAR(figures.at("staleness-mean"), expected, 0.07 * expected) << workers << " workers";
      EXPECT_EQ(figures.at("staleness-median"), expected);
      EXPECT_EQ(figures.at("staleness-steps-mean"), figures.at("staleness-mean"));
      EXPECT_LE(figures.at("updates"), 32 * workers);
      EXPECT_GE(figures.at("updates"), 30 * workers);
    }
    // Steps of sums are fewer.
    run.strategy.overlap = false, run.strategy.asynchronous.sum_pushes = workers;
    const auto figures = simulated(run, scenario).first().figures;
    EXPECT_LE(figures.at("staleness-steps-mean"), 1.1);
    EXPECT_NEAR(figures.at("staleness-mean"), workers - 1, 0.07 * workers);
    EXPECT_EQ(figures.at("server-steps"), std::floor(figures.at("pushes") / workers));
  }
}

TEST(Asynchronous, ASlowWorkerHoldsUpItselfOnly) {
  AsynchronousRun run;
  run.backend = "cpu:f32", run.max_steps = 24;
  const auto seconds = [&](const AsynchronousRun& r, bool slow) {
    Scenario s = slow_cluster(5);
    if (slow) s.stragglers = {{.rank = 2, .factor = 3}};
    const Simulated all = simulated(r, s);
    if (slow && !r.strategy.asynchronous.wait_for_step) {
      EXPECT_LT(all.ranks[2].updates, 14);
      EXPECT_GT(all.ranks[1].updates, 24);
    }
    return 1e-9 * static_cast<double>(all.result.virtual_ns);
  };
  // 4 workers make 4 updates in the time in which 3 1/3 are made with the slow one: 1.2 times as long.
  EXPECT_LT(seconds(run, true) / seconds(run, false), 1.4);
  AsynchronousRun together = in_step(1);
  together.backend = "cpu:f32", together.max_steps = 24;
  // Three times as long where all have equal rows; they are counted in 64s, and here some have one of these and some two.
  EXPECT_GT(seconds(together, true) / seconds(together, false), 2);
  // Three of four are enough: the slow one's gradient counts in a later sum.
  together.strategy.asynchronous.sum_pushes = 3;
  EXPECT_LT(seconds(together, true) / seconds(together, false), 1.6);
}

// One step of SGD on one push: the parameters move by rate times the clipped norm of the mean gradient.
TEST(Asynchronous, PushesAreClipped) {
  for (const int64_t interval : {1, 2, 3}) {
    AsynchronousRun run;
    run.optimizer = "sgd", run.rate = 0.5, run.strategy.asynchronous.push_interval = interval, run.strategy.overlap = false;
    run.leave_after = interval;
    const auto values = [&](double clip, double rate) {
      run.strategy.asynchronous.push_clip = clip, run.rate = rate;
      return simulated(run, slow_cluster(2)).first().looked;
    };
    const std::vector<double> start = values(0, 0);
    const double rate = 0.5 * static_cast<double>(interval) / 5;  // as many of the five updates of warm-up
    const double free = euclidean_distance(values(0, 0.5), start) / rate;
    EXPECT_GT(free, 0.2);
    EXPECT_NEAR(euclidean_distance(values(free / 2, 0.5), start) / rate, free / 2, 1e-12);
    EXPECT_NEAR(euclidean_distance(values(free * 2, 0.5), start) / rate, free, 1e-12);
  }
}

// Pushing each second update sends the mean gradient of two batches: what one process does with both at once.
TEST(Asynchronous, APushIsTheMeanOfItsUpdates) {
  AsynchronousRun run;
  run.optimizer = "sgd", run.rate = 0.5, run.strategy.overlap = false, run.leave_after = 1;
  const auto moved = [&](int64_t interval, int64_t updates) {
    run.strategy.asynchronous.push_interval = interval, run.leave_after = updates;
    return simulated(run, slow_cluster(2)).first();
  };
  run.rate = 0;
  const std::vector<double> start = moved(1, 1).looked;
  run.rate = 0.5;
  const AsynchronousTrace both = moved(2, 2);
  // The same two batches, the second one at the same parameters as it is fetched an update ahead.
  run.strategy.overlap = true;
  const std::vector<double> first = moved(1, 1).looked;
  const AsynchronousTrace two = moved(1, 2);
  EXPECT_EQ(two.norms, both.norms);
  const double a = random_batch(run.seed, 0, run.sentences).target.count(), b = random_batch(run.seed, 1, run.sentences).target.count();
  ASSERT_EQ(two.looked.size(), both.looked.size());
  for (size_t i = 0; i < start.size(); ++i) {
    // rate 0.1 for update 1 and 0.2 for update 2; the push of two counts as two updates.
    const double g1 = (start[i] - first[i]) / 0.1, g2 = (first[i] - two.looked[i]) / 0.2;
    EXPECT_NEAR(both.looked[i], start[i] - 0.2 * (a * g1 + b * g2) / (a + b), 1e-12);
  }
}

TEST(Asynchronous, WorkersMayUpdateTheirOwnParameters) {
  AsynchronousRun run;
  run.optimizer = "sgd", run.rate = 0, run.strategy.overlap = false, run.leave_after = 6;
  run.strategy.asynchronous.local_learning_rate = 0.1, run.strategy.asynchronous.fetch_interval = 3;
  const AsynchronousTrace local = simulated(run, slow_cluster(2)).first();
  // Plain SGD in one process, which goes back to its start at every third update.
  AsynchronousRun plain;
  plain.optimizer = "sgd", plain.rate = 0.1, plain.max_steps = 3, plain.strategy.name = "all-reduce";
  const AsynchronousTrace one = alone(plain);
  EXPECT_NE(local.norms[1], local.norms[0]);
  // The first update is at the same point, the second has moved by the full rate where the process had a fifth of it in warm-up.
  EXPECT_NEAR(local.norms[0], one.norms[0], 1e-12);
  AsynchronousRun still = run;
  still.strategy.asynchronous.local_learning_rate = 0;
  const AsynchronousTrace without = simulated(still, slow_cluster(2)).first();
  EXPECT_EQ(local.norms[3], without.norms[3]) << "fetched";
  EXPECT_NE(local.norms[4], without.norms[4]);
  EXPECT_EQ(local.looked, without.looked) << "the servers do not move";
}

// Both workers fetch the same parameters p0; the second pushes when the server is at p1. So p2 = p1 - r (g + lambda g^2 (p1 - p0)).
TEST(Asynchronous, DelayIsCompensatedByItsEquation) {
  AsynchronousRun run;
  run.optimizer = "sgd", run.leave_after = 1, run.rate = 0.5;
  Scenario scenario = slow_cluster(3);
  scenario.stragglers = {{.rank = 1, .factor = 5}};
  const auto train = [&](double lambda, double rate) {
    run.strategy.asynchronous.delay_compensation = lambda, run.rate = rate;
    return simulated(run, scenario);
  };
  const Simulated still = train(0, 0), plain = train(0, 0.5), compensated = train(20, 0.5);
  const std::vector<double>&p0 = still.first().looked, &p1 = plain.ranks[0].looked, &p2 = plain.ranks[1].looked;
  EXPECT_EQ(compensated.ranks[0].looked, p1) << "the first push is not late";
  const double rate = 0.5 / 5;
  double largest = 0;
  for (size_t i = 0; i < p0.size(); ++i) {
    const double g = (p1[i] - p2[i]) / rate, expected = p1[i] - rate * (g + 20 * g * g * (p1[i] - p0[i]));
    EXPECT_NEAR(compensated.ranks[1].looked[i], expected, 1e-13);
    largest = std::max(largest, std::abs(expected - p2[i]));
  }
  EXPECT_GT(largest, 1e-6);
}

TEST(Asynchronous, BytesFollowTheClosedForm) {
  for (const bool narrow : {false, true}) {
    AsynchronousRun run;
    run.backend = "cpu:f32", run.leave_after = 6;
    run.strategy.servers = 2, run.strategy.wire = narrow ? Wire::bf16 : Wire::f32;
    run.strategy.asynchronous.push_interval = 2, run.strategy.asynchronous.fetch_interval = 3;
    const Simulated all = simulated(run, slow_cluster(4));
    const int64_t request = 8 * (4 + 16), answer = 8 * (6 + 16), M = all.first().gradient_bytes;
    // Rank 1: three pushes, two fetches, one look, one goodbye, each to two servers.
    EXPECT_EQ(all.ranks[1].traffic.bytes_sent, 3 * (2 * request + (narrow ? M / 2 : M)) + (2 + 1 + 1) * 2 * request);
    // Each push is answered by a word of each server, as fetches are rarer.
    EXPECT_EQ(all.ranks[1].traffic.bytes_received, 2 * (2 * answer + M) + M + 3 * 2 * 8);
    EXPECT_THAT(all.first().description,
                HasSubstr("2 workers, 2 servers; push every 2 and fetch every 3 updates, one update ahead; 1 push"));
  }
}

TEST(Asynchronous, Bf16OnTheWireStaysNear) {
  AsynchronousRun run;
  run.backend = "cpu:f32", run.strategy.overlap = false, run.strategy.asynchronous.sum_pushes = 3,
  run.strategy.asynchronous.wait_for_step = true;
  const Simulated wide = simulated(run, slow_cluster(4));
  run.strategy.wire = Wire::bf16;
  const Simulated narrow = simulated(run, slow_cluster(4));
  EXPECT_LT(largest_distance(narrow.first().told, wide.first().told), 0.1);
  EXPECT_NE(narrow.first().values(), wide.first().values());
}

TEST(Asynchronous, TheFirstWorkersWordEndsTheRun) {
  AsynchronousRun run;
  run.max_steps = 1000, run.stop_at = 4;
  for (const int64_t fetch : {1, 50})
    for (const int64_t push : {1, 3, 50}) {
      run.strategy.asynchronous.push_interval = push, run.strategy.asynchronous.fetch_interval = fetch;
      const Simulated all = simulated(run, slow_cluster(4));
      for (int r = 0; r < 3; ++r) {
        EXPECT_TRUE(all.ranks[static_cast<size_t>(r)].stop);
        // The others hear of it by their fetches or pushes, whichever they do more often.
        EXPECT_LE(all.ranks[static_cast<size_t>(r)].updates, r == 0 || std::min(push, fetch) < 50 ? 8 : 51) << push << " " << fetch;
      }
      EXPECT_TRUE(all.server().finished);
    }
}

// Servers hear of it between their messages, also those that count nothing.
TEST(Asynchronous, AServerThatIsAskedToStopTellsTheWorkers) {
  for (const bool in_steps : {false, true}) {
    AsynchronousRun run = in_steps ? in_step(2) : AsynchronousRun();
    run.max_steps = 1000, run.ask_server = 3, run.strategy.servers = 2;
    const Simulated all = simulated(run, slow_cluster(4));
    for (int r = 0; r < 2; ++r) {
      EXPECT_TRUE(all.ranks[static_cast<size_t>(r)].stop);
      EXPECT_LE(all.ranks[static_cast<size_t>(r)].updates, 10);
      EXPECT_GE(all.ranks[static_cast<size_t>(r)].updates, 3);
      EXPECT_LT(all.ranks[static_cast<size_t>(r)].fraction, 0.01);
    }
    EXPECT_TRUE(all.ranks[3].stop);
  }
}

TEST(Asynchronous, TheUpdatesAreThoseOfAllWorkers) {
  AsynchronousRun run;
  run.max_steps = 12;
  Scenario scenario = slow_cluster(4);
  scenario.speeds = {1, 2, 0.5, 1};
  const Simulated all = simulated(run, scenario);
  const auto& figures = all.first().figures;
  EXPECT_GE(figures.at("updates"), 36);
  EXPECT_LE(figures.at("updates"), 36 + 2 * 3);
  EXPECT_NEAR(figures.at("most-updates") / figures.at("fewest-updates"), 4, 1);
  int64_t sum = 0;
  for (int r = 0; r < 3; ++r) sum += all.ranks[static_cast<size_t>(r)].updates;
  EXPECT_EQ(static_cast<double>(sum), figures.at("updates"));
  EXPECT_GE(all.first().fraction, 1);
}

TEST(Asynchronous, TheEndIsHeardOfWithoutFetches) {
  AsynchronousRun run;
  run.max_steps = 12, run.strategy.asynchronous.fetch_interval = 1000;
  for (const bool ahead : {true, false})
    for (const int64_t push : {1, 2}) {
      run.strategy.overlap = ahead, run.strategy.servers = 2, run.strategy.asynchronous.push_interval = push;
      const Simulated all = simulated(run, slow_cluster(5));
      EXPECT_GE(all.first().figures.at("updates"), 36);
      EXPECT_LE(all.first().figures.at("updates"), 36 + 3 * (push + 1));
      for (int r = 0; r < 3; ++r) EXPECT_TRUE(all.ranks[static_cast<size_t>(r)].finished);
    }
}

// With one worker nothing depends on timing: ten updates are five, a checkpoint and five.
TEST(Asynchronous, AContinuedRunTakesUpServersAndProgress) {
  for (const std::string optimizer : {"adam", "adagrad"}) {
    AsynchronousRun run;
    run.optimizer = optimizer, run.strategy.overlap = false, run.strategy.servers = 2, run.strategy.asynchronous.sum_pushes = 1;
    const Simulated whole = simulated(run, slow_cluster(3));
    AsynchronousRun half = run;
    half.max_steps = 5;
    const Simulated first = simulated(half, slow_cluster(3));
    AsynchronousRun rest = run;
    rest.resume = &first.first().state, rest.resume_updates = 5;
    const Simulated second = simulated(rest, slow_cluster(3));
    EXPECT_EQ(second.first().values(), whole.first().values()) << optimizer;
    for (size_t t = 0; t < whole.first().state.size(); ++t)
      EXPECT_EQ(second.first().state[t].tensor.to_doubles(), whole.first().state[t].tensor.to_doubles()) << whole.first().state[t].name;
    EXPECT_EQ(second.first().state.back().name, "asynchronous.progress");
    EXPECT_EQ(second.first().state.back().tensor.to_doubles(), (std::vector<double>{10, 10, 10}));
    // Three workers make the other half of the run together, from the same place of the schedule.
    const Simulated others = simulated(rest, slow_cluster(5));
    const double updates = others.first().figures.at("updates");
    EXPECT_GE(updates, 15);
    EXPECT_LE(updates, 18);
    EXPECT_EQ(others.first().rates[0], whole.first().rates[6]);
    const std::vector<double> progress = others.first().state.back().tensor.to_doubles();  // before the last ones had left
    EXPECT_GE(progress[0], 20);
    EXPECT_EQ(progress[1], progress[0]);
    EXPECT_DOUBLE_EQ(progress[2], 5 + (progress[0] - 5) / 3);
  }
}

}  // namespace
}  // namespace starling
