// The workers that hold the shards of one replica's layers, as seen by one of them, and the elements of a parameter that each holds.
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
  // Reduce x over all workers in place, elementwise; all get the same bits. x may have any numeric type and lie in any memory. Both wait.
  virtual void sum(const Tensor& x) = 0;
  virtual void maximum(const Tensor& x) = 0;
};

// False without a group or with a group of one, where nothing is exchanged.
inline bool is_spread(const ShardGroup* group) { return group && group->size() > 1; }

// Returns whether `said` is true on any worker of the group; without a group, returns `said`. All workers must make the same calls.
bool any_shard(ShardGroup* group, bool said);

// How a parameter is cut into shards: along one axis, which consists of `blocks` blocks side by side (queries, keys and values; the gates
// of an LSTM). Every worker holds its part of each block.
struct Cut {
  int axis = -1;  // -1: not cut
  int64_t blocks = 1;
  bool operator==(const Cut&) const = default;
};

// The range of n columns, heads or tokens that belongs to a worker among `size`. Parts differ by at most one; the larger ones come first.
Range shard_of(int64_t n, int rank, int size);
// The shape of a worker's shard, and the ranges of the whole parameter that it holds, ascending.
Shape shard_shape(const Shape& whole, const Cut& cut, int rank, int size);
std::vector<Range> shard_ranges(const Shape& whole, const Cut& cut, int rank, int size);

}  // namespace starling
