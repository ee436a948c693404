#include "models/transformer.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "autograd/recurrent.h"

namespace starling {
namespace {

struct TransformerState : DecodeState {
  // Tables come from `pool` and go back to it: clearing the pages of fresh memory takes more than a tenth of a batch's time.
  explicit TransformerState(std::shared_ptr<std::vector<DecodeTables>> from) : pool(std::move(from)) {
    if (pool->empty()) return;
    tables = std::move(pool->back());
    pool->pop_back();
  }
  ~TransformerState() override { pool->push_back(std::move(tables)); }
  void drop(int32_t sentence) override { sources.give_back(sentence, length[sentence]); }
  int64_t bytes() const override {
    int64_t sum = 0;
    for (const std::vector<Tensor>* layers : {&tables.sources, &tables.prefixes})
      for (const Tensor& t : *layers) sum += t.bytes();
    return sum + prefixes.end() * 12 + static_cast<int64_t>(length.size() + prefixes.index().size()) * 4;
  }
  std::shared_ptr<std::vector<DecodeTables>> pool;
  DecodeTables tables;
  RowPlaces sources;
  std::vector<int32_t> length;  // the number of tokens of each source, by its first row, which is its number
  PrefixRows prefixes;
};

}  // namespace

Transformer::Transformer(const ModelConfig& config, const ModelVocabulary& vocabulary, Backend& backend, const ModelPart& part)
    : config_(config), vocabulary_(vocabulary), store_(backend, part), pre_norm_(config.norm == NormPlace::pre) {
  if (config.width % config.heads != 0)
    throw ConfigError(fmt::format("model.width {} is not a multiple of model.heads {}; change one of them", config.width, config.heads));
  if (const ShardGroup* shards = store_.shards()) require_shards(config, shards->size());
  if (config.decoder_start == DecoderStart::zero) vocabulary_.begin = kZeroEmbedding;
  if (config.decoder_start == DecoderStart::end) vocabulary_.begin = vocabulary_.end;
  if (config.decoder_start == DecoderStart::pad) vocabulary_.begin = vocabulary_.padding;
  const int64_t D = config.width;
  const double epsilon = config.norm_epsilon;
  const Cut rows{0};  // tables are cut by token
  const Initializer table{Initializer::normal, 1 / std::sqrt(static_cast<double>(D))};
  const bool all = config.tied_embeddings == TiedEmbeddings::all;
  if (all && vocabulary.source_size != vocabulary.target_size)
    throw ConfigError("model.tied-embeddings: all needs one joint vocabulary; use decoder or set vocab.joint: true");
  // Tables lie where the forward pass uses them, so that gradients are complete in the reverse of the flat order (strategies/buckets.h).
  source_table_ = &store_.add(all ? "embedding" : "encoder.embedding", {vocabulary.source_size, D}, table, rows);
  if (config.position_table > 0) source_positions_ = &store_.add("encoder.positions", {config.position_table, D}, table);
  for (int64_t i = 0; i < config.encoder_layers; ++i) {
    const std::string name = fmt::format("encoder.{}", i);
    store_.begin_unit(static_cast<size_t>(i));
    encoder_layers_.push_back({{store_, name + ".attention", D, epsilon},
                               {store_, name + ".attention", D, config.heads, config.relative_positions},
                               {store_, name + ".feed_forward", D, epsilon},
                               {store_, name + ".feed_forward", D, config.feed_forward, config.activation}});
  }
  if (pre_norm_) encoder_norm_ = std::make_unique<LayerNorm>(store_, "encoder.norm", D, epsilon);
  store_.begin_unit(encoder_layers_.size());
  target_table_ = all ? &store_.share(*source_table_) : &store_.add("decoder.embedding", {vocabulary.target_size, D}, table, rows);
  if (config.position_table > 0) target_positions_ = &store_.add("decoder.positions", {config.position_table, D}, table);
  const bool recurrent = config.autoregression == Autoregression::ssru;
  for (int64_t i = 0; i < config.decoder_layers; ++i) {
    const std::string name = fmt::format("decoder.{}", i);
    store_.begin_unit(encoder_layers_.size() + static_cast<size_t>(i));
    // Evaluated in this order.
    decoder_layers_.push_back(
        DecoderLayer{{store_, name + ".attention", D, epsilon},
                     recurrent ? std::nullopt
                               : std::make_optional<SelfAttention>(store_, name + ".attention", D, config.heads, config.relative_positions),
                     recurrent ? std::make_optional<RecurrentUnit>(store_, name + ".ssru", D) : std::nullopt,
                     {store_, name + ".cross", D, epsilon},
                     {store_, name + ".cross", D},
                     {store_, name + ".feed_forward", D, epsilon},
                     {store_, name + ".feed_forward", D, config.feed_forward, config.activation}});
  }
  store_.begin_unit(this->units() - 1);
  if (pre_norm_) decoder_norm_ = std::make_unique<LayerNorm>(store_, "decoder.norm", D, epsilon);
  output_table_ = config.tied_embeddings == TiedEmbeddings::none ? &store_.add("decoder.output", {vocabulary.target_size, D}, table, rows)
                                                                 : &store_.share(*target_table_);
  if (config.output_bias) output_bias_ = &store_.add("decoder.output.bias", {vocabulary.target_size}, {Initializer::zeros}, rows);
}

AttentionLayout Transformer::heads_here(AttentionLayout layout) const {
  if (const ShardGroup* shards = store_.shards()) {
    layout.heads /= shards->size();
    layout.first_head = layout.heads * shards->rank();
  }
  return layout;
}

std::vector<EmbeddingTable> Transformer::embedding_tables() {
  if (source_table_ == target_table_) return {{source_table_, true, true, true}};
  std::vector<EmbeddingTable> tables{{source_table_, true, false, false}, {target_table_, false, true, target_table_ == output_table_}};
  if (output_table_ != target_table_) tables.push_back({output_table_, false, false, true});
  return tables;
}

template <class F>
Var Transformer::sublayer(const Var& x, const Sublayer& around, const RowLayer& last, const Regularization& r, F f) const {
  const Var h = f(pre_norm_ ? around.norm(x) : x);
  const Var sum = add_branch(x, last, h, x.tape->dropout(r.residual, around.site, r.rows));
  return pre_norm_ ? sum : around.norm(sum);
}

template <class F>
Var Transformer::sublayer(const Var& x, const Sublayer& around, const Regularization& r, F f) const {
  const Var h = f(pre_norm_ ? around.norm(x) : x);
  const Var sum = residual(x, h, x.tape->dropout(r.residual, around.site, r.rows));
  return pre_norm_ ? sum : around.norm(sum);
}

Regularization Transformer::regularization(const RowKeys& rows) const {
  return {config_.dropout, config_.attention_dropout, config_.feed_forward_dropout, rows};
}

std::vector<int32_t> Transformer::places_of(std::span<const int32_t> tokens, std::vector<int32_t> positions) const {
  const auto rows = static_cast<int32_t>(config_.position_table), first = static_cast<int32_t>(config_.first_position);
  for (size_t n = 0; n < positions.size(); ++n) {
    // Longer sentences are refused or cut before (Translator, Search, score, data.max-length; only validation may have some); this keeps
    // reads inside the table.
    positions[n] = rows == 0 ? positions[n] + first : tokens[n] == kPaddingRow ? kPaddingRow : std::min(positions[n] + first, rows - 1);
  }
  return positions;
}

Var Transformer::embed(Tape& tape, const Ints& tokens, const Ints& places, Parameter& table, Parameter* position_table,
                       const Dropout& dropout) const {
  const double scale = config_.embedding_scale > 0 ? config_.embedding_scale : std::sqrt(static_cast<double>(config_.width));
  const VocabularyShard shard = vocabulary_shard(store_, table);
  if (!position_table) return embedding(tape, tokens, config_.relative_positions > 0 ? Ints() : places, table, scale, dropout, shard);
  const Var of_tokens = embedding(tape, tokens, {}, table, scale, {}, shard);  // recorded in the order of the parameters
  const Var of_positions = embedding(tape, places, {}, *position_table, 1, {}), sum = residual(of_tokens, of_positions, {});
  return dropout.active() ? starling::dropout(sum, dropout) : sum;
}

const PackedTokens& Transformer::framed(const PackedTokens& source, PackedTokens& without) const {
  if (config_.source_end) return source;
  for (int64_t b = 0; b < source.sentences(); ++b)
    without.append(source.tokens.data() + source.offsets[b], source.tokens.data() + std::max(source.offsets[b], source.offsets[b + 1] - 1));
  return without;
}

Var Transformer::encoder(Tape& tape, const Numbers& source, Var x) {
  const UnitRange& units = store_.units();
  const AttentionLayout layout = heads_here({source.offsets, source.offsets, config_.heads, false});
  const Regularization r = regularization(source.keys);
  store_.reach(units.begin);
  if (units.begin == 0)
    x = embed(tape, source.tokens, source.places, *source_table_, source_positions_, tape.dropout(r.residual, source_site_, r.rows));
  for (size_t i = units.begin; i < std::min(units.end, encoder_layers_.size()); ++i)
    x = recycled(tape, x, [&] {
      store_.reach(i);
      const EncoderLayer& layer = encoder_layers_[i];
      const Var y =
          sublayer(x, layer.attention_sublayer, layer.attention.out, r, [&](const Var& h) { return layer.attention(h, layout, r); });
      return sublayer(y, layer.feed_forward_sublayer, layer.feed_forward.outer, r, [&](const Var& h) { return layer.feed_forward(h, r); });
    });
  return pre_norm_ && units.has(encoder_layers_.size() - 1) ? (*encoder_norm_)(x) : x;
}

// What the batch's links want of one head. The links of a token share its weight equally; those to a source's end that the encoder does not
// read are left out.
AttentionGuide Transformer::guide(Tape& tape, const Batch& batch, const AttentionLayout& across, const Loss& loss) const {
  if (!tape.training() || batch.guide <= 0 || batch.links.empty()) return {};
  CHECK(store_.shards() == nullptr, "guided attention of heads that are spread over workers");
  std::vector<int32_t> place;
  std::vector<float> weight;
  int64_t first = 0;  // the sentence's first pair
  for (size_t b = 0; b + 1 < batch.link_offsets.size(); ++b) {
    const int64_t keys = across.key[b + 1] - across.key[b];
    const auto links =
        std::span(batch.links)
            .subspan(static_cast<size_t>(batch.link_offsets[b]), static_cast<size_t>(batch.link_offsets[b + 1] - batch.link_offsets[b]));
    for (size_t l = 0, end; l < links.size(); l = end) {
      const size_t before = place.size();
      for (end = l; end < links.size() && links[end].target == links[l].target; ++end)
        if (links[end].source < keys) place.push_back(static_cast<int32_t>(first + links[end].target * keys + links[end].source));
      const float whole = batch.weights.empty() ? 1.0f : batch.weights[b];
      weight.resize(place.size(), whole / static_cast<float>(std::max<size_t>(place.size() - before, 1)));
    }
    first += keys * (across.query[b + 1] - across.query[b]);
  }
  return {config_.alignment_head > 0 ? config_.alignment_head - 1 : 0, tape.upload(std::move(place)), tape.upload(std::move(weight)),
          batch.guide, loss.alignment()};
}

// The stream of rows; in the decoder the encoder's output travels along.
std::vector<Shape> Transformer::boundary(size_t unit, const Batch& batch) const {
  PackedTokens without;
  const Shape source{padded_rows(framed(batch.source, without)), config_.width}, target{padded_rows(batch.target), config_.width};
  if (unit <= encoder_layers_.size()) return {source};
  return unit + 1 < units() ? std::vector{target, source} : std::vector{target};
}

std::vector<Var> Transformer::forward(Tape& tape, const Batch& batch, double label_smoothing, std::vector<Var> in, Loss& loss) {
  const UnitRange& units = store_.units();
  const size_t decoder = encoder_layers_.size(), output = this->units() - 1;
  PackedTokens without;
  const PackedTokens& source = framed(batch.source, without);
  const bool encodes = units.begin < decoder;
  const bool decodes = units.end > decoder;
  const bool predicts = units.end > output;
  const Rows read = encodes ? make_rows(source, batch.sample_ids, kRowMultiple) : Rows();
  const Rows written = decodes ? make_rows(batch.target, batch.sample_ids, kRowMultiple) : Rows();
  const size_t rows = written.tokens.size();
  // The decoder reads the target shifted right by one, and predicts it, with R-Drop in another order.
  const std::vector<int32_t> order = predicts && batch.r_drop > 0 ? paired_order(batch.target, rows) : std::vector<int32_t>();
  std::vector<int32_t> predicted = predicts ? written.tokens : std::vector<int32_t>();
  if (!order.empty()) predicted = reordered(predicted, order, -1);
  const auto numbers = tape.upload_together({source.offsets, read.tokens, places_of(read.tokens, read.positions), batch.target.offsets,
                                             decodes ? shifted(batch.target, vocabulary_.begin, rows) : std::vector<int32_t>(),
                                             places_of(written.tokens, written.positions), predicted, order,
                                             inverse_of(order, static_cast<int64_t>(order.size()))});
  std::vector<HostDeviceArray<uint32_t>> keys(4);
  if (tape.training()) keys = tape.upload_together<uint32_t>({read.sentence, read.position, written.sentence, written.position});
  const Ints &source_offsets = numbers[0], &offsets = numbers[3];
  // Distinct masks for the two sides come from distinct sites.
  if (encodes) in = {encoder(tape, {source_offsets, numbers[1], numbers[2], {keys[0], keys[1]}}, in.empty() ? Var() : in[0])};
  if (!decodes) return in;

  const AttentionLayout own = heads_here({offsets, offsets, config_.heads, true}),
                        across = heads_here({offsets, source_offsets, config_.heads, false});
  const Regularization r = regularization({keys[2], keys[3]});
  store_.reach(std::max(units.begin, decoder));
  if (units.begin <= decoder)
    in.insert(in.begin(),
              embed(tape, numbers[4], numbers[5], *target_table_, target_positions_, tape.dropout(r.residual, target_site_, r.rows)));
  Var x = in[0];
  const AttentionGuide guided = units.has(decoder + aligned_layer(config_)) ? guide(tape, batch, across, loss) : AttentionGuide();
  const Var memory = in.size() > 1 ? copy_to_shards(in[1]) : Var();
  for (size_t unit = std::max(units.begin, decoder); unit < std::min(units.end, output); ++unit)
    x = recycled(tape, x, [&] {
      store_.reach(unit);
      const DecoderLayer& layer = decoder_layers_[unit - decoder];
      Var y = layer.recurrent ? sublayer(x, layer.attention_sublayer, r, [&](const Var& h) { return (*layer.recurrent)(h, offsets); })
                              : sublayer(x, layer.attention_sublayer, layer.attention->out, r,
                                         [&](const Var& h) { return (*layer.attention)(h, own, r); });
      y = sublayer(y, layer.cross_sublayer, layer.cross.out, r, [&](const Var& h) {
        return layer.cross(h, memory, across, r, unit - decoder == aligned_layer(config_) ? guided : AttentionGuide());
      });
      return sublayer(y, layer.feed_forward_sublayer, layer.feed_forward.outer, r, [&](const Var& h) { return layer.feed_forward(h, r); });
    });
  if (units.end < output) return {x, in[1]};
  if (units.end == output) return {x};
  store_.reach(output);
  if (pre_norm_) x = (*decoder_norm_)(x);
  std::vector<float> weights = row_weights(batch, rows);
  if (batch.r_drop > 0) {
    x = gather_rows(x, numbers[7], numbers[8]);
    if (!weights.empty()) weights = reordered(weights, order, 0.0f);
  }
  projection_loss(x, *output_table_, output_bias_, {numbers[6], label_smoothing, 0, tape.upload(std::move(weights)), batch.r_drop}, loss,
                  vocabulary_shard(store_, *output_table_));
  return {};
}

std::unique_ptr<DecodeState> Transformer::begin_decoding() {
  auto state = std::make_unique<TransformerState>(spare_tables_);
  state->tables.sources.resize(decoder_layers_.size());
  state->tables.prefixes.resize(decoder_layers_.size());
  return state;
}

std::vector<int32_t> Transformer::encode(DecodeState& abstract, const PackedTokens& sentences) {
  PackedTokens without;
  const PackedTokens& source = framed(sentences, without);
  auto& state = static_cast<TransformerState&>(abstract);
  Backend& backend = store_.backend();
  Tape tape(store_, decode_arena_);
  const auto mark = decode_arena_.mark();
  const int64_t multiple = store_.row_multiple(std::max<int64_t>(source.count(), 65));  // short sources are padded as long ones
  const Rows rows = make_rows(source, {}, multiple);
  const auto numbers = tape.upload_together({source.offsets, rows.tokens, places_of(rows.tokens, rows.positions)});
  const Tensor memory = encoder(tape, {numbers[0], numbers[1], numbers[2], {}}).value;
  const Places places = take_places(state.sources, state.length, source, memory.rows());
  for (size_t i = 0; i < decoder_layers_.size(); ++i) {
    const ColumnLayer& kv = decoder_layers_[i].cross.kv;
    Tensor& table = state.tables.sources[i];
    reserve_rows(table, state.sources.end() + places.spare, kv.columns(), backend.activation(), backend.memory());
    backend.linear(memory, store_.packed(kv.w, false), kv.b.value, table.rows(places.first, places.first + memory.rows()), Activation::none,
                   Write::overwrite);
  }
  decode_arena_.release(mark);
  return places.numbers;
}

OutputProduct Transformer::next_output(DecodeState& abstract, std::span<const int32_t> token, std::span<const int32_t> sentence,
                                       std::span<const int32_t> parent, Tensor* attention) {
  auto& state = static_cast<TransformerState&>(abstract);
  const AttentionLayout here = heads_here({{}, {}, config_.heads});
  const int64_t R = static_cast<int64_t>(token.size()), H = here.heads, D = config_.width / config_.heads * H;
  const int64_t padded = decoding_rows(store_, R);

  state.prefixes.step(parent);
  std::vector<int32_t> tokens(token.begin(), token.end()), positions(padded, 0), cross_index, cross_offsets{0};
  std::vector<int32_t> before, single;  // for recurrent units: the row that a row extends, and a sentence for each row
  if (config_.autoregression == Autoregression::ssru) {
    before.resize(padded, -1);
    single.resize(padded + 1);
    std::iota(single.begin(), single.end(), 0);
  }
  tokens.resize(padded, -1);
  for (int64_t r = 0; r < R; ++r) {
    positions[r] = state.prefixes.offsets()[r + 1] - state.prefixes.offsets()[r] - 1;
    if (!before.empty() && positions[r] > 0) before[r] = state.prefixes.index()[state.prefixes.offsets()[r + 1] - 2];
    for (int32_t i = 0; i < state.length[sentence[r]]; ++i) cross_index.push_back(sentence[r] + i);
    cross_offsets.push_back(static_cast<int32_t>(cross_index.size()));
  }
  std::vector<int32_t> own_offsets = state.prefixes.offsets();
  own_offsets.resize(padded + 1, own_offsets.back());
  cross_offsets.resize(padded + 1, cross_offsets.back());
  // The head whose attention is asked for, among those here; all of them where none is chosen.
  const size_t aligned = aligned_layer(config_);
  const int64_t head = config_.alignment_head > 0 ? config_.alignment_head - 1 - here.first_head : -1;

  decode_arena_.release({});
  Tape tape(store_, decode_arena_);
  Backend& backend = tape.backend();
  const std::vector<Ints> numbers = tape.upload_together({tokens, places_of(tokens, std::move(positions)), state.prefixes.index(),
                                                          own_offsets, state.prefixes.rows(), cross_index, cross_offsets, before, single});
  const Ints &own = numbers[2], &own_rows = numbers[3], &written = numbers[4], &cross = numbers[5], &cross_rows = numbers[6];
  if (attention) *attention = tape.allocate({static_cast<int64_t>(cross.size())}, DType::f32);
  Var x = embed(tape, numbers[0], numbers[1], *target_table_, target_positions_, {});
  for (size_t i = 0; i < decoder_layers_.size(); ++i) {
    const DecoderLayer& layer = decoder_layers_[i];
    const auto attend = [&](const Tensor& q, const Tensor& kv, const Ints& index, const Ints& offsets, const Tensor& weights,
                            const RelativeTables& tables = {}) {
      const Tensor y = tape.allocate({padded, D}, backend.activation());
      RelativeAttention relative(tape, tables, H);
      backend.attend_cached({q, kv, 0, 0, D, relative.start(q, D)}, index, offsets, H, y, weights);
      relative.finish(y);
      return tape.record(y, {});
    };
    Tensor& cache = state.tables.prefixes[i];
    if (layer.recurrent)
      x = sublayer(x, layer.attention_sublayer, {}, [&](const Var& h) {
        const auto [candidate, forget] = layer.recurrent->inputs(h);
        const Tensor cell = tape.allocate({padded, D}, backend.parameter()), earlier = tape.allocate_like(cell);
        const Tensor y = tape.allocate_like(candidate.value);
        reserve_rows(cache, std::max<int64_t>(state.prefixes.end(), 1024), D, cell.dtype(), backend.memory());
        backend.gather_rows(cache, numbers[7], earlier, Write::overwrite);
        backend.ssru({candidate.value, forget.value, numbers[8], earlier, cell, y});
        backend.scatter_rows(cell, 0, written, cache);
        return tape.record(y, {});
      });
    else
      x = sublayer(x, layer.attention_sublayer, layer.attention->out, {}, [&](const Var& h) {
        const Tensor qkv = layer.attention->qkv(h).value;
        reserve_rows(cache, std::max<int64_t>(state.prefixes.end(), 1024), 2 * D, qkv.dtype(), backend.memory());
        backend.scatter_rows(qkv, D, written, cache);
        return attend(qkv, cache, own, own_rows, {}, layer.attention->relative);
      });
    x = sublayer(x, layer.cross_sublayer, layer.cross.out, {}, [&](const Var& h) {
      const Tensor q = layer.cross.q(h).value, &kv = state.tables.sources[i];
      if (!attention || i != aligned) return attend(q, kv, cross, cross_rows, {});
      if (config_.alignment_head == 0) return attend(q, kv, cross, cross_rows, *attention);
      const int64_t width = D / H, column = head * width;
      if (head < 0 || head >= H)
        attention->zero();  // another worker has it
      else
        backend.attend_cached({q, kv, column, column, D + column}, cross, cross_rows, 1,
                              tape.allocate({padded, width}, backend.activation()), *attention);
      return attend(q, kv, cross, cross_rows, {});
    });
    x = sublayer(x, layer.feed_forward_sublayer, layer.feed_forward.outer, {}, [&](const Var& h) { return layer.feed_forward(h, {}); });
  }
  if (ShardGroup* shards = store_.shards(); shards && attention) {  // means over the heads here, or what one worker has
    if (config_.alignment_head == 0) backend.flat().scale(*attention, 1.0 / shards->size(), *attention, Write::overwrite);
    shards->sum(*attention);
  }
  if (pre_norm_) x = (*decoder_norm_)(x);
  return {x.value, R, &store_.packed(*output_table_, true), 0, output_bias_ ? output_bias_->value : Tensor()};
}

}  // namespace starling
