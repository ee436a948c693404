// Splits the time of a backward pass, which is one call, into pieces that end where buckets become complete, so that the simulator can
// start a bucket's exchange at that moment.
#pragma once

#include <functional>
#include <utility>

#include "comm/world.h"

namespace starling {

class BucketTimes {
 public:
  BucketTimes(Clock& clock, size_t buckets) : clock_(clock), buckets_(buckets) {}

  // Begins a pass, which has one or more steps.
  void restart() {
    next_ = 0;
    computing_ = false;
    work_ = nullptr;
  }
  // Runs body, a step's backward pass, during which bucket_ready() is called for each bucket that becomes complete. work(b): what the step
  // computes for bucket b; work(buckets): what it computes for none of them.
  void spend(std::function<Work(size_t bucket)> work, const std::function<void()>& body) {
    work_ = std::move(work);
    first_ = next_;
    begin_piece();
    body();
    end_piece();
    // Adds the work for buckets that were complete before this step, and for those that are not yet.
    Work rest = work_(buckets_);
    for (size_t b = 0; b < buckets_; ++b) {
      if (b >= first_ && b <= next_) continue;
      const Work piece = work_(b);
      rest.flops += piece.flops;
      rest.bytes += piece.bytes;
    }
    work_ = nullptr;
    if (rest.flops > 0) clock_.spend(rest, [] {});
  }
  // Called when bucket b is complete: calls exchange between two pieces of a step's time, or immediately if no step is under way.
  void bucket_ready(size_t b, const std::function<void(size_t)>& exchange) {
    if (!work_) return exchange(b);
    end_piece();
    exchange(b);
    next_ = b + 1;
    begin_piece();
  }

 private:
  void begin_piece() {
    const Work work = work_(next_);
    if (work.flops == 0 && next_ != first_) return;
    clock_.begin(work);
    computing_ = true;
  }
  void end_piece() {
    if (std::exchange(computing_, false)) clock_.end();
  }

  Clock& clock_;
  size_t buckets_, first_ = 0, next_ = 0;  // first_: at the beginning of the step
  bool computing_ = false;
  std::function<Work(size_t)> work_;  // while a step is under way
};

}  // namespace starling
