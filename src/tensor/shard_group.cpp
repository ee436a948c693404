#include "tensor/shard_group.h"

#include <algorithm>

namespace starling {
namespace {

// The number of positions in front of the axis, and of elements behind each index of it.
struct Around {
  int64_t outer = 1, inner = 1;
};
Around around(const Shape& shape, int axis) {
  Around a;
  for (int i = 0; i < shape.rank(); ++i) (i < axis ? a.outer : a.inner) *= i == axis ? 1 : shape[i];
  return a;
}

int64_t block_size(const Shape& whole, const Cut& cut) {
  CHECK(cut.axis < whole.rank() && whole[cut.axis] % cut.blocks == 0, "{} has no {} blocks along axis {}", whole.text(), cut.blocks,
        cut.axis);
  return whole[cut.axis] / cut.blocks;
}

}  // namespace

bool any_shard(ShardGroup* group, bool said) {
  if (!is_spread(group)) return said;
  const Tensor asked({1}, DType::f64);
  doubles_of(asked)[0] = said ? 1 : 0;
  group->maximum(asked);
  return doubles_of(asked)[0] > 0;
}

Range shard_of(int64_t n, int rank, int size) {
  const int64_t each = n / size, larger = n % size;
  const int64_t begin = rank * each + std::min<int64_t>(rank, larger);
  return {begin, begin + each + (rank < larger ? 1 : 0)};
}

Shape shard_shape(const Shape& whole, const Cut& cut, int rank, int size) {
  if (cut.axis < 0) return whole;
  const int64_t own = cut.blocks * shard_of(block_size(whole, cut), rank, size).count();
  const auto at = [&](int i) { return i == cut.axis ? own : whole[i]; };
  return whole.rank() == 1 ? Shape{at(0)} : Shape{at(0), at(1)};
}

std::vector<Range> shard_ranges(const Shape& whole, const Cut& cut, int rank, int size) {
  if (cut.axis < 0) return {{0, whole.count()}};
  const int64_t block = block_size(whole, cut);
  const Range own = shard_of(block, rank, size);
  const Around a = around(whole, cut.axis);
  std::vector<Range> ranges;
  for (int64_t at = 0; at < a.outer * cut.blocks; ++at) {
    const Range r{(at * block + own.begin) * a.inner, (at * block + own.end) * a.inner};
    if (!ranges.empty() && ranges.back().end == r.begin)
      ranges.back().end = r.end;
    else
      ranges.push_back(r);
  }
  return ranges;
}

}  // namespace starling
