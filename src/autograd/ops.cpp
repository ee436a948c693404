#include "autograd/ops.h"

#include <algorithm>
#include <array>
#include <optional>

namespace starling {

void add_layer_gradients(Tape& tape, const Tensor& x, const Tensor& dy, Parameter& w, Parameter* b) {
  GradientSum& gradients = tape.gradients();
  if (b)
    tape.backend().layer_gradients(x, dy, w.gradient, gradients.next_write(w), b->gradient, gradients.next_write(*b));
  else
    tape.backend().weight_gradient(x, dy, w.gradient, gradients.next_write(w));
  tape.done(w);
  if (b) tape.done(*b);
}

Var linear(const Var& x, Parameter& w, Parameter* b, Activation activation, const Dropout& dropout) {
  Tape& tape = *x.tape;
  Backend& backend = tape.backend();
  CHECK(!dropout.active() || activation != Activation::none, "dropout after a linear layer needs an activation");
  const bool fused = activation == Activation::none || activation == Activation::relu;  // in the product
  const Tensor h = tape.allocate({x.value.rows(), w.shape[1]}, backend.activation());
  const Tensor y = fused || !tape.training() ? h : tape.allocate_like(h);
  backend.linear(x.value, tape.parameters().packed(w, false), b ? b->value : Tensor(), h, fused ? activation : Activation::none,
                 Write::overwrite);
  if (!fused) backend.activate(h, activation, y);
  if (dropout.active()) backend.add_dropout(Tensor(), y, dropout, y);
  tape.use(w);
  if (b) tape.use(*b);
  return tape.record(y, [=, &tape, &backend, &w](const Tensor& dy) {
    const bool relu = activation == Activation::relu;
    Parameter* const summed = relu && backend.sums_in_relu() ? b : nullptr;  // its gradient is made in that pass, else with the weight's
    if (relu)
      backend.relu_dropout_backward(y, dropout.active() ? dropout.scale() : 1.0, dy, summed ? summed->gradient : Tensor(),
                                    summed ? tape.gradients().next_write(*summed) : Write::overwrite);
    if (!fused) {
      if (dropout.active()) backend.dropout_backward(dy, dropout, dy, Write::overwrite);
      backend.activate_backward(h, activation, dy);
    }
    add_layer_gradients(tape, x.value, dy, w, summed ? nullptr : b);
    if (summed) tape.done(*summed);
    const auto dx = tape.gradient(x);
    backend.linear(dy, tape.parameters().packed(w, true), Tensor(), dx.tensor, Activation::none, dx.write);
  });
}

namespace {

constexpr int64_t kShardedLogitsBytes = int64_t{32} << 20;
constexpr int64_t kLeastWidth = 16 << 10;  // bytes of a row of logits; narrower rows do not get larger chunks
constexpr int64_t kChunkRows = 64;         // of which chunks have a multiple

// The rows of logits that the loss holds at once. Shards exchange chunk by chunk, so all workers must use the same chunks, whatever
// backends they have. On a processor a row costs the same in a short chunk, and other chunks would round the table's gradient otherwise.
int64_t loss_chunk(const Backend& backend, int64_t rows, int64_t vocabulary, const VocabularyShard& shard) {
  const bool spread = is_spread(shard.group);
  const int64_t width = spread ? (shard.vocabulary + shard.group->size() - 1) / shard.group->size() : vocabulary;
  // Chunks are large enough that accumulating the table's gradient costs little.
  const int64_t bytes = spread ? kShardedLogitsBytes : backend.logits_bytes();
  const int64_t most = std::clamp<int64_t>(bytes / (width * 4) / kChunkRows * kChunkRows, 256, bytes / kLeastWidth);
  if (spread || !backend.equal_chunks() || rows == 0) return most;
  const int64_t chunks = (rows + most - 1) / most, multiples = chunks * kChunkRows;
  return std::min(most, (rows + multiples - 1) / multiples * kChunkRows);
}

// One row per token that is not padding; duplicates stay.
void add_token_gradients(Tape& tape, const Ints& tokens, double scale, const Dropout& dropout, const Tensor& dy, TokenGradients& to) {
  Backend& backend = tape.backend();
  std::vector<int32_t> row(tokens.size(), -1);
  int32_t count = 0;
  for (size_t i = 0; i < tokens.size(); ++i)
    if (tokens[i] >= 0) row[i] = count++, to.tokens.push_back(tokens[i]);
  const Tensor rows({count, dy.columns()}, backend.parameter(), backend.memory());
  backend.embed_backward(tape.upload(std::move(row)), scale, dropout, dy, rows);
  to.rows.push_back(rows);
}

}  // namespace

Var embedding(Tape& tape, const Ints& tokens, const Ints& positions, Parameter& table, double scale, const Dropout& dropout,
              const VocabularyShard& shard) {
  // Each row comes from one worker and is zero on the others, so the sum does not round, and its backward pass has nothing to do.
  if (is_spread(shard.group))
    return sum_over_shards(embedding(tape, tokens_here(tape, tokens, shard, table), positions, table, scale, dropout), shard.group);
  Backend& backend = tape.backend();
  const Tensor y = tape.allocate({static_cast<int64_t>(tokens.size()), table.shape[1]}, backend.activation());
  backend.embed(tokens, positions, table.value, scale, dropout, y);
  tape.use(table);
  return tape.record(y, [&tape, &backend, &table, tokens, scale, dropout](const Tensor& dy) {
    if (tape.gradients().next_write(table) == Write::overwrite) table.gradient.zero();
    if (TokenGradients* kept = tape.gradients().tokens(table))
      add_token_gradients(tape, tokens, scale, dropout, dy, *kept);
    else
      backend.embed_backward(tokens, scale, dropout, dy, table.gradient);
    tape.done(table);
  });
}

Var layer_norm(const Var& x, Parameter& gamma, Parameter& beta, double epsilon) {
  Tape& tape = *x.tape;
  Backend& backend = tape.backend();
  const Tensor y = tape.allocate_like(x.value), statistics = tape.allocate({x.value.rows(), 2}, backend.parameter());
  backend.layer_norm(x.value, gamma.value, beta.value, epsilon, y, statistics);
  tape.use(gamma);
  tape.use(beta);
  return tape.record(y, [=, &tape, &backend, &gamma, &beta](const Tensor& dy) {
    const auto dx = tape.gradient(x);
    tape.gradients().next_write(beta);  // both are always written together
    backend.layer_norm_backward(dy, x.value, gamma.value, statistics, dx.tensor, dx.write, gamma.gradient, beta.gradient,
                                tape.gradients().next_write(gamma));
    tape.done(gamma);
    tape.done(beta);
  });
}

Var residual(const Var& x, const Var& branch, const Dropout& dropout) {
  Tape& tape = *x.tape;
  Backend& backend = tape.backend();
  const Tensor y = tape.allocate_like(x.value);
  backend.add_dropout(x.value, branch.value, dropout, y);
  return tape.record(y, [=, &tape, &backend](const Tensor& dy) {
    const auto ds = tape.gradient(branch);
    backend.dropout_backward(dy, dropout, ds.tensor, ds.write);
    tape.pass_gradient(x, dy);
  });
}

Var self_attention(const Var& qkv, const AttentionLayout& layout, const Dropout& dropout, const RelativeTables& tables) {
  Tape& tape = *qkv.tape;
  Backend& backend = tape.backend();
  const int64_t N = qkv.value.rows(), D = qkv.value.columns() / 3;
  CHECK(dropout.first_column == 0, "heads are spread over workers by AttentionLayout::first_head, not by columns");
  const Tensor y = tape.allocate({N, D}, backend.activation()), lse = tape.allocate({N, layout.heads}, backend.parameter());
  RelativeAttention relative(tape, tables, layout.heads);
  backend.attention({qkv.value, qkv.value, 0, D, 2 * D, relative.start(qkv.value, D)}, layout, dropout, y, lse);
  relative.finish(y);
  return tape.record(y, [=, &tape, &backend](const Tensor& dy) mutable {
    const auto d = tape.gradient(qkv);
    CHECK(d.write == Write::overwrite, "queries, keys and values have one use");
    const RelativeBins bins = relative.start_backward(dy);
    backend.attention_backward({qkv.value, qkv.value, 0, D, 2 * D, bins}, layout, dropout, lse, dy, d.tensor, d.tensor);
    relative.finish_backward(d.tensor);
  });
}

namespace {

// The attention of one head apart: its probabilities, their loss, and the gradient of that. The op that computes them also makes means of
// a memory, for which the keys stand in; nobody reads these.
class GuidedHead {
 public:
  GuidedHead(const Var& q, const Var& kv, const AttentionLayout& layout, const AttentionGuide& guide)
      : backend_(q.tape->backend()), layout_(layout), factor_(guide.factor), width_(q.value.columns() / layout.heads) {
    Tape& tape = *q.tape;
    const auto of_head = [&](const Tensor& all) {
      const Tensor own = tape.allocate({all.rows(), width_}, all.dtype());
      backend_.copy_columns(all, guide.head * width_, own, 0, width_, Write::overwrite);
      return own;
    };
    first_column_ = guide.head * width_;
    queries_ = of_head(q.value), keys_ = of_head(kv.value);
    means_ = tape.allocate_like(queries_);
    weights_ = tape.allocate({std::max<int64_t>(attention_pairs(layout), 1)}, backend_.parameter());
    dweights_ = tape.allocate_like(weights_);
    backend_.global_attention(input(), layout, means_, weights_);
    backend_.flat().link_loss(weights_, guide.place, guide.weight, dweights_, guide.loss);
    if (!tape.training()) return;
    dqueries_ = tape.allocate_like(queries_), dkeys_ = tape.allocate_like(keys_), dmemory_ = tape.allocate_like(keys_);
  }
  // Adds to the gradients of queries and keys.
  void backward(const Tensor& dq, const Tensor& dkv) const {
    backend_.flat().scale(dweights_, factor_, dweights_, Write::overwrite);
    means_.zero();
    backend_.global_attention_backward(input(), layout_, weights_, means_, dweights_, dqueries_, dkeys_, dmemory_, Write::overwrite, {},
                                       Write::overwrite);
    backend_.copy_columns(dqueries_, 0, dq, first_column_, width_, Write::accumulate);
    backend_.copy_columns(dkeys_, 0, dkv, first_column_, width_, Write::accumulate);
  }

