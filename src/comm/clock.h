// Time as a strategy sees it. In a real run the machine's; in the simulator virtual, where computing takes the time that a calibrated
// model of the machine says. Nothing may ask the machine for the time in another way.
#pragma once

#include <chrono>
#include <cstdint>
#include <thread>

namespace starling {

// A piece of computing, counted in advance: what a model of its time needs.
struct Work {
  enum Kind : uint8_t { forward, backward, update, memory };
  Kind kind = memory;
  double flops = 0;  // floating-point operations of matrix products: forward, backward
  double bytes = 0;  // memory read and written, beside the flops: parameters and optimizer state for update
  // For traces: of a model that is divided the stage, and the micro-batch of the update.
  int stage = -1, micro_batch = -1;
};

class Clock {
 public:
  virtual ~Clock() = default;
  virtual int64_t now_ns() const = 0;
  // Between these two the rank computes and calls nothing of a communicator; the simulator runs other ranks meanwhile, and lets the work
  // take its modelled time. Not nested.
  virtual void begin(const Work&) {}
  virtual void end() {}
  // Returns when now_ns() has reached the given time, which may lie behind already.
  virtual void sleep_until(int64_t ns) { std::this_thread::sleep_for(std::chrono::nanoseconds(ns - now_ns())); }

  double seconds() const { return 1e-9 * static_cast<double>(now_ns()); }
  template <class Body>
  void spend(const Work& work, const Body& body) {
    begin(work);
    try {
      body();
    } catch (...) {
      end();
      throw;
    }
    end();
  }
};

class WallClock : public Clock {
 public:
  int64_t now_ns() const override { return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1); }
};

}  // namespace starling
