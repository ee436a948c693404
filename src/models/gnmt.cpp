#include "models/gnmt.h"

#include <algorithm>
#include <cmath>

#include "models/row_places.h"
#include "models/rows.h"

namespace starling {
struct GnmtState : DecodeState {
  void drop(int32_t sentence) override { sources.give_back(sentence, length[sentence]); }
  int64_t bytes() const override {
    int64_t sum = static_cast<int64_t>(length.size()) * 4;
    for (const Tensor* t : {&memory, &keys}) sum += *t ? t->bytes() : 0;
    for (const std::vector<Tensor>* layers : {&hidden, &cell})
      for (const Tensor& t : *layers) sum += t ? t.bytes() : 0;
    return sum;
  }
  Tensor memory, keys;  // of all sources
  RowPlaces sources;
  std::vector<int32_t> length;       // the number of tokens of each source, by its first row, which is its number
  std::vector<Tensor> hidden, cell;  // per decoder layer, [rows of the last step, D]
};

Gnmt::Gnmt(const ModelConfig& config, const ModelVocabulary& vocabulary, Backend& backend, const ModelPart& part)
    : config_(config), vocabulary_(vocabulary), store_(backend, part) {
  const int64_t D = config.width;
  const double bound = config.init_bound;
  const Initializer uniform{Initializer::uniform, bound};
  const Cut rows{0};  // tables are cut by token
  const bool top = attends_at_top(), all = config.tied_embeddings == TiedEmbeddings::all;
  check(config);
  if (const ShardGroup* shards = store_.shards()) require_shards(config, shards->size());
  if (all && vocabulary.source_size != vocabulary.target_size)
    throw ConfigError("model.tied-embeddings: all needs one joint vocabulary; use decoder or set vocab.joint: true");
  // Parameters lie in the order of the forward pass, so that gradients are complete in the reverse of it (strategies/buckets.h).
  source_table_ = &store_.add(all ? "embedding" : "encoder.embedding", {vocabulary.source_size, D}, uniform, rows);
  encoder_layers_.emplace_back(store_, "encoder.0.forward", D, D, bound);
  encoder_layers_.emplace_back(store_, "encoder.0.backward", D, D, bound);
  for (int64_t i = 1; i < config.encoder_layers; ++i) {
    store_.begin_unit(static_cast<size_t>(i));
    encoder_layers_.emplace_back(store_, fmt::format("encoder.{}", i), i == 1 ? 2 * D : D, D, bound);
  }
  store_.begin_unit(encoder_units());
  memory_width_ = config.encoder_layers == 1 ? 2 * D : D;
  if (!top) add_keys(uniform);
  target_table_ = all ? &store_.share(*source_table_) : &store_.add("decoder.embedding", {vocabulary.target_size, D}, uniform, rows);
  decoder_layers_.emplace_back(store_, "decoder.0", D, D, bound);
  if (!top) add_queries(uniform);
  for (int64_t i = 1; i < config.decoder_layers; ++i) {
    store_.begin_unit(encoder_units() + static_cast<size_t>(i));
    decoder_layers_.emplace_back(store_, fmt::format("decoder.{}", i), top ? D : D + memory_width_, D, bound);
  }
  store_.begin_unit(this->units() - 1);
  if (top) {
    add_keys(uniform);
    add_queries(uniform);
  }
  if (config.readout == Readout::context) {
    readout_weight_ = &store_.add("decoder.readout.weight", {D + memory_width_, D}, uniform);
    readout_bias_ = &store_.add("decoder.readout.bias", {D}, {});
  }
  output_table_ = config.tied_embeddings == TiedEmbeddings::none ? &store_.add("decoder.output", {vocabulary.target_size, D}, uniform, rows)
                                                                 : &store_.share(*target_table_);
  set_clip(config.clip);
}

void Gnmt::add_keys(const Initializer& initializer) {
  key_weight_ = &store_.add("attention.kv.weight", {memory_width_, config_.width}, initializer);
  key_bias_ = &store_.add("attention.kv.bias", {config_.width}, {});
}

void Gnmt::add_queries(const Initializer& initializer) {
  const int64_t D = config_.width;
  query_weight_ = &store_.add("attention.query.weight", {D, D}, initializer);
  if (config_.attention != AttentionScore::dot) score_ = &store_.add("attention.score", {D}, initializer);
  // Scores begin as small as with an unnormalised vector.
  if (config_.attention == AttentionScore::normalized) score_scale_ = &store_.add("attention.scale", {1}, {Initializer::ones});
}

std::vector<EmbeddingTable> Gnmt::embedding_tables() {
  if (source_table_ == target_table_) return {{source_table_, true, true, true}};
  std::vector<EmbeddingTable> tables{{source_table_, true, false, false}, {target_table_, false, true, target_table_ == output_table_}};
  if (output_table_ != target_table_) tables.push_back({output_table_, false, false, true});
  return tables;
}

void Gnmt::set_clip(double bound) {
  config_.clip = bound;
  // Bounded: outputs of LSTMs, residual streams, and the context, a weighted mean of encoder outputs. Embeddings are not.
  for (std::vector<Layer>* layers : {&encoder_layers_, &decoder_layers_})
    for (size_t i = 0; i < layers->size(); ++i) {
      Layer& layer = (*layers)[i];
      layer.recurrent.input_bound = bound;
      const bool reads_embeddings = i == 0 || (layers == &encoder_layers_ && i == 1);
      if (!reads_embeddings) layer.input.input_bound = bound;
    }
  for (Parameter* p : {key_weight_, query_weight_}) p->input_bound = bound;
  if (readout_weight_) readout_weight_->input_bound = bound;
  output_table_->input_bound = bound;
}

TimedRows Gnmt::timed_rows(Tape& tape, const PackedTokens& packed, const std::vector<int64_t>& ids, int64_t multiple, int64_t pieces,
                           size_t layers) {
  const Rows rows = make_rows(packed, ids, multiple);
  TimedRows timed;
  timed.order = time_order(tape, packed, multiple);
  timed.tokens = tape.upload(reordered(rows.tokens, timed.order.packed, -1));
  timed.keys =
      place_keys(tape, reordered(rows.sentence, timed.order.packed, 0xffffffffu), reordered(rows.position, timed.order.packed, 0u));
  if (pieces > 1) timed.pieces = time_pieces(tape, timed.order, pieces, multiple);
  for (const TimeOrder& piece : timed.pieces) timed.piece_keys.push_back(piece_keys(tape, piece, timed.keys));
  if (timed.pieces.size() < 2) {
    timed.pieces = {timed.order};
    timed.piece_keys = {timed.keys};
  }
  timed.states.resize(layers);
  return timed;
}

Var Gnmt::run(const Layer& layer, const Var& x, const TimeOrder& order, bool reverse, Clipping& clipping, LstmState* state) const {
  if (config_.clip > 0) clipping.values += clipping.rows * layer.recurrent.shape[1] / 4;
  const LstmOptions options{reverse, config_.tanh_output, config_.clip};
  return lstm(linear(copy_to_shards(x, store_.shards()), layer.input, &layer.bias), layer.recurrent, order, options, clipping.clipped,
              state);
}

Var Gnmt::bounded(const Var& x, Clipping& clipping) const {
  if (config_.clip <= 0) return x;
  if (store_.shards() && store_.shards()->rank() > 0) return clamp(x, config_.clip);
  clipping.values += clipping.rows * config_.width;
  return clamp(x, config_.clip, clipping.clipped);
}

Var Gnmt::add_residual(const Var& m, const Var& x, Clipping& clipping) const { return bounded(residual(x, m, {}), clipping); }

Var Gnmt::readout(const Var& x, const Var& context, const Dropout& mask, Clipping& clipping) const {
  if (!readout_weight_) return dropout(x, mask);
  return bounded(linear(dropout(concat(x, context), mask), *readout_weight_, readout_bias_), clipping);
}

Var Gnmt::encoder(Tape& tape, const UnitRange& units, TimedRows& source, size_t piece, Var x, Clipping& clipping) const {
  const TimeOrder& order = source.pieces[piece];
  const int64_t D = config_.width;
  // The bottom layer runs in both directions, so it computes whole sentences.
  const auto bottom = [&] {
    const Dropout mask = tape.dropout(config_.dropout, source_site_, source.keys);
    const Var embedded = embedding(tape, source.tokens, {}, *source_table_, 1, mask, vocabulary_shard(store_, *source_table_));
    const Var forward = run(encoder_layers_[0], embedded, source.order, false, clipping, nullptr);
    return concat(forward, run(encoder_layers_[1], embedded, source.order, true, clipping, nullptr));
  };
  if (units.begin == 0 && piece == 0) {
    store_.reach(0);
    clipping.rows = source.order.tokens();
    const Var whole = recycled(tape, {source.order.rows(), 2 * D}, bottom);
    source.bottom.clear();
    for (const TimeOrder& each : source.pieces) source.bottom.push_back(source.pieces.size() == 1 ? whole : take_piece(whole, each));
  }
  if (units.begin == 0) x = move_to(tape, source.bottom[piece]);
  clipping.rows = order.tokens();
  for (size_t i = std::max<size_t>(units.begin, 1); i < std::min(units.end, encoder_units()); ++i)
    x = recycled(tape, {order.rows(), D}, [&] {
      store_.reach(i);
      const Layer& layer = encoder_layers_[i + 1];
      const Dropout mask = tape.dropout(config_.dropout, layer.site, source.piece_keys[piece]);
      const Var m = run(layer, dropout(x, mask), order, false, clipping, &source.states[i]);
      return residual_layer(i) ? add_residual(m, x, clipping) : m;
    });
  return x;
}

Var Gnmt::keys(const Var& memory) const { return linear(memory, *key_weight_, key_bias_); }

std::unique_ptr<DecodeState> Gnmt::begin_decoding() {
  auto state = std::make_unique<GnmtState>();
  state->hidden.resize(decoder_layers_.size());
  state->cell.resize(decoder_layers_.size());
  return state;
}

std::vector<int32_t> Gnmt::encode(DecodeState& abstract, const PackedTokens& source) {
  auto& state = static_cast<GnmtState&>(abstract);
  Tape tape(store_, decode_arena_);
  const auto mark = decode_arena_.mark();
  Clipping clipping;
  TimedRows timed = timed_rows(tape, source, {}, 16, 1, encoder_units());
  const Var memory = gather_rows(encoder(tape, store_.units(), timed, 0, {}, clipping), timed.order.row_of, timed.order.packed);
  const Places places = take_places(state.sources, state.length, source, memory.value.rows());
  const auto keep = [&](const Tensor& rows, Tensor& table) {
    reserve_rows(table, state.sources.end() + places.spare, rows.columns(), rows.dtype(), store_.backend().memory());
    table.rows(places.first, places.first + rows.rows()).copy_from(rows);
  };
  keep(memory.value, state.memory);
  keep(keys(memory).value, state.keys);
  decode_arena_.release(mark);
  return places.numbers;
}

namespace {

// The rows of a step by sentences. They come in the order of their rows of memory; a sentence between two of them that no row of this step
// belongs to gets no queries.
struct Asking {
  std::vector<int32_t> queries{0}, sources;  // as in AttentionLayout
  int64_t pairs = 0;
};
Asking asking_of(std::span<const int32_t> sentence, const std::vector<int32_t>& length) {
  Asking asking;
  auto& [queries, sources, pairs] = asking;
  for (size_t r = 0; r < sentence.size();) {
    const size_t first = r;
    while (r < sentence.size() && sentence[r] == sentence[first]) ++r;
    CHECK(first == 0 || sentence[first] > sentence[first - 1], "row {} is not in the order of sentences", first);
    if (sources.empty()) sources.push_back(sentence[first]);
    if (sources.back() < sentence[first]) {
      queries.push_back(queries.back());
      sources.push_back(sentence[first]);
    }
    queries.push_back(static_cast<int32_t>(r));
    sources.push_back(sentence[first] + length[sentence[first]]);
    pairs += static_cast<int64_t>(r - first) * length[sentence[first]];
  }
  return asking;
}

}  // namespace

Var Gnmt::attend(Tape& tape, const GnmtState& state, const Var& asking, const AttentionLayout& layout, int64_t pairs, Tensor* attention) {
  const Var query = linear(asking, *query_weight_, nullptr);
  const Tensor y = tape.allocate({asking.value.rows(), memory_width_}, tape.backend().activation());
  const Tensor weights = tape.allocate({std::max<int64_t>(pairs, 1)}, tape.backend().parameter());
  tape.backend().global_attention({query.value, state.keys, score_vector(tape, score_, score_scale_), state.memory}, layout, y, weights);
  if (!attention) return {&tape, -1, y};
  *attention = weights.rows(0, pairs);
  // All shards take the first one's weights, so that they search in the same way even if their processors differ.
  if (ShardGroup* shards = store_.shards()) {
    if (shards->rank() > 0) attention->zero();
    shards->sum(*attention);
  }
  return {&tape, -1, y};
}

OutputProduct Gnmt::next_output(DecodeState& abstract, std::span<const int32_t> token, std::span<const int32_t> sentence,
                                std::span<const int32_t> parent, Tensor* attention) {
  auto& state = static_cast<GnmtState&>(abstract);
  const auto R = static_cast<int64_t>(token.size()), D = config_.width, padded = decoding_rows(store_, R);
  decode_arena_.release({});
  Tape tape(store_, decode_arena_);
  Backend& backend = tape.backend();

  std::vector<int32_t> tokens(token.begin(), token.end()), from(parent.begin(), parent.end());
  tokens.resize(padded, -1);
  from.resize(padded, -1);
  const Asking asking = asking_of(sentence, state.length);
  const std::vector<Ints> numbers = tape.upload_together({tokens, from, asking.queries, asking.sources});
  const Ints& from_rows = numbers[1];
  const AttentionLayout layout{numbers[2], numbers[3], 1, false};
  // The states that the rows continue from.
  const auto parents = [&](const Tensor& t) {
    const Tensor y = tape.allocate({padded, t.columns()}, t.dtype());
    backend.gather_rows(t, from_rows, y, Write::overwrite);
    return y;
  };
  const bool extends = std::any_of(parent.begin(), parent.end(), [](int32_t p) { return p >= 0; });
  Var last_query{&tape, -1, tape.allocate({padded, D}, backend.activation())};  // the bottom layer's output of the previous step
  last_query.value.zero();
  const auto step = [&](size_t i, const Var& x) {
    const Layer& layer = decoder_layers_[i];
    const int64_t here = layer.recurrent.shape[1] / 4;  // units: a part of them, where layers are in shards
    LstmStep s;
    s.gates = linear(x, layer.input, &layer.bias).value;
    s.tanh_output = config_.tanh_output;
    s.bound = config_.clip;
    if (extends) {
      const Tensor hidden = parents(state.hidden[i]);
      if (i == 0) last_query = {&tape, -1, hidden};
      s.recurrent = tape.allocate({padded, 4 * here}, backend.parameter());
      backend.linear(hidden, store_.packed(layer.recurrent, false), Tensor(), s.recurrent, Activation::none, Write::overwrite);
      s.cell_before = parents(state.cell[i]);
      s.past = padded;
    }
    // Rows beyond R are computed too, from zero states; the next step forgets them.
    s.cell = Tensor({padded, here}, layer.recurrent.quantized && config_.clip > 0 ? DType::i16 : backend.parameter(), backend.memory());
    s.hidden = Tensor({padded, here}, backend.activation(), backend.memory());
    backend.lstm_step(s);
    state.hidden[i] = s.hidden;
    state.cell[i] = s.cell;
    if (here < D) {
      state.hidden[i] = Tensor({padded, D}, backend.activation(), backend.memory());
      join_columns(backend, s.hidden, store_.first_here(layer.recurrent), state.hidden[i], *store_.shards());
    }
    return Var{&tape, -1, state.hidden[i]};
  };

  Var x = step(0, embedding(tape, numbers[0], {}, *target_table_, 1, {}, vocabulary_shard(store_, *target_table_)));
  const bool top = attends_at_top();
  Var context;
  if (!top) {
    const Var& query = config_.attention_query == AttentionQuery::previous ? last_query : x;
    context = attend(tape, state, query, layout, asking.pairs, attention);
  }
  Clipping clipping;
  for (size_t i = 1; i < decoder_layers_.size(); ++i) {
    const Var m = step(i, top ? x : concat(x, context));
    x = residual_layer(i) ? add_residual(m, x, clipping) : m;
  }
  if (top) context = attend(tape, state, x, layout, asking.pairs, attention);
  return {readout(x, context, {}, clipping).value, R, &store_.packed(*output_table_, true), config_.clip > 0 ? kLogitBound : 0};
}

}  // namespace starling