 private:
  Backend::GlobalAttention input() const { return {queries_, keys_, {}, keys_}; }

  Backend& backend_;
  AttentionLayout layout_;
  double factor_;
  int64_t width_, first_column_ = 0;
  Tensor queries_, keys_, means_, weights_, dweights_, dqueries_, dkeys_, dmemory_;
};

}  // namespace

int64_t attention_pairs(const AttentionLayout& layout) {
  int64_t pairs = 0;
  for (size_t b = 0; b + 1 < layout.query.size(); ++b)
    pairs += int64_t{layout.query[b + 1] - layout.query[b]} * (layout.key[b + 1] - layout.key[b]);
  return pairs;
}

Var cross_attention(const Var& q, const Var& kv, const AttentionLayout& layout, const Dropout& dropout, const AttentionGuide& guide) {
  Tape& tape = *q.tape;
  Backend& backend = tape.backend();
  const int64_t N = q.value.rows(), D = q.value.columns();
  CHECK(dropout.first_column == 0, "heads are spread over workers by AttentionLayout::first_head, not by columns");
  const Tensor y = tape.allocate({N, D}, backend.activation()), lse = tape.allocate({N, layout.heads}, backend.parameter());
  const Backend::AttentionInput input{q.value, kv.value, 0, 0, D};
  backend.attention(input, layout, dropout, y, lse);
  std::optional<GuidedHead> guided;
  if (guide.loss) guided.emplace(q, kv, layout, guide);
  return tape.record(y, [=, &tape, &backend](const Tensor& dy) {
    const auto dq = tape.gradient(q), dkv = tape.gradient(kv);
    CHECK(dq.write == Write::overwrite && dkv.write == Write::overwrite, "queries, keys and values have one use");
    backend.attention_backward(input, layout, dropout, lse, dy, dq.tensor, dkv.tensor);
    if (guided) guided->backward(dq.tensor, dkv.tensor);
  });
}

Var ssru(const Var& candidate, const Var& forget, const Ints& offsets) {
  Tape& tape = *candidate.tape;
  Backend& backend = tape.backend();
  const Tensor y = tape.allocate_like(candidate.value), cell = tape.allocate(y.shape(), backend.parameter());
  backend.ssru({candidate.value, forget.value, offsets, {}, cell, y});
  return tape.record(y, [=, &tape, &backend](const Tensor& dy) {
    const auto dcandidate = tape.gradient(candidate), dforget = tape.gradient(forget);
    CHECK(dcandidate.write == Write::overwrite && dforget.write == Write::overwrite, "candidates and gates have one use");
    backend.ssru_backward({candidate.value, forget.value, offsets, cell, dy, dcandidate.tensor, dforget.tensor});
  });
}

Loss::Loss(Tape& tape) : sums(tape.allocate({kSums}, DType::f64)) { sums.zero(); }

LossSums Loss::read(const Tensor& from) const {
  LossSums result;
  result.tokens = tokens;
  result.clippable = clippable;
  if (!from.has_elements()) return result;
  std::array<double, kSums> numbers;
  from.read<double>(numbers);
  result.smoothed = numbers[0];
  result.nll = numbers[1];
  result.correct = static_cast<int64_t>(numbers[2]);
  result.consistency = numbers[3];
  result.clipped = static_cast<int64_t>(numbers[4]);
  result.alignment = numbers[5];
  return result;
}

std::vector<float> Loss::read_nll() const {
  const std::vector<double> numbers = rows.to_doubles();
  const auto columns = static_cast<size_t>(rows.columns());
  std::vector<float> nll(static_cast<size_t>(tokens));
  for (size_t i = 0; i < nll.size(); ++i)
    nll[i] = static_cast<float>(numbers[columns * (row_of.empty() ? i : static_cast<size_t>(row_of[i])) + 1]);
  return nll;
}

void projection_loss(const Var& h, Parameter& table, Parameter* b, const LossRows& all, Loss& loss, const VocabularyShard& shard) {
  Tape& tape = *h.tape;
  Backend& backend = tape.backend();
  const bool spread = is_spread(shard.group);
  const int64_t N = h.value.rows(), V = table.shape[0];
  CHECK(static_cast<int64_t>(all.targets.size()) == N, "{} targets for {} rows", all.targets.size(), N);
  CHECK(all.r_drop == 0 || (!spread && N % 2 == 0), "{} rows in pairs, of a vocabulary that is {}", N, spread ? "spread" : "whole");
  const int64_t chunk = loss_chunk(backend, N, V, shard);
  const Packed& forward = tape.parameters().packed(table, true);
  const bool training = tape.training();
  tape.use(table);
  if (b) tape.use(*b);
  loss.rows = tape.allocate({N, all.columns()}, backend.parameter());
  loss.tokens += std::count_if(all.targets.begin(), all.targets.end(), [](int32_t target) { return target >= 0; });
  const Tensor dh = training ? tape.allocate_like(h.value) : Tensor();
  const auto mark = tape.arena().mark();
  const int64_t most = std::min(chunk, N);
  const Tensor logits = tape.allocate({most, V}, backend.parameter());
  const Tensor dlogits = training ? tape.allocate({most, V}, backend.activation()) : Tensor();
  std::optional<ShardedLoss> shards;
  if (spread) shards.emplace(tape, shard, all, loss.rows);
  for (int64_t begin = 0; begin < N; begin += chunk) {
    const int64_t end = std::min(N, begin + chunk), n = end - begin;
    const Tensor part = logits.rows(0, n), gradient = training ? dlogits.rows(0, n) : Tensor();
    backend.linear(h.value.rows(begin, end), forward, b ? b->value : Tensor(), part, Activation::none, Write::overwrite);
    if (spread)
      shards->add(begin, part, gradient);
    else
      backend.smoothed_loss(part, all.part(begin, n), loss.rows.rows(begin, end), gradient);
    if (!training) continue;
    backend.linear(gradient, tape.parameters().packed(table, false), Tensor(), dh.rows(begin, end), Activation::none, Write::overwrite);
    if (b) backend.column_sums(gradient, b->gradient, tape.gradients().next_write(*b));
    backend.weight_gradient(gradient, h.value.rows(begin, end), table.gradient, tape.gradients().next_write(table));
  }
  if (spread && !training) shards->finish();
  backend.loss_sums(loss.rows, all, loss.sums.slice(0, {all.columns()}));
  tape.arena().release(mark);
  if (training && spread) shard.group->sum(dh);
  if (training) {
    tape.set_gradient(h, dh);
    if (b) tape.done(*b);
    tape.done(table);
  }
}

}  // namespace starling
