#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "autograd/ops.h"

namespace starling {

Var copy_to_shards(const Var& x, ShardGroup* group) {
  if (!is_spread(group) || !x.tape->training()) return x;
  Tape& tape = *x.tape;
  return tape.record(x.value, [=, &tape](const Tensor& dy) {
    group->sum(dy);
    tape.pass_gradient(x, dy);
  });
}

Var sum_over_shards(const Var& x, ShardGroup* group) {
  if (!is_spread(group)) return x;
  Tape& tape = *x.tape;
  group->sum(x.value);
  return tape.record(x.value, [=, &tape](const Tensor& dy) { tape.pass_gradient(x, dy); });
}

void join_columns(Backend& backend, const Tensor& own, int64_t first, const Tensor& whole, ShardGroup& group) {
  whole.zero();
  backend.copy_columns(own, 0, whole, first, own.columns(), Write::overwrite);
  group.sum(whole);  // all but one of its terms are zero
}

Var row_parallel_linear(const Var& x, Parameter& w, Parameter* b, ShardGroup* group) {
  if (!is_spread(group)) return linear(x, w, b);
  Tape& tape = *x.tape;
  Backend& backend = tape.backend();
  const Tensor y = tape.allocate({x.value.rows(), w.shape[1]}, backend.activation());
  // Only the first worker's product adds the bias. All workers compute its gradient.
  const Tensor bias = b && group->rank() == 0 ? b->value : Tensor();
  backend.linear(x.value, tape.parameters().packed(w, false), bias, y, Activation::none, Write::overwrite);
  group->sum(y);
  tape.use(w);
  if (b) tape.use(*b);
  return tape.record(y, [=, &tape, &backend, &w](const Tensor& dy) {
    add_layer_gradients(tape, x.value, dy, w, b);
    const auto dx = tape.gradient(x);
    backend.linear(dy, tape.parameters().packed(w, true), Tensor(), dx.tensor, Activation::none, dx.write);
  });
}

VocabularyShard vocabulary_shard(const ParameterStore& store, const Parameter& table) {
  if (!store.is_cut(table)) return {};
  return {store.shards(), store.first_here(table), table.whole[0]};
}

Ints tokens_here(Tape& tape, const Ints& tokens, const VocabularyShard& shard, const Parameter& table) {
  std::vector<int32_t> here(tokens.begin(), tokens.end());
  for (int32_t& token : here)
    if (token >= shard.first && token < shard.first + table.shape[0])
      token -= static_cast<int32_t>(shard.first);
    else if (token >= 0 || shard.group->rank() > 0)  // the first worker adds the position of a zero embedding
      token = kPaddingRow;
  return tape.upload(std::move(here));
}

ShardedLoss::ShardedLoss(Tape& tape, const VocabularyShard& shard, const LossRows& rows, const Tensor& row_loss)
    : backend_(tape.backend()), shard_(shard), rows_(rows), row_loss_(row_loss) {
  const int64_t N = row_loss.rows();
  const DType type = backend_.parameter();
  top_ = tape.allocate({N}, type);
  group_top_ = tape.allocate({N}, type);
  sums_ = tape.allocate({N, 3}, type);
}

// In training rows are exchanged chunk by chunk, since the gradient of the table needs the sums of every row before its logits are gone. To
// exchange all rows at once, the logits would have to be kept (N V / T numbers) or computed twice, which is a third more work. For N =
// 4096, V / T = 8192 and D = 512 that is 134 MB or 34 GFLOP, to save 6 of the 8 messages of four chunks, some 50 microseconds each. The
// bytes are the same either way.
void ShardedLoss::add(int64_t begin, const Tensor& logits, const Tensor& dlogits) {
  const int64_t n = logits.rows();
  const LogitsShard part{logits, shard_.first, shard_.vocabulary, top_.rows(begin, begin + n), sums_.rows(begin, begin + n)};
  backend_.shard_exponentials(part, rows_.part(begin, n));
  if (dlogits) exchange(begin, part, dlogits);
}

void ShardedLoss::finish() { exchange(0, {Tensor(), shard_.first, shard_.vocabulary, top_, sums_}, Tensor()); }

void ShardedLoss::exchange(int64_t begin, const LogitsShard& part, const Tensor& dlogits) {
  const int64_t end = begin + part.top.rows();
  const Tensor group_top = group_top_.rows(begin, end);
  group_top.copy_from(part.top);
  shard_.group->maximum(group_top);
  backend_.rescale_shard(part, group_top);
  shard_.group->sum(part.sums);
  backend_.shard_loss(part, group_top, rows_.part(begin, end - begin), row_loss_.rows(begin, end), dlogits);
}

namespace {

// The values of every worker, [R, size, n]: each fills its own places and leaves zeros in the others', so that a sum gives everything to
// all.
struct Notes {
  Notes(const ShardGroup& group, int64_t R, int64_t n) : all({R, group.size(), n}, DType::f64), rank(group.rank()) {}
  std::span<double> of(int64_t r, int64_t worker) {
    const int64_t n = all.dim(2);
    return doubles_of(all).subspan(static_cast<size_t>((r * all.dim(1) + worker) * n), static_cast<size_t>(n));
  }
  std::span<double> own(int64_t r) { return of(r, rank); }
  Tensor all;
  int64_t rank;
};

// The largest logit over all workers, and the sum of e^(logit - largest).
struct Denominator {
  double top = -INFINITY, sum = 0;
};
Denominator denominator_of(Notes& notes, int64_t r, size_t at) {
  Denominator d;
  for (int64_t worker = 0; worker < notes.all.dim(1); ++worker) d.top = std::max(d.top, notes.of(r, worker)[at]);
  for (int64_t worker = 0; worker < notes.all.dim(1); ++worker)
    d.sum += notes.of(r, worker)[at + 1] * std::exp(notes.of(r, worker)[at] - d.top);
  return d;
}

// What an op finds of the largest logits, in one block, so that it is allocated and downloaded at once.
class LargestLogits {
 public:
  LargestLogits(Backend& backend, int64_t R, int64_t k) : R_(R), k_(k), type_(backend.parameter()) {
    there_ = std::make_shared<Storage>(bytes(), backend.memory());
    op = views(there_);
  }
  struct Views {
    Tensor denominator, values, columns;  // as in Backend::top_logits
  };
  // Waits for the op; the same in the host's memory.
  Views on_host() const {
    if (there_->memory().host()) return op;
    const auto here = std::make_shared<Storage>(bytes());
    there_->memory().download(here->data(), there_->data(), bytes());
    return views(here);
  }
  Views op;  // for the op to write

