// What happened when: a hash over all events, which must be equal for two runs of one scenario, and on request the file that a browser's
// trace viewer opens (chrome://tracing, Perfetto), with one process per node and two lines per rank, computing and network.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "comm/clock.h"

namespace starling::sim {

// FNV-1a, 64 bit.
class Fnv {
 public:
  void add(std::span<const std::byte> bytes) {
    for (const std::byte b : bytes) value_ = (value_ ^ static_cast<uint64_t>(b)) * 0x100000001b3u;
  }
  void add(uint64_t word) {
    for (int i = 0; i < 8; ++i, word >>= 8) value_ = (value_ ^ (word & 0xff)) * 0x100000001b3u;
  }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 0xcbf29ce484222325u;
};

class Trace {
 public:
  enum Line : uint8_t { compute, network };
  bool enabled = false;
  // Times in ns; `name` is a literal.
  void add(int rank, Line line, const char* name, int64_t from_ns, int64_t to_ns, int64_t bytes = -1) {
    if (enabled) events_.push_back({rank, line, name, from_ns, to_ns, bytes, -1, -1});
  }
  void add(int rank, const char* name, int64_t from_ns, int64_t to_ns, const Work& work) {
    if (enabled) events_.push_back({rank, compute, name, from_ns, to_ns, -1, work.stage, work.micro_batch});
  }
  // Throws IoError if the file cannot be written. node_of: by rank.
  void write(const std::string& path, const std::vector<int>& node_of) const;

 private:
  struct Event {
    int rank;
    Line line;
    const char* name;
    int64_t from_ns, to_ns, bytes;
    int stage, micro_batch;  // -1: none
  };
  std::vector<Event> events_;
};

}  // namespace starling::sim
