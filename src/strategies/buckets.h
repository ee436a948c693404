// The flat gradient cut into buckets, the units of exchange. Buckets are views of the flat buffer, so nothing is packed. They are numbered
// from its end, because the backward pass completes gradients in roughly the reverse of the flat order, and are always exchanged in that
// order, so that all ranks agree without asking each other (Horovod negotiates this at run time).
#pragma once

#include <functional>
#include <vector>

#include "autograd/parameters.h"
#include "base/range.h"

namespace starling {

struct Bucket {
  Range range;
  const Parameter* table = nullptr;  // set if the bucket is exactly this table, which may be exchanged by rows
};

// Whether the parameter has elements in the flat range.
bool overlap(const Parameter& parameter, const Range& range);

// Makes buckets of whole parameters, up to `elements` together. A larger parameter is cut into pieces, except the given tables, which stay
// whole.
std::vector<Bucket> make_buckets(const ParameterStore& parameters, int64_t elements, const std::vector<const Parameter*>& tables);

// Calls ready(b) for b = 0, 1, ... as soon as all parameters that touch buckets 0 to b are complete.
class BucketTracker {
 public:
  BucketTracker(const ParameterStore& parameters, const std::vector<Bucket>& buckets, std::function<void(size_t)> ready);
  void restart();
  void complete(const Parameter& parameter);
  void complete_rest();

 private:
  void advance();
  const ParameterStore& parameters_;
  const std::vector<Bucket>& buckets_;
  std::vector<int> open_;   // the number of parameters in each bucket that are not complete
  std::vector<bool> done_;  // by parameter
  size_t next_ = 0;
  std::function<void(size_t)> ready_;
};

}  // namespace starling
