// The model's output if every stage has it (Mesh::hybrid), each for a share of the sentences of every micro-batch. Its inputs come from the
// stages with the last layers of the encoder and the decoder, and their gradients go back there. Each of its passes is forward and backward
// at once, in the order of the micro-batches.
#pragma once

#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "comm/mesh.h"
#include "models/model.h"

namespace starling {

// Waits for all of them and empties the list.
void wait_for(std::vector<Pending>& pending);
// Splits the sentences of a batch into contiguous shares, one per stage, with target tokens in the ratio of the weights; some may be empty.
std::vector<Batch> output_shares(const Batch& batch, std::span<const double> weights);
// The rows of each share in tensor `tensor` of the boundary in front of the output.
std::vector<Range> share_rows(const Model& model, const std::vector<Batch>& shares, size_t tensor);

class OutputShares {
 public:
  OutputShares(Model& model, const Mesh& mesh, GradientSum& gradients);

  void restart(const std::vector<const Batch*>& batches);
  const std::vector<Batch>& shares(size_t i) const { return shares_[i]; }
  const Batch& own(size_t i) const { return shares_[i][static_cast<size_t>(mesh_.stage())]; }

  // Sends the rows that a step of the layers left to the stages. Adds what is sent and expected to the lists; the returned gradients of all
  // rows are complete once the expected ones have arrived and the output's pass here is over.
  Tensor send(size_t i, const ChunkedPass::ForOutput& left, std::vector<Pending>& sent, std::vector<Pending>& expected);

  // Begins the pass of micro-batch i, whose share here must not be empty; waits for its inputs.
  Tape& begin(size_t i, double label_smoothing, uint64_t seed, uint64_t update);
  void forward(Loss& loss) { pass_->forward(*tape_, in_, loss); }
  // After tape().backward(), or for an empty share: sends gradients back and starts to receive the inputs of micro-batch i + 1.
  void end(size_t i);

  int64_t bytes_sent() const { return bytes_sent_; }
  int64_t activation_bytes() const { return arena_.most_used() + (buffer_ ? buffer_.bytes() : 0); }

 private:
  // Rows of the layers on this stage itself, and the place for their gradients.
  struct OwnRows {
    Tensor values, gradients;
  };
  void expect(size_t i);

  Model& model_;
  const Mesh& mesh_;
  GradientSum& gradients_;
  std::vector<int> sources_;  // stages, by tensor
  std::vector<double> weights_;
  std::vector<std::vector<Batch>> shares_;
  std::vector<std::deque<OwnRows>> own_;  // by tensor, for the micro-batches to come
  Arena arena_;
  Tensor buffer_;
  std::vector<Tensor> received_;  // by tensor; empty if it is this stage's own
  std::vector<Pending> pending_, sent_;
  std::unique_ptr<ChunkedPass> pass_;
  std::unique_ptr<Tape> tape_;
  std::vector<Var> in_;
  std::vector<Tensor> in_gradients_;
  int64_t bytes_sent_ = 0;
};

}  // namespace starling
