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
};

// A table of rows by token: what looks rows up in it, and whether it is the output projection, which touches every row.
struct EmbeddingTable {
  Parameter* table = nullptr;
  bool source = false, target = false, output = false;
};

// The encoded sources and the caches of the target prefixes of one batch.
class DecodeState {
 public:
  virtual ~DecodeState() = default;
};

class Model {
 public:
  virtual ~Model() = default;
  virtual ParameterStore& parameters() = 0;
  virtual const ModelConfig& config() const = 0;
  virtual const ModelVocabulary& vocabulary() const = 0;
  virtual std::vector<EmbeddingTable> embedding_tables() = 0;

  // Forward pass and, on a training tape, everything tape.backward() needs. Sums over target tokens; gradients are those of the SUM.
  // batch.weights weigh the smoothed sum and the gradients.
  virtual Loss loss(Tape& tape, const Batch& batch, double label_smoothing) = 0;

  // Encodes sources for decoding.
  virtual std::unique_ptr<DecodeState> encode(const PackedTokens& source) = 0;
  // One decoding step for R rows: row r extends the row parent[r] of the step before (ignored in the first step) of sentence
  // sentence[r] by token[r]; sentences must not decrease from row to row. Returns logits [R, V], valid until the next call. attention, if
  // given, becomes row by row how this step's attention is spread over the source tokens of the row's sentence, valid likewise; each row
  // sums to 1.
  virtual Tensor next_logits(DecodeState& state, std::span<const int32_t> token, std::span<const int32_t> sentence,
                             std::span<const int32_t> parent, Tensor* attention = nullptr) = 0;

  // Training with clipped states (ModelConfig::clip): the bound from here on. Models without states ignore it.
  virtual void set_clip(double) {}
};

// Whether a model's matrix is multiplied with source tokens (the encoder, keys and values of its output), else with target tokens.
bool multiplies_source(const Parameter& matrix);

// A second view of a model for another thread: the same weights in memory, its own backend and working memory. For inference; the
// weights must not change while it lives.
std::unique_ptr<Model> share_model(Model& model, Backend& backend);

// The model of the configuration with its parameters drawn from the seed (zero without one, to be loaded); gradients only when `training`.
std::unique_ptr<Model> make_model(const ModelConfig& config, const ModelVocabulary& vocabulary, Backend& backend,
                                  std::optional<uint64_t> seed, bool training);

}  // namespace starling
