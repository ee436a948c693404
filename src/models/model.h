// The interface of translation models for training and decoding. A model knows tensors, not files, ranks or strategies.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "autograd/ops.h"
#include "base/batch.h"
#include "models/config.h"

namespace starling {

// Sizes and special tokens that come from the vocabularies.
struct ModelVocabulary {
  int64_t source_size = 0, target_size = 0;
  int32_t begin = 1, end = 2;  // begin of sentence (the decoder's first input), end of sentence
  int32_t unknown = -1;        // the token for text that the target vocabulary does not cover; -1: there is none
  int32_t padding = -1;        // a token that no translation has, as other programs' vocabularies have one; -1: there is none
};

// A table with one row per token: which sides look rows up in it, and whether it is also the output projection, which touches every row.
struct EmbeddingTable {
  Parameter* table = nullptr;
  bool source = false, target = false, output = false;
};

// The table that a parameter is; null if it is none.
const EmbeddingTable* table_of(const std::vector<EmbeddingTable>& tables, const Parameter& parameter);

// The encoded sources of the sentences that are being translated, and the caches of their target prefixes. Sentences come and go between
// steps (Model::encode, drop); new ones reuse the memory of those that have gone.
class DecodeState {
 public:
  virtual ~DecodeState() = default;
  // Forgets a sentence; none of its rows may be extended afterwards.
  virtual void drop(int32_t sentence) = 0;
  // The bytes of memory that it holds, without weights and the working memory of a step.
  virtual int64_t bytes() const = 0;
};

// The cost of one step of a pass, expressed in source and target rows: the rows for which the model's units do as many operations.
struct StepShare {
  double source = 0, target = 0;
};

// A pass of a model's units over a batch, in steps: one, or one per piece of time. Each step has a tape; the backward passes run in reverse
// order. The tapes belong to one pass and share its arena (Tape::another). Tensors that cross a boundary in pieces enter at the first steps
// and leave at the last ones.
class ChunkedPass {
 public:
  virtual ~ChunkedPass() = default;
  virtual size_t steps() const = 0;
  virtual StepShare share(size_t step) const = 0;
  // Runs the forward pass of the next step, as Model::forward does that of all.
  virtual std::vector<Var> forward(Tape& tape, std::vector<Var> in, Loss& loss) = 0;

  // Only for Model::begin_layers: the step that takes the first piece of a boundary.
  virtual size_t first_taking() const { return 0; }
  // What the last step left for an output that is apart: the rows of all shares, one share after another, of tensor `tensor` of the
  // output's boundary. Empty if nothing.
  struct ForOutput {
    Var rows;
    size_t tensor = 0;
  };
  virtual ForOutput for_output() const { return {}; }
};

// A translation model, or the units of one that a worker holds.
class Model {
 public:
  virtual ~Model() = default;
  // The parameters of the units that this model holds.
  virtual ParameterStore& parameters() = 0;
  virtual const ModelConfig& config() const = 0;
  virtual const ModelVocabulary& vocabulary() const = 0;
  // Includes tables that this model does not hold.
  virtual std::vector<EmbeddingTable> embedding_tables() = 0;

  // The number of units of the whole model: each layer is one, with the embeddings in front of it; the last is the output.
  virtual size_t units() const = 0;
  bool has_first();
  bool has_output();
  bool whole();
  // The shapes of the tensors, in activation type, that enter unit `unit` (not the first) from the unit before it for this batch.
  virtual std::vector<Shape> boundary(size_t unit, const Batch& batch) const = 0;
  // Runs the forward pass of this model's units: takes what the unit before them left and returns what they leave for the next. If the
  // output is among them, they leave a loss; otherwise only the loss's counts of clipped values.
  virtual std::vector<Var> forward(Tape& tape, const Batch& batch, double label_smoothing, std::vector<Var> in, Loss& loss) = 0;

  // Begins a pass in which tensors go from unit to unit in that many pieces of time, or fewer if there are fewer steps of time. A model
  // without such pieces ignores the number. The batch must live as long as the pass.
  virtual std::unique_ptr<ChunkedPass> begin_pass(const Batch& batch, double label_smoothing, int64_t time_pieces);
  // boundary() of each of these pieces.
  virtual std::vector<std::vector<Shape>> boundary_pieces(size_t unit, const Batch& batch, int64_t time_pieces) const;

  // Runs the forward pass of a whole model and, on a training tape, records everything that tape.backward() needs. Losses are sums over
  // target tokens; gradients are those of the SUM. batch.weights weigh the smoothed sum and the gradients.
  Loss loss(Tape& tape, const Batch& batch, double label_smoothing);

  // For models whose output can be apart from the layers, on every stage (UnitRange::everywhere), since the layers before it do not need
  // each other's whole results. begin_layers() begins a pass of this stage's layers for a batch, which leaves what the output reads for
  // these shares of it; begin_output() begins a pass of the output for one share, which takes one piece of the boundary in front of it.
  // Batches must live as long as the passes. output_reads: the units that produce the tensors of that boundary; none if the model cannot be
  // divided in this way.
  virtual std::vector<size_t> output_reads() const { return {}; }
  virtual std::unique_ptr<ChunkedPass> begin_layers(const Batch& batch, std::span<const Batch> shares, int64_t time_pieces);
  virtual std::unique_ptr<ChunkedPass> begin_output(const Batch& share, double label_smoothing);

  // Returns a state without sentences. Only for a whole model.
  virtual std::unique_ptr<DecodeState> begin_decoding() = 0;
  // Encodes sources of at least one token each as one batch and adds them to the state. Returns their numbers there, ascending, which no
  // other sentence of the state has.
  virtual std::vector<int32_t> encode(DecodeState& state, const PackedTokens& source) = 0;
  // Runs one decoding step for R rows: row r extends row parent[r] of the previous step by token[r], or, where parent[r] is -1, begins
  // sentence[r] with it. Sentences must not decrease from row to row; rows of the previous step that are not extended are forgotten.
  // Returns logits [R, V] as a product, valid until the next call; in shards, those of the local tokens (output_shard). attention, if
  // given, gets for each row the weights of this step's attention over the source tokens of the row's sentence, valid as long; each row
  // sums to 1.
  virtual OutputProduct next_output(DecodeState& state, std::span<const int32_t> token, std::span<const int32_t> sentence,
                                    std::span<const int32_t> parent, Tensor* attention = nullptr) = 0;

  // The tokens whose logits next_output gives.
  VocabularyShard output_shard();

  // Sets the bound from here on in training with clipped states (ModelConfig::clip). Models without states ignore it.
  virtual void set_clip(double) {}
};

// Whether a model's matrix is multiplied with source tokens (the encoder, keys and values of its output), else with target tokens.
bool multiplies_source(const Parameter& matrix);
// Whether its products take one step of time after another.
bool multiplies_steps(const Parameter& matrix);

// A second view of a model for another thread: the same weights in memory, its own backend and working memory. For inference; the
// weights must not change while it lives.
std::unique_ptr<Model> share_model(Model& model, Backend& backend);

// Makes the model of the configuration, or some of its units, with parameters drawn from the seed (zero without one, to be loaded);
// gradients only when `training`.
std::unique_ptr<Model> make_model(const ModelConfig& config, const ModelVocabulary& vocabulary, Backend& backend,
                                  std::optional<uint64_t> seed, bool training, const ModelPart& part = {});
// The same without values: only declares its parameters.
std::unique_ptr<Model> declare_model(const ModelConfig& config, const ModelVocabulary& vocabulary, Backend& backend,
                                     const ModelPart& part = {});

}  // namespace starling
