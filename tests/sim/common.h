// A cluster with round numbers: one byte takes one nanosecond, nothing else takes time unless a test says so.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "sim/simulate.h"

namespace starling {

constexpr double kLatencyUs = 10;
constexpr int64_t kLatency = 10'000;  // ns

inline Scenario plain(int ranks) {
  Scenario s;
  s.ranks = ranks;
  s.network.inter = {.latency_us = kLatencyUs, .bandwidth_gbit_s = 8, .message_us = 0};
  s.network.intra = {.latency_us = 1, .bandwidth_gbit_s = 80, .message_us = 0};
  s.network.eager_bytes = int64_t{1} << 40;
  s.compute = {.forward_gflops = 1, .backward_gflops = 1, .update_gb_s = 1, .memory_gb_s = 0, .piece_us = 0};
  return s;
}
// Forward passes of the plain cluster take one nanosecond per operation.
inline Work work(int64_t ns) { return {Work::forward, static_cast<double>(ns), 0}; }
inline Tensor floats(int64_t count, double value = 0) {
  const Tensor t({count}, DType::f32);
  t.from_doubles(std::vector<double>(static_cast<size_t>(count), value));
  return t;
}
inline Tensor phantom(int64_t bytes) { return Tensor({bytes}, DType::i8, meta_memory()); }

// The message of the error that ends the simulation.
template <class E = PeerError>
std::string error_of(const Scenario& s, const std::function<void(World&)>& body) {
  try {
    simulate(s, body);
  } catch (const E& e) {
    return e.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}

}  // namespace starling
