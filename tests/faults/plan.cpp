#include "tests/faults/plan.h"

namespace starling {
namespace {

class Draw {
 public:
  explicit Draw(uint64_t seed) : random_(seed, 0xFA17) {}
  bool chance(double probability) { return random_.uniform() < probability; }
  double between(double low, double high) { return low + (high - low) * random_.uniform(); }
  int64_t upto(int64_t most) { return 1 + static_cast<int64_t>(random_.below(static_cast<uint64_t>(most))); }
  int below(int n) { return static_cast<int>(random_.below(static_cast<uint64_t>(n))); }

 private:
  Random random_;
};

void slow_ranks(Draw& draw, Scenario& s, const Extent& extent) {
  for (int n = draw.below(3); n > 0; --n) {
    const double from = draw.between(0, extent.seconds);
    s.stragglers.push_back({draw.below(s.ranks), from, from + draw.between(0, extent.seconds), draw.between(1.5, 20)});
  }
}

void bad_network(Draw& draw, Scenario& s, const Extent& extent) {
  if (draw.chance(0.3)) s.link_faults.push_back({.node = draw.below(s.ranks), .factor = draw.between(0.001, 0.5)});
  if (draw.chance(0.3)) {  // cut off, for a while or until it is given up
    const double from = draw.between(0, extent.seconds), lasts = draw.chance(0.3) ? 3 * kDeadlineSeconds : draw.between(0, kLongestCut);
    s.link_faults.push_back({draw.below(s.ranks), from, from + lasts, 0});
  }
  if (draw.chance(0.5))
    s.message_faults.push_back({.lost = draw.between(0, 0.05), .delayed = draw.between(0, 0.3), .doubled = draw.between(0, 0.3)});
}

void full_disk(Draw& draw, FaultPlan& disk, const Extent& extent) {
  disk.capacity_bytes = static_cast<int64_t>(draw.between(0.1, 1) * static_cast<double>(extent.disk_bytes));
}

void bad_disk(Draw& draw, FaultPlan& disk, const Extent& extent) {
  disk.at = draw.upto(extent.disk_operations);
  disk.fault = static_cast<Fault>(draw.below(3));
  disk.surviving = static_cast<Surviving>(draw.below(4));
  disk.can_exchange = draw.chance(0.8);
  disk.seed = static_cast<uint64_t>(draw.upto(1 << 20));
  if (draw.chance(0.25)) full_disk(draw, disk, extent);
}

}  // namespace

std::vector<Attempt> draw_attempts(uint64_t seed, const Layout& layout, const Extent& extent) {
  Draw draw(seed);
  std::vector<Attempt> all(static_cast<size_t>(draw.upto(3)));
  for (size_t i = 0; i < all.size(); ++i) {
    Attempt& a = all[i];
    Scenario& s = a.scenario;
    s.seed = seed * 16 + i;
    s.ranks = layout.ranks;
    if (layout.kind == Layout::synchronous && draw.chance(0.2)) s.ranks = layout.multiple * static_cast<int>(draw.upto(4));
    if (layout.name == "two workers, one server") s.ranks = std::max(s.ranks, 2);
    if (draw.chance(0.4)) slow_ranks(draw, s, extent);
    if (draw.chance(0.5)) bad_network(draw, s, extent);
    if (draw.chance(0.6)) s.crashes.push_back({draw.below(s.ranks), draw.between(0, 1.2 * extent.seconds)});
    if (draw.chance(0.5))
      bad_disk(draw, a.disk, extent);
    else if (draw.chance(0.3))
      full_disk(draw, a.disk, extent);
    if (draw.chance(0.1)) a.stop_at = draw.upto(extent.updates);
    if (draw.chance(0.15) && s.ranks > 1) a.apart = 1 + draw.below(s.ranks - 1);
    a.power = draw.chance(0.4);
    a.corrupts = draw.chance(0.15);
  }
  return all;
}

std::vector<Kill> all_kills(const Layout& layout, const Extent& extent) {
  std::vector<Kill> all;
  const auto add = [&](Kill::Where where) -> Attempt& {
    all.push_back({where, {}});
    all.back().attempt.scenario.ranks = layout.ranks;
    return all.back().attempt;
  };
  for (const double end : extent.update_ends)
    for (int rank = 0; rank < layout.ranks; ++rank) add(Kill::update).scenario.crashes.push_back({rank, end});
  for (const int64_t operation : extent.disk_changes) {
    add(Kill::program).disk = {.at = operation, .fault = Fault::crash, .surviving = Surviving::everything};
    add(Kill::power).disk = {.at = operation, .fault = Fault::crash, .surviving = Surviving::synced_only};
  }
  return all;
}

}  // namespace starling
