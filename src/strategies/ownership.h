// Who updates which elements of the flat buffers: each owner updates its part of each bucket, except for Muon's matrices, whose steps need
// them whole. Each matrix goes to one owner, the costliest first, always to the owner with the least work. Gradients, which are summed
// where the parts are, then change hands before the update.
#pragma once

#include <vector>

#include "comm/algorithms/algorithms.h"
#include "optim/muon.h"
#include "strategies/buckets.h"

namespace starling {

class Ownership {
 public:
  // owners: ranks, in the order of their parts; matrices: sorted by offset.
  Ownership(const std::vector<Bucket>& buckets, const std::vector<int>& owners, std::vector<MatrixPlace> matrices);

  // For a bucket, by offset from its beginning: who holds which part, and who updates what.
  const std::vector<Owned>& parts(size_t bucket) const { return parts_[bucket]; }
  const std::vector<Owned>& updated(size_t bucket) const { return updated_[bucket]; }
  // Whether the two differ.
  bool changes_hands(size_t bucket) const { return parts_[bucket] != updated_[bucket]; }
  // Whether matrices are updated by one owner each.
  bool by_matrices() const { return !matrices_.empty(); }
  // The number of elements that change hands, over all buckets.
  int64_t moved() const { return moved_; }
  // Whether that offset lies within a matrix.
  bool cuts(int64_t offset) const;
  // What a rank updates, ascending: of the flat buffer, and of a bucket.
  std::vector<Range> of(int rank) const;
  std::vector<Range> updated_by(int rank, size_t bucket) const;
  // to_owners sends the sums of a bucket from where its parts are to their owners; from_owners sends the results back there, and on to
  // ranks 0 to receivers - 1. So every link carries an equal share of each bucket, and no link carries a whole matrix N times.
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
