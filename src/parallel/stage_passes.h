// The passes of one stage that are in progress, each with its own arena, and what travels between the stages of a replica for them:
// activations to the next stage and their gradients back, step by step.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "comm/mesh.h"
#include "models/model.h"
#include "parallel/output_shares.h"

namespace starling {

// A step of a pass, with its inputs and outputs.
struct StageStep {
  explicit StageStep(Tape tape) : tape(std::move(tape)) {}
  Tape tape;
  std::vector<Var> in, out;
  std::vector<Tensor> in_gradients, out_gradients;
  Var for_output;  // rows for an output apart from the layers
  Tensor for_output_gradient;
  std::vector<Pending> expected;  // gradients of its outputs
};

// The pass of one micro-batch through this stage.
struct StagePass {
  explicit StagePass(Memory& memory) : arena(memory) {}
  Arena arena;
  std::unique_ptr<ChunkedPass> model;
  std::deque<StageStep> steps;             // those that have begun
  bool backwards = false;                  // its backward pass has begun
  std::vector<const Parameter*> complete;  // parameters whose gradients were complete before that
  Tensor gradient_buffer;
  std::vector<Pending> sent;
};

class StagePasses {
 public:
  StagePasses(Model& model, const Mesh& mesh, GradientSum& gradients);

  // Prepares the passes of these micro-batches.
  void restart(std::vector<const Batch*> batches);
  // Opens the pass of micro-batch i in the place of one that has ended; it has no steps yet.
  StagePass& open(size_t i, double label_smoothing);
  StagePass& operator[](size_t i) { return *passes_[i % passes_.size()]; }
  // Prepares its next forward step; waits for the input from the previous stage.
  StageStep& next_step(size_t i, uint64_t seed, uint64_t update);
  // After the step: sends its output, step.out.
  void forward_done(size_t i);
  // Before a step's backward pass: waits for the gradients of its output.
  StageStep& await_gradients(size_t i, size_t step);
  // After the backward pass: sends the gradients of its input.
  void backward_done(size_t i, size_t step);
  // The most bytes that arenas and boundaries have used so far.
  int64_t activation_bytes() const;
  int64_t bytes_sent() const { return bytes_sent_ + (output_ ? output_->bytes_sent() : 0); }
  // Only if every stage has the model's output.
  OutputShares& output() { return *output_; }

 private:
  using Pieces = std::vector<std::vector<Tensor>>;
  struct Incoming {
    Tensor buffer;
    Pieces tensors;
    std::vector<std::vector<Pending>> pending;
  };
  // The tensors of the pieces of the boundary in front of a unit, in a buffer that grows to hold them.
  Pieces boundary(size_t unit, const Batch& batch, Tensor& buffer) const;
  void expect(size_t i);
  // All shards have the same tensors to send between stages, so each sends a part, and the receivers join the parts.
  Tensor part_here(const Tensor& x) const;
  void join_parts(const Tensor& x);
  void send(StagePass& pass, const Tensor& x, int stage, Tag tag);
  void expect_gradients(size_t i);

  Model& model_;
  const Mesh& mesh_;
  GradientSum& gradients_;
  std::optional<OutputShares> output_;
  size_t first_unit_, end_unit_;
  std::vector<const Batch*> batches_;
  std::vector<std::unique_ptr<StagePass>> passes_;
  int64_t bytes_sent_ = 0;
  std::vector<Incoming> incoming_;  // one more than passes: the next may arrive while all are under way
};

}  // namespace starling
