// The workers that have the shards of one replica's layers, as one of them sees them, and which elements of a parameter each has.
#pragma once

#include <vector>

#include "base/range.h"
#include "tensor/tensor.h"

namespace starling {

class ShardGroup {
 public:
  virtual ~ShardGroup() = default;
  virtual int rank() const = 0;  // its shard, in the order of columns, heads and tokens
  virtual int size() const = 0;
  // Elements of all workers together, in place of x; the same bits for all. Of any type of numbers, in any memory; waits.
  virtual void sum(const Tensor& x) = 0;
  virtual void maximum(const Tensor& x) = 0;
};

// False without a group, and for a worker alone: nothing is exchanged then.
inline bool is_spread(const ShardGroup* group) { return group && group->size() > 1; }

// Whether any worker of the group says so; without others, what this one says. All workers must make the same calls.
bool any_shard(ShardGroup* group, bool said);

// How a parameter is cut into shards: along an axis, which is so many blocks side by side (queries, keys and values; the gates of an LSTM),
// of each of which every worker has its part.
struct Cut {
  int axis = -1;  // not at all
  int64_t blocks = 1;
  bool operator==(const Cut&) const = default;
};

// Of n columns, heads or tokens, those of a worker among `size`: parts that differ by one at most, the larger ones first.
Range shard_of(int64_t n, int rank, int size);
// The shape of a worker's shard, and its elements in the whole, ascending, as many runs as there are.
Shape shard_shape(const Shape& whole, const Cut& cut, int rank, int size);
std::vector<Range> shard_ranges(const Shape& whole, const Cut& cut, int rank, int size);

}  // namespace starling
