// The passes of one stage that are under way, each with an arena of its own, and what goes between the stages of a replica for them:
// activations to the next stage, their gradients back.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "comm/mesh.h"
#include "models/model.h"

namespace starling {

struct StagePass {
  explicit StagePass(Memory& memory) : arena(memory) {}
  Arena arena;
  std::optional<Tape> tape;
  std::vector<Var> in, out;
  std::vector<Tensor> given;  // the values of in
  std::vector<Tensor> in_gradients, out_gradients;
  std::vector<const Parameter*> complete;  // gradients that are complete since the forward pass
  Tensor gradient_buffer;
  std::vector<Pending> expected, sent;
};

class StagePasses {
 public:
  StagePasses(Model& model, const Mesh& mesh, GradientSum& gradients);

  // So many passes begin, of these micro-batches.
  void restart(std::vector<const Batch*> batches);
  // The pass of micro-batch i, which takes the place of one that has ended. Waits for what the stage before sends.
  StagePass& open(size_t i, uint64_t seed, uint64_t step);
  const Batch& batch(size_t i) const { return *batches_[i]; }
  // After its forward pass, whose result lies in pass.out: sends that.
  void forward_done(size_t i);
  // Before its backward pass: waits for the gradients of what it sent.
  StagePass& await_gradients(size_t i);
  // After it: sends the gradients of what it was given.
  void backward_done(size_t i);
  // Bytes of arenas and boundaries, at most, so far.
  int64_t activation_bytes() const;
  int64_t bytes_sent() const { return bytes_sent_; }

 private:
  struct Incoming {
    Tensor buffer;
    std::vector<Tensor> tensors;
    std::vector<Pending> pending;
  };
  // Tensors of the boundary before a unit, in a buffer that grows to hold them.
  std::vector<Tensor> boundary(size_t unit, const Batch& batch, Tensor& buffer) const;
  void expect(size_t i);
  void send(StagePass& pass, const Tensor& x, int stage, Tag tag);
  StagePass& at(size_t i) { return *passes_[i % passes_.size()]; }

  Model& model_;
  const Mesh& mesh_;
  GradientSum& gradients_;
  size_t first_unit_, end_unit_;
  std::vector<const Batch*> batches_;
  std::vector<std::unique_ptr<StagePass>> passes_;
  int64_t bytes_sent_ = 0;
  std::vector<Incoming> incoming_;  // one more than passes: the next may arrive while all are under way
};

}  // namespace starling