 private:
  int64_t bytes() const { return R_ * (2 * size_of(DType::f64) + k_ * (size_of(type_) + size_of(DType::i32))); }
  Views views(const std::shared_ptr<Storage>& storage) const {
    std::byte* const values = storage->data() + R_ * 2 * size_of(DType::f64);
    return {Tensor(storage, storage->data(), {R_, 2}, DType::f64), Tensor(storage, values, {R_, k_}, type_),
            Tensor(storage, values + R_ * k_ * size_of(type_), {R_, k_}, DType::i32)};
  }
  int64_t R_, k_;
  DType type_;
  std::shared_ptr<Storage> there_;
};

}  // namespace

Tensor logits_of(Backend& backend, const OutputProduct& output) {
  const Tensor logits({output.x.rows(), output.w->out}, backend.parameter(), backend.memory());
  backend.linear(output.x, *output.w, output.b, logits, Activation::none, Write::overwrite);
  if (output.bound > 0) backend.clamp(logits, output.bound, logits, {});
  return logits.rows(0, output.rows);
}

void log_softmax_top_k(Backend& backend, const OutputProduct& output, const VocabularyShard& shard, int64_t k, std::vector<float>& values,
                       std::vector<int32_t>& tokens) {
  const int64_t R = output.rows, own = std::min(k, output.w->out);
  const LargestLogits largest(backend, R, own);
  backend.linear_top_logits(output.x, *output.w, output.b, output.bound, own, largest.op.values, largest.op.columns,
                            largest.op.denominator);
  const LargestLogits::Views found = largest.on_host();
  const std::vector<double> z = found.values.to_doubles(), denominators = found.denominator.to_doubles();
  std::vector<int32_t> columns(static_cast<size_t>(R * own));
  found.columns.read<int32_t>(columns);
  values.resize(static_cast<size_t>(R * k));
  tokens.resize(values.size());
  if (!is_spread(shard.group)) {
    tokens = columns;
    for (int64_t r = 0; r < R; ++r) {
      const double log_sum = denominators[2 * r] + std::log(denominators[2 * r + 1]);
      for (int64_t i = r * k; i < (r + 1) * k; ++i) values[i] = static_cast<float>(z[i] - log_sum);
    }
    return;
  }
  Notes notes(*shard.group, R, 2 * k + 2);
  for (int64_t r = 0; r < R; ++r) {
    const std::span<double> note = notes.own(r);
    for (int64_t i = 0; i < k; ++i) {
      note[2 * i] = i < own ? z[r * own + i] : -INFINITY;
      note[2 * i + 1] = i < own ? static_cast<double>(columns[r * own + i] + shard.first) : -1;
    }
    note[2 * k] = denominators[2 * r];
    note[2 * k + 1] = denominators[2 * r + 1];
  }
  shard.group->sum(notes.all);
  for (int64_t r = 0; r < R; ++r) {
    const Denominator d = denominator_of(notes, r, static_cast<size_t>(2 * k));
    std::vector<int64_t> next(static_cast<size_t>(shard.group->size()));  // of each worker's, which are sorted; the first of equals wins
    for (int64_t i = 0; i < k; ++i) {
      int64_t from = -1;
      for (int64_t w = 0; w < shard.group->size(); ++w)
        if (next[w] < k && notes.of(r, w)[2 * next[w] + 1] >= 0 &&
            (from < 0 || notes.of(r, w)[2 * next[w]] > notes.of(r, from)[2 * next[from]]))
          from = w;
      CHECK(from >= 0, "{} best tokens of {}", k, shard.vocabulary);
      const std::span<double> note = notes.of(r, from);
      values[r * k + i] = static_cast<float>(note[2 * next[from]] - d.top - std::log(d.sum));
      tokens[r * k + i] = static_cast<int32_t>(note[2 * next[from] + 1]);
      ++next[from];
    }
  }
}

void sample(Backend& backend, const Tensor& logits, const VocabularyShard& shard, const HostDeviceArray<double>& uniform,
            const Tensor& tokens) {
  if (!is_spread(shard.group)) return backend.sample(logits, uniform, tokens);
  const int64_t R = logits.rows();
  Memory& memory = backend.memory();
  const Tensor best({R, 1}, backend.parameter(), memory), token({R}, DType::i32, memory), sums({R, 2}, DType::f64, memory);
  backend.top_logits(logits, 1, best, token, sums);
  const std::vector<double> denominators = sums.to_doubles();
  Notes notes(*shard.group, R, 2);
  for (int64_t r = 0; r < R; ++r) std::copy_n(denominators.begin() + 2 * r, 2, notes.own(r).begin());
  shard.group->sum(notes.all);
  // The number falls into one worker's part of the row's probability; that worker draws the token, with the number less the parts before
  // it.
  std::vector<double> rest(static_cast<size_t>(R));
  std::vector<bool> here(static_cast<size_t>(R));
  for (int64_t r = 0; r < R; ++r) {
    const Denominator d = denominator_of(notes, r, 0);
    const auto part = [&](int64_t w) { return notes.of(r, w)[1] * std::exp(notes.of(r, w)[0] - d.top); };
    double start = 0, end = 0;
    int64_t from = 0;
    for (int64_t w = 0; w < shard.group->size() && end <= uniform[r] * d.sum; ++w)
      if (part(w) > 0) from = w, start = end, end += part(w);
    here[r] = from == notes.rank;
    if (here[r]) rest[r] = std::clamp((uniform[r] * d.sum - start) / part(from), 0.0, std::nextafter(1.0, 0.0));
  }
  backend.sample(logits, {std::move(rest), memory}, token);
  const std::vector<double> drawn = token.to_doubles();
  const Tensor result({R}, DType::f64);
  for (int64_t r = 0; r < R; ++r) doubles_of(result)[r] = here[r] ? drawn[r] + static_cast<double>(shard.first) : 0;
  shard.group->sum(result);
  tokens.from_doubles(result.to_doubles());
}

}  // namespace starling
