#include "measure/link.h"

#include <vector>

#include "measure/peers.h"

namespace starling {
namespace {

constexpr Tag kPing = 7;
constexpr int64_t kLarge = 1 << 20, kLarges = 8;  // elements of a large message, as those of a bucket; their number

}  // namespace

LinkRates measure_link(World& world) {
  Communicator& comm = *world.comm;
  RankPeers peers(comm);
  const int last = comm.size() - 1;
  const bool first_or_last = comm.rank() == 0 || comm.rank() == last;
  const auto latency = [&](int times) {
    const Tensor x({1}, DType::f64);
    peers.together();
    const double start = world.clock->seconds();
    for (int i = 0; i < times; ++i)
      for (const int from : {0, last}) {
        if (comm.rank() == from) comm.send(x, last - from, kPing).wait(kNoDeadline);
        if (comm.rank() == last - from) comm.receive(x, from, kPing).wait(kNoDeadline);
      }
    return (world.clock->seconds() - start) / (2 * times);
  };
  // A simulated link is as fast for whatever memory.
  const int64_t larges = world.simulated ? 2 : kLarges;
  const Tensor out({first_or_last ? larges * kLarge : 0}, DType::f32), in({first_or_last ? larges * kLarge : 0}, DType::f32);
  out.zero();
  const auto seconds = [&] {
    peers.together();
    const double start = world.clock->seconds();
    // All at once, as buckets are. With one message at a time TCP is half duplex, since the reply for which a long message waits stands
    // behind the other direction's message in the socket: half of the rate was measured that a gradient's all-reduce had.
    std::vector<Pending> pending;
    for (int64_t i = 0; i < larges && first_or_last; ++i) {
      pending.push_back(comm.receive(in.slice(i * kLarge, Shape{kLarge}), last - comm.rank(), kPing));
      pending.push_back(comm.send(out.slice(i * kLarge, Shape{kLarge}), last - comm.rank(), kPing));
    }
    for (const Pending& each : pending) each.wait(kNoDeadline);
    return world.clock->seconds() - start;
  };
  latency(10);  // warms up
  const double own_latency = latency(50);
  seconds();
  const double own_seconds = seconds();
  const double own[] = {own_latency, static_cast<double>(out.bytes()) / own_seconds};
  const std::vector<double> all = peers.gather(own);
  return {all[0], all[1]};
}

double time_all_reduce(World& world, const Tensor& gradients, std::span<const Bucket> buckets, Wire wire,
                       const std::function<void()>& forget) {
  Communicator& comm = *world.comm;
  RankPeers peers(comm);
  gradients.zero();
  double total = 0;
  constexpr int kTimes = 5;
  for (int i = -1; i < kTimes; ++i) {
    forget();
    peers.together();
    const double start = world.clock->seconds();
    std::vector<Pending> pending;
    for (const Bucket& b : buckets) {
      const Tensor x = gradients.slice(b.range.begin, Shape{b.range.count()});
      pending.push_back(wire == Wire::bf16 ? comm.all_reduce_bf16(x) : comm.all_reduce(x));
    }
    for (const Pending& p : pending) p.wait(kNoDeadline);
    const double time = peers.largest(world.clock->seconds() - start);
    if (i >= 0) total += time / kTimes;  // the first warms up
  }
  return total;
}

}  // namespace starling
