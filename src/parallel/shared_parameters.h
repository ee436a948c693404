// Parameters that several workers of a replica have. One that several stages of a pipeline use, such as a table that is embedding and
// output: the stage of the first use owns it, adds up its gradient and updates it; the others have copies of its value. One that is whole
// among shards: their first worker owns it, and since all of them compute the same gradient, nothing is added up. Of a unit that every
// stage has, each owns a part of each parameter, whose gradient it gets by a reduce-scatter; an all-gather makes the values whole again.
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
  // After the last pass of the output, where every stage has it: its gradients begin to be added up. Collective among the replica.
  void begin_sums(GradientSum& gradients);
  // After the last backward pass: the owners' gradients become the sum over the stages. Collective among the replica.
  void gather_gradients(Clock& clock);
  // The owner's value goes to the copies. Collective among the replica.
  void share();
  int64_t bytes_sent() const { return bytes_sent_; }

 private:
  struct Shared {
    Parameter* parameter;
    int owner;
    std::vector<int> copies;  // stages, ascending
    Tensor buffer;            // of the owner, for gradients
  };
  // Of a unit that every stage has.
  struct Spread {
    Parameter* copy;
    const Parameter* own;  // null: no part of it
    Pending sum;
  };
  Pending send(const Tensor& x, int to, Tag tag);
  void share_uncut();
  // What a collective that leaves this rank its own part sends, of the ring's schedule.
  void count(const Spread& s);

  Model& model_;
  const Mesh& mesh_;
  int64_t bytes_sent_ = 0;
  std::vector<Shared> shared_;  // that this stage owns or has a copy of
  std::vector<Spread> spread_;
  std::vector<Parameter*> uncut_;  // whole among shards
  Tensor uncut_values_;            // side by side
};

}  // namespace starling
