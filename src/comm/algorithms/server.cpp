// A parameter server as two collectives. With every rank a server of one part, push is a direct reduce-scatter and pull an all-gather.
#include "comm/algorithms/common.h"

namespace starling {
namespace {

struct Share {
  int rank;
  Range range;
};

// Which rank serves which elements; servers whose part is empty are left out.
std::vector<Share> shares(const ServerShape& s) {
  std::vector<Share> all;
  const int S = static_cast<int>(s.servers.size());
  for (int i = 0; i < S; ++i)
    if (const Range range = part(s.count, i, S); range.count() > 0) all.push_back({s.servers[static_cast<size_t>(i)], range});
  return all;
}

}  // namespace

Schedule server_push(const ServerShape& s) {
  CHECK(!s.bf16 || s.type == DType::f32, "bf16 on the wire is for f32 tensors, not {}", name_of(s.type));
  Schedule schedule;
  Schedule::Round round;
  const int64_t wire = s.bf16 ? 2 : size_of(s.type), element = size_of(s.type);
  const Area from = s.bf16 ? Area::scratch : Area::data;
  const bool works = s.rank < s.workers;
  const int64_t contributions = s.bf16 ? wire * s.count : 0;  // where in scratch the workers' contributions begin
  int64_t scratch = contributions;
  if (s.bf16 && works && s.size > 1) round.before.push_back({Schedule::Local::narrow, Area::scratch, 0, Area::data, 0, s.count});
  for (const Share& share : shares(s)) {
    if (share.rank != s.rank) {
      if (works) round.sends.push_back({share.rank, from, share.range.begin * wire, share.range.count() * wire});
      continue;
    }
    // Contributions are added by rank: this server's own first, where it is a worker too.
    const int64_t at = share.range.begin * element, n = share.range.count();
    bool first = !works;
    for (int worker = 0; worker < s.workers; ++worker) {
      if (worker == s.rank) continue;
      if (first && !s.bf16) {
        round.receives.push_back({worker, Area::data, at, n * wire});
      } else {
        round.receives.push_back({worker, Area::scratch, scratch, n * wire});
        const auto op = !s.bf16 ? Schedule::Local::add : first ? Schedule::Local::widen : Schedule::Local::add_widened;
        round.after.push_back({op, Area::data, at, Area::scratch, scratch, n});
        scratch += (n * wire + 63) / 64 * 64;
      }
      first = false;
    }
  }
  schedule.scratch_bytes = scratch;
  if (!round.sends.empty() || !round.receives.empty()) schedule.rounds.push_back(std::move(round));
  return schedule;
}

Schedule server_pull(const ServerShape& s) {
  Schedule schedule;
  Schedule::Round round;
  const int64_t element = size_of(s.type);
  for (const Share& share : shares(s)) {
    const int64_t at = share.range.begin * element, bytes = share.range.count() * element;
    if (share.rank != s.rank) {
      if (s.rank < s.workers) round.receives.push_back({share.rank, Area::data, at, bytes});
      continue;
    }
    for (int i = 1; i <= s.workers; ++i) {
      const int worker = (s.rank + i) % s.workers;  // servers on workers do not all begin with the same one
      if (worker != s.rank) round.sends.push_back({worker, Area::data, at, bytes});
    }
  }
  if (!round.sends.empty() || !round.receives.empty()) schedule.rounds.push_back(std::move(round));
  return schedule;
}

}  // namespace starling
