// A training pass of GNMT's units, in pieces of time if tensors enter or leave in pieces: the wavefront of the paper. A layer begins a
// piece when the layer below has finished it. Only two things need whole sentences: the bottom encoder layer, which runs in both
// directions, and attention, whose keys are the encoder's whole output. That output passes through the decoder's stages to attention at the
// top, unless the model's output is apart: then layers leave what the output reads, and neither side waits for the other.
#include "models/gnmt.h"
#include "models/rows.h"

namespace starling {
namespace {

// Tokens of each piece; of all, if there is but one.
std::vector<int64_t> tokens_of(const PackedTokens& sentences, int64_t pieces) {
  if (pieces > 1)
    if (const std::vector<int64_t> tokens = piece_tokens(sentences, pieces); !tokens.empty()) return tokens;
  return {sentences.count()};
}

// A piece of the target in packed order, as attention wants its queries: row n there is row here[n] of the piece, and the position before
// it row before[n] of the piece, or row there[n] of the piece before; -1: none.
struct PackedPiece {
  std::vector<int32_t> offsets, here, before, there;
};
PackedPiece packed_piece(const PackedTokens& target, const TimeOrder& piece, const TimeOrder* earlier) {
  const std::vector<int32_t> none(static_cast<size_t>(piece.rows()), -1);
  PackedPiece p{{0}, none, none, none};
  int32_t n = 0;
  for (int64_t b = 0; b < target.sentences(); ++b) {
    for (int32_t i = target.offsets[b]; i < target.offsets[b + 1]; ++i) {
      if (piece.row_of[i] < 0) continue;
      p.here[n] = piece.row_of[i];
      if (i > target.offsets[b]) {
        p.before[n] = piece.row_of[i - 1];
        if (p.before[n] < 0) p.there[n] = earlier->row_of[i - 1];
      }
      ++n;
    }
    p.offsets.push_back(n);
  }
  return p;
}

// The rows of all pieces, on this tape.
Var joined(Tape& tape, const std::vector<Var>& pieces, const TimedRows& side) {
  std::vector<Var> parts;
  for (const Var& part : pieces) parts.push_back(move_to(tape, part));
  return parts.size() == 1 ? parts[0] : join_pieces(parts, side.pieces, side.order);
}

}  // namespace

class Gnmt::Pass : public ChunkedPass {
 public:
  // output_shares: where the output is apart and these are the layers.
  Pass(const Gnmt& model, const UnitRange& units, const Batch& batch, std::span<const Batch> output_shares, double label_smoothing,
       int64_t time_pieces);
  size_t steps() const override { return shares_.size(); }
  StepShare share(size_t step) const override { return shares_[step]; }
  std::vector<Var> forward(Tape& tape, std::vector<Var> in, Loss& loss) override;
  size_t first_taking() const override { return output_shares_.empty() || units_.begin > bottom_unit_ ? 0 : target_steps_; }
  ForOutput for_output() const override { return for_output_; }

 private:
  // A step of layers whose output is apart: first the decoder's steps, since its later stages wait for them, then the encoder's.
  std::vector<Var> layers(Tape& tape, size_t step, std::vector<Var> in, Loss& loss, Clipping& clipping);
  // The rows that the shares' outputs read from the pieces of a side's last layer, in their order: time order, or packed for the source.
  Var share_rows(Tape& tape, const std::vector<Var>& pieces, const TimedRows& side, const PackedTokens Batch::*tokens) const;
  // The encoder's output in packed order, when its last piece is there.
  Var gather_memory(Tape& tape) const;
  std::vector<Var> decoder(Tape& tape, size_t piece, std::vector<Var> in, Loss& loss, Clipping& clipping);
  Var bottom_layer(Tape& tape, size_t piece, Clipping& clipping);
  // The context for the rows of a piece; the queries come from the decoder layer that attends.
  Var context(Tape& tape, size_t piece, const Var& asking);
  template <class T>
  HostDeviceArray<T> part(Tape& tape, size_t piece, const HostDeviceArray<T>& whole, std::type_identity_t<T> idle) const {
    return target_.pieces.size() == 1 ? whole : piece_numbers(tape, target_.pieces[piece], whole, idle);
  }

