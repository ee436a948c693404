// The Transformer (Vaswani et al. 2017), pre-norm or post-norm, on packed rows.
#pragma once

#include "models/model.h"
#include "models/row_places.h"
#include "models/rows.h"
#include "nn/layers.h"

namespace starling {

// The keys and values of each decoder layer, [rows, 2D]: of encoded sources, and of target prefixes.
struct DecodeTables {
  std::vector<Tensor> sources, prefixes;
};

class Transformer : public Model {
 public:
  // Declares the parameters; parameters().allocate() or view() must follow.
  Transformer(const ModelConfig& config, const ModelVocabulary& vocabulary, Backend& backend, const ModelPart& part = {});

  ParameterStore& parameters() override { return store_; }
  const ModelConfig& config() const override { return config_; }
  const ModelVocabulary& vocabulary() const override { return vocabulary_; }
  std::vector<EmbeddingTable> embedding_tables() override;
  size_t units() const override { return encoder_layers_.size() + decoder_layers_.size() + 1; }
  std::vector<Shape> boundary(size_t unit, const Batch& batch) const override;
  std::vector<Var> forward(Tape& tape, const Batch& batch, double label_smoothing, std::vector<Var> in, Loss& loss) override;
  std::unique_ptr<DecodeState> begin_decoding() override;
  std::vector<int32_t> encode(DecodeState& state, const PackedTokens& source) override;
  OutputProduct next_output(DecodeState& state, std::span<const int32_t> token, std::span<const int32_t> sentence,
                            std::span<const int32_t> parent, Tensor* attention) override;

 private:
  struct EncoderLayer {
    Sublayer attention_sublayer;
    SelfAttention attention;
    Sublayer feed_forward_sublayer;
    FeedForward feed_forward;
  };
  struct DecoderLayer {
    Sublayer attention_sublayer;
    std::optional<SelfAttention> attention;  // or
    std::optional<RecurrentUnit> recurrent;
    Sublayer cross_sublayer;
    CrossAttention cross;
    Sublayer feed_forward_sublayer;
    FeedForward feed_forward;
  };

  template <class F>
  Var sublayer(const Var& x, const Sublayer& around, const RowLayer& last, const Regularization& r, F f) const;
  // The same for a branch f that is complete.
  template <class F>
  Var sublayer(const Var& x, const Sublayer& around, const Regularization& r, F f) const;
  // What a pass reads of one side of a batch.
  struct Numbers {
    Ints offsets;         // of the sentences
    Ints tokens, places;  // of the embedding's rows; the decoder's are shifted
    RowKeys keys;         // empty in inference
  };
  // x: the input of the first unit, unless that is the embedding.
  Var encoder(Tape& tape, const Numbers& source, Var x = {});
  Regularization regularization(const RowKeys& rows) const;
  // The embeddings of rows: those of the tokens, scaled, with those of the positions, and dropout.
  Var embed(Tape& tape, const Ints& tokens, const Ints& places, Parameter& table, Parameter* position_table, const Dropout& dropout) const;
  // Where the rows of these positions find what is added to them: the argument of their sinusoids, or their row of the table.
  std::vector<int32_t> places_of(std::span<const int32_t> tokens, std::vector<int32_t> positions) const;
  // The sentences as the encoder reads them: `source`, or `without`, which becomes them without their ends.
  const PackedTokens& framed(const PackedTokens& source, PackedTokens& without) const;
  AttentionGuide guide(Tape& tape, const Batch& batch, const AttentionLayout& across, const Loss& loss) const;
  // Limits a layout of the whole model's heads to this worker's.
  AttentionLayout heads_here(AttentionLayout layout) const;

  ModelConfig config_;
  ModelVocabulary vocabulary_;
  ParameterStore store_;
  bool pre_norm_;
  Parameter* source_table_ = nullptr;                                    // [source size, D]
  Parameter* target_table_ = nullptr;                                    // [target size, D]
  Parameter* output_table_ = nullptr;                                    // [target size, D]
  Parameter* output_bias_ = nullptr;                                     // [target size]; null: none
  Parameter *source_positions_ = nullptr, *target_positions_ = nullptr;  // [position-table, D]; null: sinusoids
  DropoutSite source_site_{"encoder.embedding"}, target_site_{"decoder.embedding"};
  std::vector<EncoderLayer> encoder_layers_;
  std::vector<DecoderLayer> decoder_layers_;
  std::unique_ptr<LayerNorm> encoder_norm_, decoder_norm_;  // pre-norm only
  Arena decode_arena_{store_.backend().memory()};
  std::shared_ptr<std::vector<DecodeTables>> spare_tables_ = std::make_shared<std::vector<DecodeTables>>();  // left by earlier states
};

}  // namespace starling
