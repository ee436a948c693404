// Who updates which elements of the flat buffers: each owner its part of each bucket, but Muon's matrices, whose steps need them whole, go
// to one owner each, the costliest first, always to the owner with the least to do. Then gradients, summed where the parts are, change
// hands before the update.
#pragma once

#include <vector>

#include "comm/algorithms/algorithms.h"
#include "optim/muon.h"
#include "strategies/buckets.h"

namespace starling {

class Ownership {
 public:
  // owners: ranks, in the order of their parts; matrices: by offset.
  Ownership(const std::vector<Bucket>& buckets, const std::vector<int>& owners, std::vector<MatrixPlace> matrices);

  // Of a bucket, by offset, counted from its beginning: the parts, and who updates what.
  const std::vector<Owned>& parts(size_t bucket) const { return parts_[bucket]; }
  const std::vector<Owned>& updated(size_t bucket) const { return updated_[bucket]; }
  // Whether the two differ.
  bool changes_hands(size_t bucket) const { return parts_[bucket] != updated_[bucket]; }
  // Whether matrices have owners.
  bool by_matrices() const { return !matrices_.empty(); }
  // Elements that change hands, of all buckets.
  int64_t moved() const { return moved_; }
  // Whether a matrix lies on both sides of that offset.
  bool cuts(int64_t offset) const;
  // What a rank updates, ascending: of all, and of a bucket.
  std::vector<Range> of(int rank) const;
  std::vector<Range> updated_by(int rank, size_t bucket) const;
  // Sums of a bucket go from where its parts are to their owners, and what these make of them goes back there and on to ranks 0 to
  // receivers - 1. So every link has an equal share of each bucket, and a whole matrix passes nobody's link N times.
  Schedule to_owners(const CollectiveShape& shape, size_t bucket) const;
  Schedule from_owners(const CollectiveShape& shape, size_t bucket, int receivers) const;

 private:
  const std::vector<Bucket>& buckets_;  // which must live as long as this
  std::vector<MatrixPlace> matrices_;
  std::vector<Owned> whole_;  // of the flat buffer
  std::vector<std::vector<Owned>> parts_, updated_;
  int64_t moved_ = 0;
};

}  // namespace starling
