// Parameters that several workers of a replica have. There are three kinds. A parameter that several pipeline stages use, such as a table
// that is embedding and output: the stage of the first use owns it, adds up its gradient and updates it; the others have copies of its
// value. A parameter that is whole among shards: the first worker owns it; since all workers compute the same gradient, nothing is added
// up. A parameter of a unit that every stage has: each stage owns a part of it, whose gradient it gets by a reduce-scatter; an all-gather
// makes the values whole again.
#pragma once

#include <vector>

#include "autograd/gradients.h"
#include "comm/clock.h"
#include "comm/mesh.h"
#include "models/model.h"

namespace starling {

class SharedParameters {
 public:
  SharedParameters(Model& model, const Mesh& mesh);
  // Whether other stages add to the gradient of a parameter that this one owns or has a copy of.
  bool has(const Parameter& p) const;
  // Begins to add up the output's gradients after its last pass, if every stage has the output. Collective among the replica.
  void begin_sums(GradientSum& gradients);
  // After the last backward pass: makes the owners' gradients the sum over the stages. Collective among the replica.
  void gather_gradients(Clock& clock);
  // Sends the owner's value to the copies. Collective among the replica.
  void share();
  int64_t bytes_sent() const { return bytes_sent_; }

 private:
  struct Shared {
    Parameter* parameter;
    int owner;
    std::vector<int> copies;  // stages, ascending
    Tensor buffer;            // of the owner, for gradients
  };
  // A parameter of a unit that every stage has.
  struct Spread {
    Parameter* copy;
    const Parameter* own;  // null: owns no part of it
    Pending sum;
  };
  Pending send(const Tensor& x, int to, Tag tag);
  void share_uncut();
  // Counts what a collective with one part per rank sends, by the ring's schedule.
  void count(const Spread& s);

  Model& model_;
  const Mesh& mesh_;
  int64_t bytes_sent_ = 0;
  std::vector<Shared> shared_;  // those that this stage owns or copies
  std::vector<Spread> spread_;
  std::vector<Parameter*> uncut_;  // whole among shards
  Tensor uncut_values_;            // side by side
};

}  // namespace starling
