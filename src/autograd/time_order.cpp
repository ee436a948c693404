#include "autograd/time_order.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "base/range.h"

namespace starling {
namespace {

// Sentences by falling length, and the lengths.
struct ByLength {
  std::vector<int32_t> sentences;
  std::vector<int32_t> length;
};
ByLength by_length(const PackedTokens& packed) {
  ByLength sorted{std::vector<int32_t>(static_cast<size_t>(packed.sentences())), {}};
  std::iota(sorted.sentences.begin(), sorted.sentences.end(), 0);
  const auto length = [&](int32_t b) { return packed.offsets[b + 1] - packed.offsets[b]; };
  std::stable_sort(sorted.sentences.begin(), sorted.sentences.end(), [&](int32_t a, int32_t b) { return length(a) > length(b); });
  for (const int32_t b : sorted.sentences) sorted.length.push_back(length(b));
  return sorted;
}

// TimeOrder::step of sentences whose lengths fall.
std::vector<int32_t> first_rows(const std::vector<int32_t>& length) {
  std::vector<int32_t> step{0};
  size_t running = length.size();
  for (int32_t t = 0;; ++t) {
    while (running > 0 && length[running - 1] <= t) --running;
    if (running == 0) return step;
    step.push_back(step.back() + static_cast<int32_t>(running));
  }
}

// The step that ends each piece.
std::vector<int64_t> piece_ends(const std::vector<int32_t>& step, int64_t pieces) {
  const int64_t T = static_cast<int64_t>(step.size()) - 1, K = std::min(pieces, T);
  std::vector<int64_t> ends;
  for (int64_t begin = 0, i = 1; i <= K; ++i) {
    // The step that begins nearest to i / K of the rows, and leaves a step for each piece behind it.
    const int64_t least = begin + 1, most = T - (K - i);
    int64_t end = least;
    const auto from_ideal = [&](int64_t t) { return std::abs(step[t] * K - step.back() * i); };
    while (end < most && from_ideal(end + 1) <= from_ideal(end)) ++end;
    ends.push_back(end);
    begin = end;
  }
  return ends;
}

// An order whose steps and packed rows are known.
void place_rows(Tape& tape, TimeOrder& order, std::vector<int32_t> packed, size_t packed_rows, int64_t multiple) {
  const auto rows = static_cast<size_t>(round_up(std::max<int64_t>(order.tokens(), 1), multiple));
  packed.resize(rows, -1);
  std::vector<int32_t> row_of(packed_rows, -1), earlier(rows, -1), later(rows, -1);
  for (int32_t r = 0; r < order.tokens(); ++r) row_of[packed[r]] = r;
  for (int64_t t = 1; t < order.steps(); ++t)
    for (int32_t i = 0; i < order.count(t); ++i) {
      const int32_t here = order.step[t] + i, there = order.step[t - 1] + i;
      earlier[here] = there;
      later[there] = here;
    }
  order.row_of = tape.upload(std::move(row_of));
  order.packed = tape.upload(std::move(packed));
  if (tape.training()) {
    order.earlier = tape.upload(std::move(earlier));
    order.later = tape.upload(std::move(later));
  }
}

// Steps [begin, end).
TimeOrder time_piece(Tape& tape, const TimeOrder& whole, int64_t begin, int64_t end, int64_t multiple) {
  TimeOrder piece;
  piece.first_row = whole.step[begin];
  piece.before = whole.count(begin - 1);
  piece.after = whole.count(end);
  for (int64_t t = begin; t <= end; ++t) piece.step.push_back(whole.step[t] - whole.step[begin]);
  const auto packed = whole.packed.part(piece.first_row, piece.tokens());
  place_rows(tape, piece, {packed.begin(), packed.end()}, whole.row_of.size(), multiple);
  return piece;
}

void zero_behind(const Tensor& x, int64_t used) {
  if (used < x.rows()) x.rows(used, x.rows()).zero();
}

}  // namespace

TimeOrder time_order(Tape& tape, const PackedTokens& sentences, int64_t multiple) {
  const ByLength sorted = by_length(sentences);
  TimeOrder order;
  order.step = first_rows(sorted.length);
  std::vector<int32_t> packed;
  for (int32_t t = 0; t < order.steps(); ++t)
    for (int64_t r = 0; r < order.count(t); ++r) packed.push_back(sentences.offsets[sorted.sentences[r]] + t);
  place_rows(tape, order, std::move(packed), static_cast<size_t>(round_up(std::max<int64_t>(sentences.count(), 1), multiple)), multiple);
  return order;
}

std::vector<TimeOrder> time_pieces(Tape& tape, const TimeOrder& whole, int64_t pieces, int64_t multiple) {
  std::vector<TimeOrder> all;
  int64_t begin = 0;
  for (const int64_t end : piece_ends(whole.step, pieces)) {
    all.push_back(time_piece(tape, whole, begin, end, multiple));
    begin = end;
  }
  return all;
}

std::vector<int64_t> piece_tokens(const PackedTokens& sentences, int64_t pieces) {
  const std::vector<int32_t> step = first_rows(by_length(sentences).length);
  std::vector<int64_t> tokens;
  int64_t begin = 0;
  for (const int64_t end : piece_ends(step, pieces)) {
    tokens.push_back(step[end] - step[begin]);
    begin = end;
  }
  return tokens;
}

RowKeys piece_keys(Tape& tape, const TimeOrder& piece, const RowKeys& whole) {
  if (!tape.training()) return {};
  return {piece_numbers(tape, piece, whole.sentence, 0xffffffffu), piece_numbers(tape, piece, whole.position, 0u)};
}

Var take_piece(const Var& x, const TimeOrder& piece) {
  Tape& tape = *x.tape;
  Backend& backend = tape.backend();
  const int64_t n = piece.tokens(), begin = piece.first_row, end = begin + n;
  const Tensor y = tape.allocate({piece.rows(), x.value.columns()}, x.value.dtype());
  y.rows(0, n).copy_from(x.value.rows(begin, end));
  zero_behind(y, n);
  return tape.record(y, [=, &tape, &backend](const Tensor& dy) {
    const auto dx = tape.gradient(x);
    if (dx.write == Write::overwrite) dx.tensor.zero();
    backend.add(dy.rows(0, n), dx.tensor.rows(begin, end));
  });
}

Var join_pieces(const std::vector<Var>& parts, const std::vector<TimeOrder>& pieces, const TimeOrder& whole) {
  CHECK(!parts.empty() && parts.size() == pieces.size(), "{} parts for {} pieces", parts.size(), pieces.size());
  Tape& tape = *parts[0].tape;
  Backend& backend = tape.backend();
  const Tensor y = tape.allocate({whole.rows(), parts[0].value.columns()}, parts[0].value.dtype());
  std::vector<Range> rows;  // of each part in y
  for (size_t i = 0; i < parts.size(); ++i) {
    rows.push_back({pieces[i].first_row, pieces[i].first_row + pieces[i].tokens()});
    y.rows(rows[i].begin, rows[i].end).copy_from(parts[i].value.rows(0, rows[i].count()));
  }
  zero_behind(y, whole.tokens());
  return tape.record(y, [=, &tape, &backend](const Tensor& dy) {
    for (size_t i = 0; i < parts.size(); ++i) {
      const auto dx = tape.gradient(parts[i]);
      const Tensor from = dy.rows(rows[i].begin, rows[i].end), to = dx.tensor.rows(0, rows[i].count());
      if (dx.write == Write::accumulate) {
        backend.add(from, to);
        continue;
      }
      to.copy_from(from);
      zero_behind(dx.tensor, rows[i].count());
    }
  });
}

Var move_to(Tape& tape, const Var& x) {
  if (x.tape == &tape) return x;
  return tape.record(x.value, [x, &tape](const Tensor& dy) {
    if (&x.tape->arena() == &tape.arena()) return x.tape->pass_gradient(x, dy);
    const Tensor kept = x.tape->allocate_like(dy);  // dy goes with its tape's arena
    kept.copy_from(dy);
    x.tape->pass_gradient(x, kept);
  });
}

}  // namespace starling
