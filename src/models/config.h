// The hyperparameters of a model: the `model` section of a configuration, and the config.yml of a model directory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "backend/activation.h"
#include "config/words.h"

namespace starling {

enum class NormPlace : uint8_t { pre, post };
constexpr auto words(NormPlace) { return std::array{"pre", "post"}; }
enum class TiedEmbeddings : uint8_t { none, decoder, all };
constexpr auto words(TiedEmbeddings) { return std::array{"none", "decoder", "all"}; }
enum class Autoregression : uint8_t { self_attention, ssru };
constexpr auto words(Autoregression) { return std::array{"self-attention", "ssru"}; }
enum class DecoderStart : uint8_t { token, end, zero, pad };
constexpr auto words(DecoderStart) { return std::array{"token", "end", "zero", "pad"}; }
enum class AttentionScore : uint8_t { additive, normalized, dot };
constexpr auto words(AttentionScore) { return std::array{"additive", "normalized", "dot"}; }
enum class AttentionQuery : uint8_t { current, previous };
constexpr auto words(AttentionQuery) { return std::array{"current", "previous"}; }
enum class AttentionPlace : uint8_t { bottom, top };
constexpr auto words(AttentionPlace) { return std::array{"bottom", "top"}; }
enum class Readout : uint8_t { state, context };
constexpr auto words(Readout) { return std::array{"state", "context"}; }

struct ModelConfig {
  std::string preset = "transformer-base";
  int64_t encoder_layers = 6, decoder_layers = 6;
  int64_t width = 512;          // D
  int64_t feed_forward = 2048;  // F
  int64_t heads = 8;            // H
  NormPlace norm = NormPlace::pre;
  TiedEmbeddings tied_embeddings = TiedEmbeddings::all;
  double dropout = 0.1;  // on residual branches and embeddings
  double attention_dropout = 0.0;
  double feed_forward_dropout = 0.0;
  Activation activation = Activation::relu;
  Autoregression autoregression = Autoregression::self_attention;
  DecoderStart decoder_start = DecoderStart::token;
  bool output_bias = false;
  bool source_end = true;          // the encoder reads the end of sentence
  int64_t first_position = 0;      // of the sinusoids
  int64_t position_table = 0;      // rows of learnt positions; 0: sinusoids
  int64_t relative_positions = 0;  // the furthest that is told apart; 0: none
  double embedding_scale = 0;      // 0: sqrt(width)
  double norm_epsilon = 1e-5;
  int64_t alignment_layer = 0;  // the decoder layer whose attention shows alignments, from 1 on; 0: the last but one
  int64_t alignment_head = 0;   // its head that does, from 1 on; 0: all, averaged
  // Recurrent models (presets gnmt...).
  AttentionScore attention = AttentionScore::additive;
  AttentionQuery attention_query = AttentionQuery::current;
  AttentionPlace attention_place = AttentionPlace::bottom;
  Readout readout = Readout::state;
  bool tanh_output = true;  // false: cell times output gate, as when trained for 8-bit inference
  double init_bound = 0.1;  // parameters are drawn from +- this
  double clip = 0;          // bound of cell and residual states; 0: none. TrainConfig says what it is during training
};

// Returns the preset's configuration. Throws ConfigError, which names the presets, if there is none of that name.
ModelConfig model_preset(const std::string& name);

// The index of the decoder layer whose attention shows alignments. Without a choice it is the last but one, which shows them best (Garg et
// al. 2019, section 5.1).
inline size_t aligned_layer(const ModelConfig& config) {
  return static_cast<size_t>(config.alignment_layer > 0 ? config.alignment_layer - 1 : std::max<int64_t>(config.decoder_layers - 2, 0));
}

// Throws ConfigError if settings of the model do not fit each other.
void check(const ModelConfig& config);

// Names of presets.
enum class Architecture : uint8_t { transformer, gnmt };
std::vector<std::string> model_presets(Architecture architecture);

// The architecture of a preset's models, which decides about layers, keys and search. Throws ConfigError if there is no preset of that
// name.
Architecture architecture_of(const std::string& preset);

// One visitor call per key: v.field(key, value, help, minimum, maximum) or v.choice(key, value, help).
template <class Visitor>
void visit(Visitor& v, ModelConfig& c) {
  const char* preset = "model.preset";
  const auto transformers = model_presets(Architecture::transformer), recurrent = model_presets(Architecture::gnmt);
  v.field("encoder-layers", c.encoder_layers, "encoder layers", 1, 1000);
  v.field("decoder-layers", c.decoder_layers, "decoder layers", 1, 1000);
  v.field("width", c.width, "model width D; a multiple of heads", 8, 65536);
  v.field("feed-forward", c.feed_forward, "width F of the feed-forward layers", 8, 1 << 20).needs(preset, transformers);
  v.field("heads", c.heads, "attention heads H", 1, 1024).needs(preset, transformers);
  v.choice("norm", c.norm, "layer normalisation before or after each sub-layer").needs(preset, transformers);
  v.choice("tied-embeddings", c.tied_embeddings,
           "share the output projection with the target embedding (decoder) and the source embedding too (all; needs a joint vocabulary)");
  v.field("dropout", c.dropout, "dropout on embeddings and residual branches, probability", 0.0, 0.99);
  v.field("attention-dropout", c.attention_dropout, "dropout on attention weights, probability", 0.0, 0.99).needs(preset, transformers);
  v.choice("attention", c.attention, "how queries and keys are compared; normalized = additive with a normalised vector and a learnt scale")
      .needs(preset, recurrent);
  v.choice("attention-query", c.attention_query,
           "which output of the bottom decoder layer is the query: this step's or, as in the paper, the previous step's")
      .needs(preset, recurrent);
  v.choice("attention-place", c.attention_place,
           "which decoder layer attends: the bottom one, for all layers above it, or the top one, for the readout alone")
      .needs(preset, recurrent);
  v.choice("readout", c.readout,
           "what the softmax reads: the top layer, or a linear layer over it and the attention's context, which aligns sooner on "
           "little data")
      .needs(preset, recurrent);
  v.field("tanh-output", c.tanh_output, "an LSTM's output is o * tanh(c); false = o * c").needs(preset, recurrent);
  v.field("init-bound", c.init_bound, "initial weights are uniform between minus and plus this", 1e-6, 10.0).needs(preset, recurrent);
  v.field("clip", c.clip, "bound of cells and residual streams at the end of training, for 8-bit inference; 0 = none", 0.0, 1000.0)
      .needs(preset, recurrent);
  v.field("feed-forward-dropout", c.feed_forward_dropout, "dropout inside the feed-forward layers, probability", 0.0, 0.99)
      .needs(preset, transformers);
  v.choice("activation", c.activation, "of the feed-forward layers; gelu-tanh and gelu-sigmoid are the usual approximations of gelu")
      .needs(preset, transformers);
  v.choice("autoregression", c.autoregression,
           "how the decoder looks back: by self-attention, or by simpler recurrent units (SSRU), whose steps cost the same at any length")
      .needs(preset, transformers);
  v.choice("decoder-start", c.decoder_start,
           "the decoder's first input: the vocabulary's <s>, its </s> (end), its <pad>, or, as in Marian, an embedding of zeros")
      .needs(preset, transformers);
  v.field("output-bias", c.output_bias, "the output layer has a bias for each piece").needs(preset, transformers);
  v.field("source-end", c.source_end, "the encoder reads an end of sentence behind the source").needs(preset, transformers);
  v.field("first-position", c.first_position, "number of the first position of each sentence", 0, 16).needs(preset, transformers);
  v.field("position-table", c.position_table,
          "learn positions, in a table of so many rows, which no sentence may exceed; 0 = sinusoids, without a limit", 0, 1 << 20)
      .needs(preset, transformers);
  v.field("relative-positions", c.relative_positions,
          "self-attention learns how far apart tokens are, up to so many places (Shaw et al. 2018), in place of positions; 0 = it does not",
          0, 1024)
      .needs(preset, transformers);
  v.field("embedding-scale", c.embedding_scale, "embeddings are multiplied by this; 0 = sqrt(width)", 0.0, 1000.0)
      .needs(preset, transformers);
  v.field("alignment-layer", c.alignment_layer,
          "the decoder layer whose attention is guided, and shows the alignment of a translation, from 1 on; 0 = the last but one", 0, 1000)
      .needs(preset, transformers);
  v.field("alignment-head", c.alignment_head,
          "the head of it, from 1 on; 0 = the mean of all heads, or 1 where a corpus has an alignment to guide it", 0, 1024)
      .needs(preset, transformers);
  v.field("norm-epsilon", c.norm_epsilon, "added to the variance in layer normalisation", 1e-9, 1e-2).needs(preset, transformers);
}

// The most tokens that a sentence may have, with its end: the rows of a table of positions; else there is no limit.
int64_t longest_sentence(const ModelConfig& config);

// Throws ConfigError unless the model's layers can be cut into that many shards (parallel.tensor).
void require_shards(const ModelConfig& config, int64_t shards);
bool can_be_cut(const ModelConfig& config, int64_t shards);

}  // namespace starling
