// What owners of parameters send back where bf16 goes over the wire: their steps, rounded, instead of the parameters. Every rank, the owner
// too, adds the same rounded steps to the same f32 parameters, so replicas stay equal bit for bit, and what is rounded is a step, by 2^-8
// of it at most, never a parameter.
#pragma once

#include <vector>

#include "backend/flat.h"
#include "base/range.h"

namespace starling {

class RoundedSteps {
 public:
  // values: the parameters, f32, flat; own: what this rank updates, ascending; largest: elements of the largest range of make() and add().
  RoundedSteps(FlatOps& flat, const Tensor& values, std::vector<Range> own, int64_t largest);

  // Before the update: keeps what this rank is going to update.
  void remember();
  // The rounded steps that the update made in a range of its own; the parameters there are what they were before.
  void make(const Range& range);
  // [parameters], bf16: what goes over the wire.
  const Tensor& wire() const { return wire_; }
  // Adds the steps of a range, which may be anyone's, to the parameters.
  void add(const Range& range);

  // Bytes that each of these moves, per element.
  static constexpr double kRememberBytes = 8, kMakeBytes = 18, kAddBytes = 10;

 private:
  Tensor before(const Range& range) const;

  FlatOps& flat_;
  Tensor values_, wire_;
  Tensor before_;  // of `own_`, one behind the other
  Tensor wide_;    // [largest]
  std::vector<Range> own_;
};

}  // namespace starling
