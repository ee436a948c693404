// Time as a strategy sees it: the machine's in a real run, virtual in the simulator, where computing takes as long as a calibrated model of
// the machine says. Nothing may read the machine's time in any other way.
#pragma once

#include <chrono>
#include <cstdint>
#include <thread>

namespace starling {

// A piece of computation, measured in advance as a model of its time needs it.
struct Work {
  enum Kind : uint8_t { forward, backward, update, memory, coding };
  Kind kind = memory;
  double flops = 0;  // floating-point operations of matrix products: forward, backward
  double bytes = 0;  // memory read and written, beside the flops: parameters and optimizer state for update; for coding, which compresses
                     // gradients and adds up what others have compressed, the bytes whose copying takes as long
  // For traces: the stage, if the model is divided, and the micro-batch of the update.
  int stage = -1, micro_batch = -1;
};

class Clock {
 public:
  virtual ~Clock() = default;
  virtual int64_t now_ns() const = 0;
  // Between these two calls the rank computes and makes no call to a communicator; the simulator runs other ranks in this time, and charges
  // the modelled time for the work. Not nested.
  virtual void begin(const Work&) {}
  virtual void end() {}
  // Returns when now_ns() has reached the given time, which may already be past.
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
