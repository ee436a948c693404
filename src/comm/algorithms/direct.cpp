// Parts go straight to their owners: few rounds, N-1 messages at once. Each rank begins with its right neighbour, so that no rank is
// everybody's first target.
#include "comm/algorithms/common.h"

namespace starling {
namespace {

// The other ranks, from the right neighbour on.
std::vector<int> others(const CollectiveShape& s) {
  std::vector<int> ranks;
  for (int i = 1; i < s.size; ++i) ranks.push_back((s.rank + i) % s.size);
  return ranks;
}

}  // namespace

Schedule direct_reduce_scatter(const CollectiveShape& s, Reduce reduce) {
  Schedule schedule;
  if (s.size == 1) return schedule;
  const PartBytes own = part_bytes(s, s.rank);
  Schedule::Round round;
  for (const int peer : others(s)) {
    const PartBytes out = part_bytes(s, peer);
    round.sends.push_back({peer, Area::data, out.offset, out.bytes});
    const int64_t slot = static_cast<int64_t>(peer - (peer > s.rank)) * own.bytes;
    round.receives.push_back({peer, Area::scratch, slot, own.bytes});
  }
  for (int slot = 0; slot + 1 < s.size; ++slot)  // by rank, whatever order they came in
    round.after.push_back({op_of(reduce), Area::data, own.offset, Area::scratch, slot * own.bytes, own.count});
  schedule.scratch_bytes = (s.size - 1) * own.bytes;
  schedule.rounds.push_back(std::move(round));
  return schedule;
}

Schedule direct_all_gather(const CollectiveShape& s) {
  Schedule schedule;
  if (s.size == 1) return schedule;
  const PartBytes own = part_bytes(s, s.rank);
  Schedule::Round round;
  for (const int peer : others(s)) {
    const PartBytes in = part_bytes(s, peer);
    round.sends.push_back({peer, Area::data, own.offset, own.bytes});
    round.receives.push_back({peer, Area::data, in.offset, in.bytes});
  }
  schedule.rounds.push_back(std::move(round));
  return schedule;
}

Schedule bf16_all_reduce(const CollectiveShape& s) {
  CHECK(s.type == DType::f32, "bf16 on the wire is for f32 tensors, not {}", name_of(s.type));
  Schedule schedule;
  if (s.size == 1) return schedule;
  const Range own = part(s.count, s.rank, s.size);
  const auto wire = [](int64_t elements) { return 2 * elements; };  // scratch begins with the tensor as bf16
  const int64_t slots = wire(s.count);                              // then come the others' contributions to the own part

  Schedule::Round exchange, gather;
  exchange.before.push_back({Schedule::Local::narrow, Area::scratch, 0, Area::data, 0, s.count});
  for (const int peer : others(s)) {
    const Range theirs = part(s.count, peer, s.size);
    exchange.sends.push_back({peer, Area::scratch, wire(theirs.begin), wire(theirs.count())});
    const int64_t slot = slots + static_cast<int64_t>(peer - (peer > s.rank)) * wire(own.count());
    exchange.receives.push_back({peer, Area::scratch, slot, wire(own.count())});
    gather.sends.push_back({peer, Area::scratch, wire(own.begin), wire(own.count())});
    gather.receives.push_back({peer, Area::scratch, wire(theirs.begin), wire(theirs.count())});
  }
  for (int slot = 0; slot + 1 < s.size; ++slot)
    exchange.after.push_back(
        {Schedule::Local::add_widened, Area::data, 4 * own.begin, Area::scratch, slots + slot * wire(own.count()), own.count()});
  exchange.after.push_back({Schedule::Local::narrow, Area::scratch, wire(own.begin), Area::data, 4 * own.begin, own.count()});
  gather.after.push_back({Schedule::Local::widen, Area::data, 0, Area::scratch, 0, s.count});
  schedule.scratch_bytes = slots + (s.size - 1) * wire(own.count());
  schedule.rounds = {std::move(exchange), std::move(gather)};
  return schedule;
}

Schedule gather_varying(const CollectiveShape& s, std::span<const int64_t> offsets) {
  CHECK(static_cast<int>(offsets.size()) == s.size + 1 && offsets.front() == 0 && offsets.back() == s.count,
        "{} offsets up to {} for {} ranks and {} elements", offsets.size(), offsets.empty() ? -1 : offsets.back(), s.size, s.count);
  std::vector<Owned> owned;
  for (int r = 0; r < s.size; ++r) owned.push_back({{offsets[static_cast<size_t>(r)], offsets[static_cast<size_t>(r) + 1]}, r});
  return gather_owned(s, owned, s.size);
}

Schedule gather_owned(const CollectiveShape& s, std::span<const Owned> owned, int receivers) {
  Schedule schedule;
  if (s.size == 1) return schedule;
  const int64_t element = size_of(s.type);
  std::vector<std::vector<Range>> of(static_cast<size_t>(s.size));
  for (const Owned& o : owned) of[static_cast<size_t>(o.rank)].push_back(o.range);
  Schedule::Round round;
  for (const int peer : others(s)) {
    if (peer < receivers)
      for (const Range& r : of[static_cast<size_t>(s.rank)])
        round.sends.push_back({peer, Area::data, r.begin * element, r.count() * element});
    if (s.rank < receivers)
      for (const Range& r : of[static_cast<size_t>(peer)])
        round.receives.push_back({peer, Area::data, r.begin * element, r.count() * element});
  }
  schedule.rounds.push_back(std::move(round));
  return schedule;
}

Schedule hand_over(const CollectiveShape& s, std::span<const Owned> from, std::span<const Owned> to) {
  Schedule schedule;
  const int64_t element = size_of(s.type);
  Schedule::Round round;
  each_change(from, to, [&](const Range& r, int giver, int getter) {
    if (giver == s.rank) round.sends.push_back({getter, Area::data, r.begin * element, r.count() * element});
    if (getter == s.rank) round.receives.push_back({giver, Area::data, r.begin * element, r.count() * element});
  });
  schedule.rounds.push_back(std::move(round));
  return schedule;
}

Schedule then(Schedule first, const Schedule& second) {
  CHECK(second.scratch_bytes == 0, "a second schedule with {} bytes of scratch", second.scratch_bytes);
  first.rounds.insert(first.rounds.end(), second.rounds.begin(), second.rounds.end());
  return first;
}

Schedule dissemination_barrier(int rank, int size) {
  Schedule schedule;
  int round_number = 0;
  for (int distance = 1; distance < size; distance *= 2, ++round_number) {
    Schedule::Round round;
    round.sends.push_back({(rank + distance) % size, Area::scratch, 0, 1});
    round.receives.push_back({(rank - distance + size) % size, Area::scratch, 1, 1});
    schedule.rounds.push_back(std::move(round));
  }
  schedule.scratch_bytes = 2;
  return schedule;
}

}  // namespace starling
