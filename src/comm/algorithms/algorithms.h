// Our own collective algorithms: free functions that return the schedule of one rank. N is the number of ranks, M the bytes of the tensor,
// alpha the latency of a message, B the bytes/s of a link. All work for every N, not only powers of two, and for every number of elements.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "comm/schedule.h"

namespace starling {

enum class Reduce : uint8_t { sum, maximum };

struct CollectiveShape {
  int rank = 0, size = 1;
  int64_t count = 0;  // elements of the tensor
  DType type = DType::f32;
};

// Ring (Patarasu & Yuan 2009). reduce_scatter leaves the reduced part(count, rank, size) in place; other elements hold partial sums.
// all_gather fills everything from each rank's own part. Each takes N-1 rounds of one message of M/N, and every rank sends (N-1)/N M.
// all_reduce runs one after the other: 2(N-1) rounds, 2(N-1)/N M sent and received, time 2(N-1) alpha + 2(N-1)/N M/B.
Schedule ring_reduce_scatter(const CollectiveShape&, Reduce);
Schedule ring_all_gather(const CollectiveShape&);
Schedule ring_all_reduce(const CollectiveShape&, Reduce);

// Binomial trees: ceil(log2 N) rounds; each edge carries M once. broadcast sends (N-1) M over all ranks. all_reduce is a reduction to rank
// 0 and a broadcast from it: 2 ceil(log2 N) rounds, and a rank sends at most M ceil(log2 N). For small tensors.
Schedule tree_broadcast(const CollectiveShape&, int root);
Schedule tree_all_reduce(const CollectiveShape&, Reduce);

// Recursive halving and doubling (Rabenseifner; Thakur et al. 2005): with p the largest power of two up to N, 2 log2 p rounds and
// 2(p-1)/p M sent by a rank; the N-p ranks above fold their tensor into a partner first and get the result last (M more each).
Schedule halving_doubling_all_reduce(const CollectiveShape&, Reduce);

// Parts go to their owners and back in 2 rounds of N-1 messages of M/N each: the bytes of a ring with less waiting but more messages at
// once.
Schedule direct_reduce_scatter(const CollectiveShape&, Reduce);
Schedule direct_all_gather(const CollectiveShape&);

// Sum of f32 tensors with bf16 on the wire: parts are sent to their owners as bf16, added there in f32 (the owner's own part unrounded,
// then the others by rank), rounded and gathered. Every rank, the owner included, ends with the rounded sum, so replicas stay equal. 2
// rounds; a rank sends (N-1)/N M, half as much as in the ring.
Schedule bf16_all_reduce(const CollectiveShape&);

// Parts of given sizes: rank k's elements are [offsets[k], offsets[k+1]) of the tensor. One round in which a rank sends its part N-1 times.
Schedule gather_varying(const CollectiveShape&, std::span<const int64_t> offsets);

// Elements of a tensor that belong to a rank.
struct Owned {
  Range range;
  int rank;
  bool operator==(const Owned&) const = default;
};
// Each rank gives what it owns, and ranks 0 .. receivers-1 get all of it. `owned`, by offset, covers the tensor. One round.
Schedule gather_owned(const CollectiveShape&, std::span<const Owned> owned, int receivers);
// Moves elements from the ranks that hold them (`from`) to other ranks (`to`); both lists, by offset, cover the tensor. One round.
Schedule hand_over(const CollectiveShape&, std::span<const Owned> from, std::span<const Owned> to);
// Runs one schedule after the other as one operation; the second must need no scratch.
Schedule then(Schedule first, const Schedule& second);
// Calls visit(range, from, to) for everything that hand_over moves, ascending.
template <class Visit>
void each_change(std::span<const Owned> from, std::span<const Owned> to, Visit visit) {
  for (auto a = from.begin(), b = to.begin(); a != from.end() && b != to.end();) {
    const Range both{std::max(a->range.begin, b->range.begin), std::min(a->range.end, b->range.end)};
    if (both.begin < both.end && a->rank != b->rank) visit(both, a->rank, b->rank);
    a->range.end < b->range.end ? ++a : ++b;
  }
}

// Parameter server: ranks 0 .. workers-1 compute; server i, on rank servers[i], holds part(count, i, servers) of the tensor. push adds up
// the workers' tensors at the servers (by rank; elsewhere the tensor stays as it is); pull brings the servers' parts to all workers. One
// round each. With one dedicated server, 2 N M bytes pass its link per step; with S servers, 2 N M / S each. A server that is also a worker
// saves its own contribution.
struct ServerShape {
  int rank = 0, size = 1;
  int64_t count = 0;
  DType type = DType::f32;
  int workers = 1;
  std::vector<int> servers;
  bool bf16 = false;  // on the wire of push; sums are f32
};
Schedule server_push(const ServerShape&);
Schedule server_pull(const ServerShape&);

// Waits only: ceil(log2 N) rounds of one-byte messages (dissemination: Hensgen, Finkel & Manber 1988).
Schedule dissemination_barrier(int rank, int size);

}  // namespace starling
