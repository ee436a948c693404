// What training and decoding ask of a translation model. A model knows tensors, not files, ranks or strategies.
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
  int32_t unknown = -1;        // what stands for text that the target vocabulary does not know; -1: there is no such token
};

// A table of rows by token: what looks rows up in it, and whether it is the output projection, which touches every row.
struct EmbeddingTable {
  Parameter* table = nullptr;
  bool source = false, target = false, output = false;
};

// That of a parameter; null for one that is no table.
const EmbeddingTable* table_of(const std::vector<EmbeddingTable>& tables, const Parameter& parameter);

// The encoded sources of the sentences that are being translated, and the caches of their target prefixes. Sentences come and go between
// steps (Model::encode, drop); those that come use the memory of those that have gone.
class DecodeState {
 public:
  virtual ~DecodeState() = default;
  // Forgets a sentence: none of its rows is extended any more.
  virtual void drop(int32_t sentence) = 0;
  // Of memory that it has, apart from weights and the working memory of a step.
  virtual int64_t bytes() const = 0;
};

// Source and target rows whose cost a step of a pass has: of the operations that the model's units do for each.
struct StepShare {
  double source = 0, target = 0;
};

// A pass of a model's units through a batch, in steps: one, or pieces of time one behind the other. Each step has a tape; backwards they
// run in the reverse order. The tapes are of one pass and share its arena (Tape::another). What went in or out as a piece of a boundary
// goes in at the first steps, and out at the last ones.
class ChunkedPass {
 public:
  virtual ~ChunkedPass() = default;
  virtual size_t steps() const = 0;
  virtual StepShare share(size_t step) const = 0;
  // The forward pass of the next step, as Model::forward is that of all.
  virtual std::vector<Var> forward(Tape& tape, std::vector<Var> in, Loss& loss) = 0;

  // Of Model::begin_layers. The step that takes the first piece of a boundary.
  virtual size_t first_taking() const { return 0; }
  // What the last step left for the output, where that is apart: rows of all shares, one behind the other, of tensor `tensor` of the
  // output's boundary. Empty if nothing.
  struct ForOutput {
    Var rows;
    size_t tensor = 0;
  };
  virtual ForOutput for_output() const { return {}; }
};

class Model {
 public:
  virtual ~Model() = default;
  // Of the units that this model is for.
  virtual ParameterStore& parameters() = 0;
  virtual const ModelConfig& config() const = 0;
  virtual const ModelVocabulary& vocabulary() const = 0;
  // Also those that this model does not have.
  virtual std::vector<EmbeddingTable> embedding_tables() = 0;

  // Units of the whole model: each layer is one, with the embeddings in front of it; the last is the output.
  virtual size_t units() const = 0;
  bool has_first();
  bool has_output();
  bool whole();
  // What goes from one unit to the next, in activation type: the shapes before unit `unit` (not the first) of this batch.
  virtual std::vector<Shape> boundary(size_t unit, const Batch& batch) const = 0;
  // The forward pass of this model's units: takes what the unit before the first of them left, gives what they leave for the one after.
  // Where the output is among them they leave a loss, else of it the counts of clipped values.
  virtual std::vector<Var> forward(Tape& tape, const Batch& batch, double label_smoothing, std::vector<Var> in, Loss& loss) = 0;

  // A pass in which tensors go from unit to unit in so many pieces of time, or fewer where there are fewer steps of time. A model without
  // such pieces ignores the number. The batch must live as long as the pass.
  virtual std::unique_ptr<ChunkedPass> begin_pass(const Batch& batch, double label_smoothing, int64_t time_pieces);
  // boundary() of each of these pieces.
  virtual std::vector<std::vector<Shape>> boundary_pieces(size_t unit, const Batch& batch, int64_t time_pieces) const;

  // Forward pass of a whole model and, on a training tape, everything tape.backward() needs. Sums over target tokens; gradients are those
  // of the SUM. batch.weights weigh the smoothed sum and the gradients.
  Loss loss(Tape& tape, const Batch& batch, double label_smoothing);

  // An output apart from the layers, on every stage (UnitRange::everywhere), for models whose layers before it do not need each other's
  // whole results: a pass of this stage's layers for a batch, which leaves what the output reads of these parts of it, and one of the
  // output for a part, which takes one piece of the boundary in front of it. Batches must live as long as the passes. output_reads: the
  // units that give the tensors of that boundary; none: the model cannot be so divided.
  virtual std::vector<size_t> output_reads() const { return {}; }
  virtual std::unique_ptr<ChunkedPass> begin_layers(const Batch& batch, std::span<const Batch> shares, int64_t time_pieces);
  virtual std::unique_ptr<ChunkedPass> begin_output(const Batch& share, double label_smoothing);

  // A state without sentences; of a whole model.
  virtual std::unique_ptr<DecodeState> begin_decoding() = 0;
  // Encodes sources of at least one token each, as one batch; they join the state. Their numbers there, in rising order: any that no
  // sentence of the state has.
  virtual std::vector<int32_t> encode(DecodeState& state, const PackedTokens& source) = 0;
  // One decoding step for R rows: row r extends the row parent[r] of the step before by token[r], or begins sentence[r] with it where
  // parent[r] is -1. Sentences must not decrease from row to row; rows of the step before that are not extended are forgotten. Returns
  // logits [R, V] as a product, of a model in shards those of the tokens here (output_shard), valid until the next call. attention, if
  // given, becomes row by row how this step's attention is spread over the source tokens of the row's sentence, valid likewise; each row
  // sums to 1.
  virtual OutputProduct next_output(DecodeState& state, std::span<const int32_t> token, std::span<const int32_t> sentence,
                                    std::span<const int32_t> parent, Tensor* attention = nullptr) = 0;

  // Which tokens' logits next_output gives.
  VocabularyShard output_shard();

  // Training with clipped states (ModelConfig::clip): the bound from here on. Models without states ignore it.
  virtual void set_clip(double) {}
};

// Whether a model's matrix is multiplied with source tokens (the encoder, keys and values of its output), else with target tokens.
bool multiplies_source(const Parameter& matrix);
// Whether its product takes one step of time after the other.
bool multiplies_steps(const Parameter& matrix);

// A second view of a model for another thread: the same weights in memory, its own backend and working memory. For inference; the
// weights must not change while it lives.
std::unique_ptr<Model> share_model(Model& model, Backend& backend);

// The model of the configuration, or some of its units, with its parameters drawn from the seed (zero without one, to be loaded); gradients
// only when `training`.
std::unique_ptr<Model> make_model(const ModelConfig& config, const ModelVocabulary& vocabulary, Backend& backend,
                                  std::optional<uint64_t> seed, bool training, const ModelPart& part = {});
// The same without values: what it declares.
std::unique_ptr<Model> declare_model(const ModelConfig& config, const ModelVocabulary& vocabulary, Backend& backend,
                                     const ModelPart& part = {});

}  // namespace starling