  const Gnmt& model_;
  const UnitRange units_;
  const Batch& batch_;
  const std::span<const Batch> output_shares_;
  const double label_smoothing_;
  const size_t bottom_unit_, output_unit_;  // of the decoder
  const bool top_;                          // attends there
  int64_t source_pieces_ = 1, target_pieces_ = 1;
  size_t source_steps_ = 0, target_steps_ = 0, step_ = 0;
  std::vector<StepShare> shares_;
  TimedRows source_, target_;
  std::vector<Var> encoded_, decoded_;  // pieces, each on its step's tape
  ForOutput for_output_;
  Var memory_, keys_, queries_;     // the encoder's output in packed order; the queries of the piece before
  Ints inputs_;                     // of the decoder, in the order of time
  HostDeviceArray<float> weights_;  // of the loss, likewise
};

Gnmt::Pass::Pass(const Gnmt& model, const UnitRange& units, const Batch& batch, std::span<const Batch> output_shares,
                 double label_smoothing, int64_t time_pieces)
    : model_(model),
      units_(units),
      batch_(batch),
      output_shares_(output_shares),
      label_smoothing_(label_smoothing),
      bottom_unit_(model.encoder_units()),
      output_unit_(model.units() - 1),
      top_(model.attends_at_top()) {
  const bool apart = !output_shares.empty(), decodes = units_.end > bottom_unit_;
  const bool encodes = apart ? units_.begin < bottom_unit_ : units_.begin <= bottom_unit_;
  // If nothing enters or leaves in pieces, pieces would only make products smaller.
  if (units_.begin > 0 || (apart ? units_.end < bottom_unit_ : !decodes)) source_pieces_ = time_pieces;
  if (apart ? units_.begin > bottom_unit_ || units_.end < output_unit_ : !encodes || units_.end <= output_unit_)
    target_pieces_ = time_pieces;
  const auto rows_of = [](int64_t tokens) { return static_cast<double>(round_up(std::max<int64_t>(tokens, 1), kRowMultiple)); };
  const double N = rows_of(batch.source.count());
  std::vector<int64_t> source, target;
  if (encodes) source = tokens_of(batch.source, source_pieces_);
  if (decodes) target = tokens_of(batch.target, target_pieces_);
  source_steps_ = source.size();
  target_steps_ = target.size();

  // The bottom layer computes the whole source in the first step; the keys come with the first piece of the target.
  const auto products = [](const Layer& layer) { return static_cast<double>(layer.input.shape.count() + layer.recurrent.shape.count()); };
  double first = 0, each = 0, last = 0;
  if (units_.begin == 0) first = products(model.encoder_layers_[0]) + products(model.encoder_layers_[1]);
  for (size_t i = std::max<size_t>(units_.begin, 1); i < std::min(units_.end, bottom_unit_); ++i)
    each += products(model.encoder_layers_[i + 1]);
  const bool asks = units_.in_range(top_ ? output_unit_ : bottom_unit_);
  if (asks) last = static_cast<double>(model.key_weight_->shape.count());
  for (size_t c = 0; c < source.size(); ++c) {
    const double whole = (c == 0 ? first : 0) + (c + 1 == source.size() ? last : 0);
    shares_.push_back({(whole * N + each * rows_of(source[c])) / std::max(first + each + last, 1.0), 0});
  }
  if (apart) {
    std::vector<StepShare> first_target;
    for (const int64_t tokens : target) first_target.push_back({0, rows_of(tokens)});
    shares_.insert(shares_.begin(), first_target.begin(), first_target.end());
    target.clear();
  }
  if (decodes && shares_.empty()) shares_.push_back({asks ? N : 0, 0});
  for (size_t c = 0; c < target.size(); ++c) {
    if (c > 0) shares_.emplace_back();
    shares_.back().target = rows_of(target[c]);
  }
  if (shares_.size() == 1) shares_ = {{N, rows_of(batch.target.count())}};
}

std::vector<Var> Gnmt::Pass::forward(Tape& tape, std::vector<Var> in, Loss& loss) {
  const size_t step = step_++;
  Clipping clipping{loss.clipped()};
  if (!output_shares_.empty()) {
    in = layers(tape, step, std::move(in), loss, clipping);
    loss.clippable += clipping.values;
    return in;
  }
  if (step < source_steps_) {
    if (step == 0) source_ = timed_rows(tape, batch_.source, batch_.sample_ids, kRowMultiple, source_pieces_, bottom_unit_);
    encoded_.push_back(model_.encoder(tape, units_, source_, step, in.empty() ? Var() : in[0], clipping));
    in = {encoded_.back()};
    if (units_.end > bottom_unit_ && step + 1 < source_steps_) in.clear();  // the decoder waits for the last piece
    if (units_.end > bottom_unit_ && step + 1 == source_steps_) memory_ = gather_memory(tape);
  }
  if (units_.end > bottom_unit_ && step + 1 >= source_steps_)
    in = decoder(tape, step + 1 - std::max<size_t>(source_steps_, 1), std::move(in), loss, clipping);
  loss.clippable += clipping.values;
  return in;
}

Var Gnmt::Pass::gather_memory(Tape& tape) const {
  return gather_rows(joined(tape, encoded_, source_), source_.order.row_of, source_.order.packed);
}

std::vector<Var> Gnmt::Pass::layers(Tape& tape, size_t step, std::vector<Var> in, Loss& loss, Clipping& clipping) {
  for_output_ = {};
  if (step < target_steps_) {
    in = decoder(tape, step, std::move(in), loss, clipping);
    if (units_.end < output_unit_) return in;
    decoded_.push_back(in[0]);
    if (step + 1 == target_steps_) for_output_ = {share_rows(tape, decoded_, target_, &Batch::target), 0};
    return {};
  }
  const size_t piece = step - target_steps_;
  if (piece == 0) source_ = timed_rows(tape, batch_.source, batch_.sample_ids, kRowMultiple, source_pieces_, bottom_unit_);
  const Var x = model_.encoder(tape, units_, source_, piece, in.empty() ? Var() : in[0], clipping);
  if (units_.end < bottom_unit_) return {x};
  encoded_.push_back(x);
  if (piece + 1 == source_steps_) for_output_ = {share_rows(tape, encoded_, source_, &Batch::source), 1};
  return {};
}

Var Gnmt::Pass::share_rows(Tape& tape, const std::vector<Var>& pieces, const TimedRows& side, const PackedTokens Batch::*tokens) const {
  std::vector<int32_t> rows;
  int32_t before = 0;  // tokens of the shares before
  for (const Batch& share : output_shares_) {
    const PackedTokens& own = share.*tokens;
    if (own.count() == 0) continue;
    std::vector<int32_t> packed(static_cast<size_t>(padded_rows(own)), -1);
    for (int32_t n = 0; n < own.count(); ++n) packed[n] = n;
    if (&side == &target_) {
      const Ints in_time = time_order(tape, own, kRowMultiple).packed;
      packed.assign(in_time.begin(), in_time.end());
    }
    for (const int32_t n : packed) rows.push_back(n < 0 ? -1 : side.order.row_of[before + n]);
    before += static_cast<int32_t>(own.count());
  }
  const Var whole = joined(tape, pieces, side);
  const Ints inverse = tape.upload(inverse_of(rows, whole.value.rows()));
  return gather_rows(whole, tape.upload(std::move(rows)), inverse);
}

std::vector<Var> Gnmt::Pass::decoder(Tape& tape, size_t piece, std::vector<Var> in, Loss& loss, Clipping& clipping) {
  if (piece == 0) {
    target_ = timed_rows(tape, batch_.target, batch_.sample_ids, kRowMultiple, target_pieces_, model_.decoder_layers_.size());
    std::vector<float> weights = row_weights(batch_, target_.order.packed.size());
    if (!weights.empty()) weights_ = tape.upload(reordered(weights, target_.order.packed, 0.0f));
  }
  const TimeOrder& order = target_.pieces[piece];
  const int64_t D = model_.config_.width;
  clipping.rows = order.tokens();
  Var x, found;
  model_.store_.reach(bottom_unit_);
  if (units_.begin <= bottom_unit_) {
    x = bottom_layer(tape, piece, clipping);
    if (!top_) found = context(tape, piece, x);
  } else {
    x = in[0];
    if (in.size() > 1) (top_ ? memory_ : found) = in[1];
  }
  const auto mask = [&](const DropoutSite& site) { return tape.dropout(model_.config_.dropout, site, target_.piece_keys[piece]); };
  const size_t end = std::min(units_.end, output_unit_) - bottom_unit_;
  for (size_t i = std::max(units_.begin, bottom_unit_ + 1) - bottom_unit_; i < end; ++i)
    x = recycled(tape, {order.rows(), D}, [&] {
      model_.store_.reach(bottom_unit_ + i);
      const Layer& layer = model_.decoder_layers_[i];
      const Var below = dropout(top_ ? x : concat(x, found), mask(layer.site));
      const Var m = model_.run(layer, below, order, false, clipping, &target_.states[i]);
      return model_.residual_layer(i) ? model_.add_residual(m, x, clipping) : m;
    });
  if (units_.end <= output_unit_) {
    if (top_) return piece == 0 && memory_.tape ? std::vector{x, memory_} : std::vector{x};
    return units_.end < output_unit_ || model_.readout_weight_ ? std::vector{x, found} : std::vector{x};
  }
  model_.store_.reach(output_unit_);
  if (top_) found = context(tape, piece, x);

  const HostDeviceArray<float> weights = weights_.empty() ? weights_ : part(tape, piece, weights_, 0.0f);
  // Steps of time have the two passes of a sentence side by side, since their order is that of the batch where lengths are equal.
  const LossRows rows{part(tape, piece, target_.tokens, -1), label_smoothing_, model_.config_.clip > 0 ? kLogitBound : 0.0, weights,
                      batch_.r_drop};
  const Var top = recycled(tape, {order.rows(), D}, [&] { return model_.readout(x, found, mask(model_.readout_site_), clipping); });
  projection_loss(top, *model_.output_table_, nullptr, rows, loss, vocabulary_shard(model_.store_, *model_.output_table_));
  loss.row_of = order.row_of;
  return {};
}

Var Gnmt::Pass::bottom_layer(Tape& tape, size_t piece, Clipping& clipping) {
  const TimeOrder& order = target_.pieces[piece];
  if (piece == 0) {
    const std::vector<int32_t> inputs = shifted(batch_.target, model_.vocabulary_.begin, target_.order.packed.size());
    inputs_ = tape.upload(reordered(inputs, target_.order.packed, -1));
  }
  return recycled(tape, {order.rows(), model_.config_.width}, [&] {
    const Dropout mask = tape.dropout(model_.config_.dropout, model_.target_site_, target_.piece_keys[piece]);
    const Var embedded = embedding(tape, part(tape, piece, inputs_, -1), {}, *model_.target_table_, 1, mask,
                                   vocabulary_shard(model_.store_, *model_.target_table_));
    return model_.run(model_.decoder_layers_[0], embedded, order, false, clipping, &target_.states[0]);
  });
}

Var Gnmt::Pass::context(Tape& tape, size_t piece, const Var& asking) {
  const TimeOrder& order = target_.pieces[piece];
  const bool previous = model_.config_.attention_query == AttentionQuery::previous;
  if (piece == 0) keys_ = model_.keys(memory_);
  // The query of a position is the asking layer's output at it or just before.
  PackedPiece packed = packed_piece(batch_.target, order, piece > 0 ? &target_.pieces[piece - 1] : nullptr);
  const AttentionLayout layout{tape.upload(std::move(packed.offsets)), tape.upload(batch_.source.offsets), 1, false};
  const Ints packed_row = tape.upload(inverse_of(packed.here, order.rows())), here = tape.upload(std::move(packed.here));
  Ints asks = here, asked = packed_row;
  if (previous) {
    asked = tape.upload(inverse_of(packed.before, order.rows()));
    asks = tape.upload(std::move(packed.before));
  }
  return recycled(tape, {order.rows(), model_.memory_width_}, [&] {
    const Var queries = linear(asking, *model_.query_weight_, nullptr);
    Var query = gather_rows(queries, asks, asked);
    if (previous && piece > 0) {
      const Ints before = tape.upload(inverse_of(packed.there, queries_.value.rows()));
      query = residual(query, gather_rows(move_to(tape, queries_), tape.upload(std::move(packed.there)), before), {});
    }
    queries_ = queries;
    const Var y = global_attention(query, move_to(tape, keys_), move_to(tape, memory_), model_.score_, model_.score_scale_, layout);
    return gather_rows(y, packed_row, here);
  });
}

// Rows are in time order. Above the bottom decoder layer the contexts travel along, or, for attention at the top, the encoder's output in
// packed order, beside the first piece. In front of an output that is apart there is one piece, and nothing passes from the encoder to the
// decoder.
std::vector<std::vector<Shape>> Gnmt::boundary_pieces(size_t unit, const Batch& batch, int64_t time_pieces) const {
  const int64_t D = config_.width;
  const bool source = unit <= encoder_units(), output = unit + 1 == units();
  if (output_apart() && unit == encoder_units()) return {};
  if (output_apart() && output) time_pieces = 1;
  std::vector<std::vector<Shape>> pieces;
  for (const int64_t tokens : tokens_of(source ? batch.source : batch.target, time_pieces)) {
    const int64_t rows = round_up(std::max<int64_t>(tokens, 1), kRowMultiple);
    pieces.push_back({{rows, source && unit == 1 ? 2 * D : D}});
    if (!source && !attends_at_top() && (unit + 1 < units() || readout_weight_)) pieces.back().push_back({rows, memory_width_});
  }
  if (!source && attends_at_top() && (output || !output_apart())) pieces[0].push_back({padded_rows(batch.source), memory_width_});
  return pieces;
}

std::vector<Shape> Gnmt::boundary(size_t unit, const Batch& batch) const {
  const auto pieces = boundary_pieces(unit, batch, 1);
  return pieces.empty() ? std::vector<Shape>() : pieces[0];
}

std::unique_ptr<ChunkedPass> Gnmt::begin_pass(const Batch& batch, double label_smoothing, int64_t time_pieces) {
  return std::make_unique<Pass>(*this, store_.units(), batch, std::span<const Batch>(), label_smoothing, time_pieces);
}

std::vector<size_t> Gnmt::output_reads() const {
  if (!attends_at_top()) return {};
  return {units() - 2, encoder_units() - 1};
}

std::unique_ptr<ChunkedPass> Gnmt::begin_layers(const Batch& batch, std::span<const Batch> shares, int64_t time_pieces) {
  return std::make_unique<Pass>(*this, store_.units(), batch, shares, 0.0, time_pieces);
}

std::unique_ptr<ChunkedPass> Gnmt::begin_output(const Batch& share, double label_smoothing) {
  const UnitRange output{units() - 1, units()};
  return std::make_unique<Pass>(*this, output, share, std::span<const Batch>(), label_smoothing, 1);
}

std::vector<Var> Gnmt::forward(Tape& tape, const Batch& batch, double label_smoothing, std::vector<Var> in, Loss& loss) {
  return begin_pass(batch, label_smoothing, 1)->forward(tape, std::move(in), loss);
}

}  // namespace starling
