// Spends the time of passes whose layers are in shards. A pass is one call, in the middle of which the shards exchange. How its work is
// distributed between these exchanges is not counted: time passes in equal parts between as many exchanges as the previous pass of the same
// kind had.
#pragma once

#include <algorithm>
#include <map>
#include <utility>

#include "comm/clock.h"
#include "comm/shard_communicator.h"

namespace starling {

class ShardedTime {
 public:
  ShardedTime(Clock& clock, ShardCommunicator& group) : clock_(clock), group_(group) {}

  // Runs body(), which does this work. Passes of the same kind: equal work.kind and step.
  template <class Body>
  void spend(const Work& work, size_t step, const Body& body) {
    work_ = work;
    done_ = 0;
    exchanges_ = 0;
    size_t& usual = usual_[{work.kind, step}];
    group_.before_exchange = [&] {
      ++exchanges_;
      reach(static_cast<double>(exchanges_) / static_cast<double>(std::max(usual, exchanges_) + 1));
    };
    struct Silence {
      ShardCommunicator& group;
      ~Silence() {
        group.before_exchange = [] {};
      }
    };
    {
      const Silence afterwards{group_};
      body();
    }
    reach(1);
    usual = exchanges_;
  }

 private:
  // Spends time until at least this fraction of the work is done.
  void reach(double fraction) {
    if (fraction <= done_) return;
    Work part = work_;
    part.flops *= fraction - done_;
    part.bytes *= fraction - done_;
    clock_.spend(part, [] {});
    done_ = fraction;
  }

  Clock& clock_;
  ShardCommunicator& group_;
  Work work_;
  double done_ = 0;
  size_t exchanges_ = 0;
  std::map<std::pair<Work::Kind, size_t>, size_t> usual_;
};

}  // namespace starling
