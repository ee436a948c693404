// What the owners of parameters send back if bf16 goes over the wire: their steps, rounded, instead of the parameters. Every rank, the
// owner included, adds the same rounded steps to the same f32 parameters, so replicas stay equal bit for bit, and rounding changes a step,
// by at most 2^-8 of it, but never a parameter.
#pragma once

#include <vector>

#include "backend/flat.h"
#include "base/range.h"

namespace starling {

class RoundedSteps {
 public:
  // values: the parameters, f32, flat; own: what this rank updates, ascending; largest: the largest number of elements in a range given to
  // make() or add().
  RoundedSteps(FlatOps& flat, const Tensor& values, std::vector<Range> own, int64_t largest);

  // Before the update: keeps a copy of what this rank is going to update.
  void remember();
  // Makes the rounded steps of the update in a range of this rank's own, and sets the parameters there back to what they were before.
  void make(const Range& range);
  // [parameters], bf16: what goes over the wire.
  const Tensor& wire() const { return wire_; }
  // Adds the steps of a range, whoever owns it, to the parameters.
  void add(const Range& range);

  // Bytes that each of these moves, per element.
  static constexpr double kRememberBytes = 8, kMakeBytes = 18, kAddBytes = 10;

 private:
  Tensor before(const Range& range) const;

  FlatOps& flat_;
  Tensor values_, wire_;
  Tensor before_;  // of `own_`, one range after another
  Tensor wide_;    // [largest]
  std::vector<Range> own_;
};

}  // namespace starling
