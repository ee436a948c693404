#include "models/transformer.h"

#include <algorithm>
#include <cmath>

namespace starling {
namespace {

constexpr int64_t kRowMultiple = 64;  // few distinct row counts mean few distinct matrix products
int64_t round_up(int64_t n, int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

// One side of a batch as rows: tokens (-1 on idle rows), positions within the sentence, and the keys of its dropout masks.
struct Rows {
  std::vector<int32_t> tokens, positions;
  RowKeys keys;
};

Rows make_rows(const PackedTokens& packed, const std::vector<int64_t>& ids, int64_t multiple) {
  const int64_t n = packed.count(), padded = round_up(std::max<int64_t>(n, 1), multiple);
  Rows rows;
  rows.tokens = packed.tokens;
  rows.tokens.resize(padded, -1);
  rows.positions.resize(padded, 0);
  rows.keys.sentence.resize(padded, 0xffffffffu);
  rows.keys.position.resize(padded, 0);
  for (int64_t b = 0; b < packed.sentences(); ++b)
    for (int32_t i = packed.offsets[b]; i < packed.offsets[b + 1]; ++i) {
      rows.positions[i] = i - packed.offsets[b];
      rows.keys.position[i] = static_cast<uint32_t>(rows.positions[i]);
      rows.keys.sentence[i] = static_cast<uint32_t>(b < static_cast<int64_t>(ids.size()) ? ids[b] : b);
    }
  return rows;
}

struct TransformerState : DecodeState {
  std::vector<Tensor> memory;       // per decoder layer [source rows, 2D]: keys and values of the encoder's output
  std::vector<Tensor> cache;        // per decoder layer [max_length * max_rows, 3D]: this layer's queries, keys and values
  std::vector<int32_t> source_offsets;
  int64_t max_rows = 0, max_length = 0, step = 0;
  std::vector<std::vector<int32_t>> history;  // per row: the cache rows of its prefix
  Arena arena;
};

}  // namespace

Transformer::Transformer(const ModelConfig& config, const ModelVocabulary& vocabulary, Backend& backend)
    : config_(config), vocabulary_(vocabulary), store_(backend), pre_norm_(config.norm == "pre") {
  if (config.width % config.heads != 0)
    throw ConfigError(fmt::format("model.width {} is no multiple of model.heads {}; change one of them", config.width, config.heads));
  const int64_t D = config.width;
  const Initializer table{Initializer::normal, 1 / std::sqrt(static_cast<double>(D))};
  const bool all = config.tied_embeddings == "all";
  if (all && vocabulary.source_size != vocabulary.target_size)
    throw ConfigError("model.tied-embeddings: all needs one joint vocabulary; use decoder or set vocab.joint: true");
  target_table_ = &store_.add(all ? "embedding" : "decoder.embedding", {vocabulary.target_size, D}, table);
  source_table_ = all ? target_table_ : &store_.add("encoder.embedding", {vocabulary.source_size, D}, table);
  output_table_ = config.tied_embeddings == "none" ? &store_.add("decoder.output", {vocabulary.target_size, D}, table) : target_table_;
  for (int64_t i = 0; i < config.encoder_layers; ++i) {
    const std::string name = fmt::format("encoder.{}", i);
    encoder_layers_.push_back({{store_, name + ".attention.norm", D},
                               {store_, name + ".attention", D},
                               {store_, name + ".feed_forward.norm", D},
                               {store_, name + ".feed_forward", D, config.feed_forward}});
  }
  if (pre_norm_) encoder_norm_ = std::make_unique<LayerNorm>(store_, "encoder.norm", D);
  for (int64_t i = 0; i < config.decoder_layers; ++i) {
    const std::string name = fmt::format("decoder.{}", i);
    decoder_layers_.push_back({{store_, name + ".attention.norm", D},
                               {store_, name + ".attention", D},
                               {store_, name + ".cross.norm", D},
                               {store_, name + ".cross", D},
                               {store_, name + ".feed_forward.norm", D},
                               {store_, name + ".feed_forward", D, config.feed_forward}});
  }
  if (pre_norm_) decoder_norm_ = std::make_unique<LayerNorm>(store_, "decoder.norm", D);
}

template <class F>
Var Transformer::sublayer(const Var& x, const LayerNorm& norm, const Regularization& r, F f) const {
  Tape& tape = *x.tape;
  if (pre_norm_) {
    const Var branch = f(norm(x));
    return residual(x, branch, tape.dropout(r.residual, r.rows));
  }
  const Var branch = f(x);
  return norm(residual(x, branch, tape.dropout(r.residual, r.rows)));
}

Regularization Transformer::regularization(const RowKeys& rows) const {
  return {config_.dropout, config_.attention_dropout, config_.feed_forward_dropout, &rows};
}

Var Transformer::encoder(Tape& tape, const std::vector<int32_t>& tokens, const std::vector<int32_t>& positions, const AttentionLayout& layout,
                         const Regularization& r) {
  Var x = embedding(tape, tokens, positions, *source_table_, std::sqrt(static_cast<double>(config_.width)), tape.dropout(r.residual, r.rows));
  for (const EncoderLayer& layer : encoder_layers_) {
    x = sublayer(x, layer.attention_norm, r, [&](const Var& h) { return layer.attention(h, layout, r); });
    x = sublayer(x, layer.feed_forward_norm, r, [&](const Var& h) { return layer.feed_forward(h, r); });
  }
  return pre_norm_ ? (*encoder_norm_)(x) : x;
}

LossSums Transformer::loss(Tape& tape, const Batch& batch, double label_smoothing, std::vector<float>* row_nll) {
  const int64_t multiple = kRowMultiple;
  // The tape's closures refer to these rows until backward() has run, so they live on the tape's own time.
  struct Keep {
    Rows source, target;
    std::vector<int32_t> inputs;
    AttentionLayout encoder, decoder, cross;
  };
  auto keep = std::make_shared<Keep>();
  keep->source = make_rows(batch.source, batch.sample_ids, multiple);
  keep->target = make_rows(batch.target, batch.sample_ids, multiple);
  // Distinct masks for the two sides come from distinct sites. The decoder reads the target shifted right by one.
  keep->inputs.assign(keep->target.tokens.size(), -1);
  for (int64_t i = 0; i < batch.target.count(); ++i)
    keep->inputs[i] = keep->target.positions[i] == 0 ? vocabulary_.begin : batch.target.tokens[i - 1];
  keep->encoder = {batch.source.offsets, batch.source.offsets, config_.heads, false};
  keep->decoder = {batch.target.offsets, batch.target.offsets, config_.heads, true};
  keep->cross = {batch.target.offsets, batch.source.offsets, config_.heads, false};
  tape.keep(keep);

  const Regularization rs = regularization(keep->source.keys), rt = regularization(keep->target.keys);
  const Var memory = encoder(tape, keep->source.tokens, keep->source.positions, keep->encoder, rs);
  Var x = embedding(tape, keep->inputs, keep->target.positions, *target_table_, std::sqrt(static_cast<double>(config_.width)),
                    tape.dropout(rt.residual, rt.rows));
  for (const DecoderLayer& layer : decoder_layers_) {
    x = sublayer(x, layer.attention_norm, rt, [&](const Var& h) { return layer.attention(h, keep->decoder, rt); });
    x = sublayer(x, layer.cross_norm, rt, [&](const Var& h) { return layer.cross(h, memory, keep->cross, rt); });
    x = sublayer(x, layer.feed_forward_norm, rt, [&](const Var& h) { return layer.feed_forward(h, rt); });
  }
  if (pre_norm_) x = (*decoder_norm_)(x);
  const LossSums sums = projection_loss(x, *output_table_, keep->target.tokens, label_smoothing, row_nll);
  if (row_nll) row_nll->resize(batch.target.count());
  return sums;
}

std::unique_ptr<DecodeState> Transformer::encode(const PackedTokens& source, int64_t max_rows, int64_t max_length) {
  auto state = std::make_unique<TransformerState>();
  Tape tape(store_, decode_arena_, false);
  const auto mark = decode_arena_.mark();
  const Rows rows = make_rows(source, {}, 16);
  const AttentionLayout layout{source.offsets, source.offsets, config_.heads, false};
  const Var memory = encoder(tape, rows.tokens, rows.positions, layout, {});
  state->source_offsets = source.offsets;
  state->max_rows = round_up(max_rows, 4), state->max_length = max_length;
  for (const DecoderLayer& layer : decoder_layers_) {
    const Tensor kv = state->arena.allocate({memory.value.rows(), 2 * config_.width}, store_.backend().activation());
    store_.backend().linear(memory.value, store_.packed(layer.cross.kv.w, false), layer.cross.kv.b.value, kv, Activation::none, Write::overwrite);
    state->memory.push_back(kv);
    state->cache.push_back(state->arena.allocate({max_length * state->max_rows, 3 * config_.width}, store_.backend().activation()));
  }
  decode_arena_.release(mark);
  return state;
}

Tensor Transformer::next_logits(DecodeState& abstract, std::span<const int32_t> token, std::span<const int32_t> sentence,
                                std::span<const int32_t> parent) {
  auto& state = static_cast<TransformerState&>(abstract);
  const int64_t R = static_cast<int64_t>(token.size()), D = config_.width, H = config_.heads;
  CHECK(R <= state.max_rows && state.step < state.max_length, "{} rows of {}, step {} of {}", R, state.max_rows, state.step, state.max_length);
  const int64_t padded = std::min(R <= 4 ? R : round_up(R, R <= 64 ? 4 : 16), state.max_rows);

  std::vector<std::vector<int32_t>> history(R);
  std::vector<int32_t> own_index, own_offsets{0}, cross_index, cross_offsets{0};
  for (int64_t r = 0; r < R; ++r) {
    if (state.step > 0) history[r] = state.history[parent[r]];
    history[r].push_back(static_cast<int32_t>(state.step * state.max_rows + r));
    own_index.insert(own_index.end(), history[r].begin(), history[r].end());
    own_offsets.push_back(static_cast<int32_t>(own_index.size()));
    for (int32_t i = state.source_offsets[sentence[r]]; i < state.source_offsets[sentence[r] + 1]; ++i) cross_index.push_back(i);
    cross_offsets.push_back(static_cast<int32_t>(cross_index.size()));
  }
  state.history = std::move(history);

  decode_arena_.release({});
  Tape tape(store_, decode_arena_, false);
  Backend& backend = tape.backend();
  std::vector<int32_t> tokens(token.begin(), token.end());
  tokens.resize(padded, -1);
  const std::vector<int32_t> positions(padded, static_cast<int32_t>(state.step));
  Var x = embedding(tape, tokens, positions, *target_table_, std::sqrt(static_cast<double>(D)), {});
  for (size_t i = 0; i < decoder_layers_.size(); ++i) {
    const DecoderLayer& layer = decoder_layers_[i];
    const auto attend = [&](const Tensor& q, const Tensor& kv, int64_t k_column, std::span<const int32_t> index, std::span<const int32_t> offsets) {
      const Tensor y = tape.allocate({padded, D}, backend.activation());
      if (padded > R) y.rows(R, padded).zero();
      backend.attend_cached(q, 0, kv, k_column, k_column + D, index, offsets, H, y);
      return tape.record(y, {});
    };
    x = sublayer(x, layer.attention_norm, {}, [&](const Var& h) {
      const Tensor slot = state.cache[i].rows(state.step * state.max_rows, state.step * state.max_rows + padded);
      backend.linear(h.value, store_.packed(layer.attention.qkv.w, false), layer.attention.qkv.b.value, slot, Activation::none, Write::overwrite);
      return layer.attention.out(attend(slot, state.cache[i], D, own_index, own_offsets));
    });
    x = sublayer(x, layer.cross_norm, {}, [&](const Var& h) {
      return layer.cross.out(attend(layer.cross.q(h).value, state.memory[i], 0, cross_index, cross_offsets));
    });
    x = sublayer(x, layer.feed_forward_norm, {}, [&](const Var& h) { return layer.feed_forward(h, {}); });
  }
  if (pre_norm_) x = (*decoder_norm_)(x);
  const Tensor logits = tape.allocate({padded, vocabulary_.target_size}, backend.parameter());
  backend.linear(x.value, store_.packed(*output_table_, true), Tensor(), logits, Activation::none, Write::overwrite);
  ++state.step;
  return logits.rows(0, R);
}

}  // namespace starling
