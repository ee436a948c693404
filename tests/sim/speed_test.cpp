// The simulator must be fast enough to be used: real time of large runs.
#include <chrono>

#include "tests/sim/common.h"

namespace starling {
namespace {

double real_seconds(const std::function<void()>& f) {
  const auto began = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

TEST(Speed, HundredsOfRanksOnlyTimed) {
  Scenario s = plain(256);
  s.network = network_preset("25gbe");
  s.network.ranks_per_node = 4;
  s.compute.memory_gb_s = 8;
  s.jitter = 0.05;
  s.timing_only = s.modelled_collectives = true;
  SimulationResult result;
  const double seconds = real_seconds([&] {
    result = simulate(s, [](World& w) {
      w.comm->set_algorithm(Algorithm::ring);
      for (int step = 0; step < 20; ++step) {
        std::vector<Pending> buckets;
        for (int i = 0; i < 30; ++i) {
          w.clock->spend(work(1'000'000), [] {});
          buckets.push_back(w.comm->all_reduce(Tensor({1'000'000 + 1000 * i}, DType::f32, meta_memory())));
        }
        for (const Pending& p : buckets) p.wait();
        w.clock->spend(work(1'000'000), [] {});
      }
    });
  });
  RecordProperty("seconds", std::to_string(seconds));
  std::printf("256 ranks, 20 steps of 30 collectives: %.2f s, %.3f virtual s, %lld messages\n", seconds,
              1e-9 * static_cast<double>(result.virtual_ns), static_cast<long long>(result.messages));
  EXPECT_LT(seconds, 20);  // about 3 s on one free core
  EXPECT_EQ(result.messages, int64_t{20} * 30 * 256 * 510);
}

TEST(Speed, MessagesPerSecond) {
  Scenario s = plain(64);
  s.timing_only = true;
  SimulationResult result;
  const double seconds = real_seconds([&] {
    result = simulate(s, [](World& w) {
      w.comm->set_algorithm(Algorithm::ring);
      for (int i = 0; i < 20; ++i) w.comm->all_reduce(Tensor({1'000'000}, DType::f32, meta_memory())).wait();
    });
  });
  std::printf("%.0f messages and %.0f events a second\n", static_cast<double>(result.messages) / seconds,
              static_cast<double>(result.events) / seconds);
  EXPECT_EQ(result.messages, 20 * 64 * 126);
}

}  // namespace
}  // namespace starling
