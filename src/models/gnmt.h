// Google's recurrent system (Wu et al. 2016): LSTM stacks with residual connections, a bidirectional bottom encoder layer, and attention
// from the bottom decoder layer to the encoder's output, whose result goes to the other decoder layers. Everything that does not depend on
// the previous step runs over whole sentences: the bottom decoder layer first, then attention for all positions, then the rest. With
// attention at the top (Luong et al. 2015) the decoder is a plain stack whose output is the query, and only the readout uses the attention.
#pragma once

#include "autograd/ops.h"
#include "autograd/recurrent.h"
#include "models/model.h"

namespace starling {

// Models with clipped states clamp their logits to +-this (section 6 of the paper).
constexpr double kLogitBound = 25;

struct GnmtState;

// One side of a batch: its rows in time order, the pieces of time in which they are computed (one piece if whole), and the states of the
// LSTM layers between pieces.
struct TimedRows {
  TimeOrder order;
  Ints tokens;  // of the whole order, as are keys
  RowKeys keys;
  std::vector<TimeOrder> pieces;
  std::vector<RowKeys> piece_keys;
  std::vector<LstmState> states;  // by layer
  std::vector<Var> bottom;        // encoder: the pieces of its bottom layer's output, on the first piece's tape
};

class Gnmt : public Model {
 public:
  // Declares the parameters; parameters().allocate() or view() must follow.
  Gnmt(const ModelConfig& config, const ModelVocabulary& vocabulary, Backend& backend, const ModelPart& part = {});

  ParameterStore& parameters() override { return store_; }
  const ModelConfig& config() const override { return config_; }
  const ModelVocabulary& vocabulary() const override { return vocabulary_; }
  std::vector<EmbeddingTable> embedding_tables() override;
  size_t units() const override { return encoder_layers_.size() - 1 + decoder_layers_.size() + 1; }
  std::vector<Shape> boundary(size_t unit, const Batch& batch) const override;
  std::vector<Var> forward(Tape& tape, const Batch& batch, double label_smoothing, std::vector<Var> in, Loss& loss) override;
  std::unique_ptr<DecodeState> begin_decoding() override;
  std::vector<int32_t> encode(DecodeState& state, const PackedTokens& source) override;
  OutputProduct next_output(DecodeState& state, std::span<const int32_t> token, std::span<const int32_t> sentence,
                            std::span<const int32_t> parent, Tensor* attention) override;
  std::unique_ptr<ChunkedPass> begin_pass(const Batch& batch, double label_smoothing, int64_t time_pieces) override;
  std::vector<std::vector<Shape>> boundary_pieces(size_t unit, const Batch& batch, int64_t time_pieces) const override;
  std::vector<size_t> output_reads() const override;
  std::unique_ptr<ChunkedPass> begin_layers(const Batch& batch, std::span<const Batch> shares, int64_t time_pieces) override;
  std::unique_ptr<ChunkedPass> begin_output(const Batch& share, double label_smoothing) override;
  void set_clip(double bound) override;

 private:
  class Pass;  // gnmt_pass.cpp
  struct Layer {
    Layer(ParameterStore& store, const std::string& name, int64_t in, int64_t width, double init_bound)
        : input(store.add(name + ".input.weight", {in, 4 * width}, {Initializer::uniform, init_bound}, {1, 4})),
          bias(store.add(name + ".input.bias", {4 * width}, {Initializer::forget, 1.0}, {0, 4})),
          recurrent(store.add(name + ".recurrent.weight", {width, 4 * width}, {Initializer::uniform, init_bound}, {1, 4})),
          site(name + ".input") {}
    Parameter &input, &bias, &recurrent;
    DropoutSite site;  // dropout of the layer's input, unless that is embeddings
  };
  // Counts bounded values: `values` in `rows` rows without padding, of which `clipped` were beyond the bound. Values that are the same on
  // all shards are counted on the first.
  struct Clipping {
    Tensor clipped = {};
    int64_t rows = 0, values = 0;
  };

  // Runs one LSTM layer. state: what it passes from one piece of time to the next.
  Var run(const Layer& layer, const Var& x, const TimeOrder& order, bool reverse, Clipping& clipping, LstmState* state) const;
  // x clamped to the bound, if there is one.
  Var bounded(const Var& x, Clipping& clipping) const;
  // m + x, likewise.
  Var add_residual(const Var& m, const Var& x, Clipping& clipping) const;
  // The input of the softmax, from the top layer's output and the context.
  Var readout(const Var& x, const Var& context, const Dropout& mask, Clipping& clipping) const;
  // ids: of the sentences, for dropout; layers: how many have a state.
  static TimedRows timed_rows(Tape& tape, const PackedTokens& packed, const std::vector<int64_t>& ids, int64_t multiple, int64_t pieces,
                              size_t layers);
  // Runs these units of the encoder on one piece. x: the piece of their input, unless that is the embedding.
  Var encoder(Tape& tape, const UnitRange& units, TimedRows& source, size_t piece, Var x, Clipping& clipping) const;
  Var keys(const Var& memory) const;
  // The context [rows, memory width] of one decoding step; `asking`, the output of a decoder layer, gives the queries.
  Var attend(Tape& tape, const GnmtState& state, const Var& asking, const AttentionLayout& layout, int64_t pairs, Tensor* attention);
  void add_keys(const Initializer& initializer);
  void add_queries(const Initializer& initializer);
  size_t encoder_units() const { return encoder_layers_.size() - 1; }
  // Whether the output is on every stage, apart from the layers.
  bool output_apart() const { return store_.units().everywhere + 1 == units(); }
  bool attends_at_top() const { return config_.attention_place == AttentionPlace::top; }
  bool residual_layer(size_t i) const { return i >= 2; }

  ModelConfig config_;
  ModelVocabulary vocabulary_;
  ParameterStore store_;
  int64_t memory_width_ = 0;
  Parameter* source_table_ = nullptr;  // [source size, D]
  Parameter* target_table_ = nullptr;  // [target size, D]
  Parameter* output_table_ = nullptr;  // [target size, D]
  DropoutSite source_site_{"encoder.embedding"}, target_site_{"decoder.embedding"}, readout_site_{"decoder.readout"};
  std::vector<Layer> encoder_layers_;  // the bottom layer twice: forwards, backwards
  std::vector<Layer> decoder_layers_;
  Parameter* key_weight_ = nullptr;      // [memory width, D]
  Parameter* key_bias_ = nullptr;        // [D]
  Parameter* query_weight_ = nullptr;    // [D, D]
  Parameter* score_ = nullptr;           // [D]; null: dot product
  Parameter* readout_weight_ = nullptr;  // [D + memory width, D]; null: the softmax reads the top layer
  Parameter* readout_bias_ = nullptr;    // [D]
  Parameter* score_scale_ = nullptr;     // [1]; null: not normalised
  Arena decode_arena_{store_.backend().memory()};
};

}  // namespace starling
