#include "strategies/embedding_exchange.h"

#include <algorithm>
#include <numeric>

namespace starling {
double dense_exchange_bytes(int64_t V, int64_t D, int64_t element, int N) {
  return 2.0 * (N - 1) / N * static_cast<double>(V * D * element);
}
double assumed_sparse_buffer_bytes(int64_t rows, int64_t D, int64_t element, int N) {
  return static_cast<double>(N) * static_cast<double>(rows * (D * element + 8));
}

SharedRows::SharedRows(FlatOps& flat, const Tensor& gradient, std::vector<int32_t> rows)
    : flat_(&flat), gradient_(gradient), rows_(std::move(rows)) {
  values_ = Tensor({static_cast<int64_t>(rows_.size()), gradient.columns()}, gradient.dtype(), gradient.memory());
}

void SharedRows::take() {
  const Ints rows(rows_, gradient_.memory());
  flat_->pack_rows(gradient_, rows, rows, 0, values_);
}

void SharedRows::take(const TokenGradients& tokens) {
  values_.zero();
  size_t token = 0;
  for (const Tensor& t : tokens.rows) {
    std::vector<int32_t> at;
    for (int64_t r = 0; r < t.rows(); ++r, ++token) {
      const auto place = std::lower_bound(rows_.begin(), rows_.end(), tokens.tokens[token]);
      CHECK(place != rows_.end() && *place == tokens.tokens[token], "token {} was looked up but not announced", tokens.tokens[token]);
      at.push_back(static_cast<int32_t>(place - rows_.begin()));
    }
    flat_->add_to_rows(t, at, values_);
  }
}

std::vector<Owned> SharedRows::parts(std::span<const Owned> of_table) const {
  const int64_t D = gradient_.columns();
  const auto here = [&](int64_t element) {
    const auto row = std::lower_bound(rows_.begin(), rows_.end(), element / D);
    return (row - rows_.begin()) * D + (row != rows_.end() && *row == element / D ? element % D : 0);
  };
  std::vector<Owned> parts;
  for (const Owned& o : of_table)
    if (const Range range{here(o.range.begin), here(o.range.end)}; range.count() > 0) parts.push_back({range, o.rank});
  return parts;
}

void SharedRows::put() {
  gradient_.zero();
  add();
}

void SharedRows::add() { flat_->add_to_rows(values_, rows_, gradient_); }

AssumedSparseExchange::AssumedSparseExchange(Communicator& comm, FlatOps& flat, const Tensor& gradient, const TokenGradients& tokens,
                                             bool dense, const std::vector<int64_t>& counts)
    : flat_(&flat), gradient_(gradient), front_(8 / size_of(gradient.dtype())) {  // a 64-bit index
  const int64_t width = gradient.columns() + front_, rows = dense ? gradient.rows() : 0;
  std::vector<int64_t> offsets{0};
  for (const int64_t n : counts) offsets.push_back(offsets.back() + n * width);
  all_ = Tensor({offsets.back() / width, width}, gradient.dtype(), gradient.memory());
  const auto rank = static_cast<size_t>(comm.rank());
  const int64_t announced = counts[rank], there = rows + static_cast<int64_t>(tokens.tokens.size());
  CHECK(announced == there || !all_.has_elements(), "{} rows announced, {} there", announced, there);
  const Tensor own = all_.rows(offsets[rank] / width, offsets[rank + 1] / width);
  if (dense) {
    std::vector<int32_t> number(static_cast<size_t>(rows));
    std::iota(number.begin(), number.end(), 0);
    flat.pack_rows(gradient, {}, Ints(std::move(number), gradient.memory()), front_, own.rows(0, rows));
  }
  const Ints numbers(tokens.tokens, gradient.memory());
  int64_t at = 0;
  for (const Tensor& t : tokens.rows) {
    flat.pack_rows(t, {}, numbers.part(at, t.rows()), front_, own.rows(rows + at, rows + at + t.rows()));
    at += t.rows();
  }
  pending_ = comm.all_gather_varying(all_, offsets);
}

void AssumedSparseExchange::add_up() {
  gradient_.zero();
  flat_->add_rows(all_, front_, gradient_);
}

}  // namespace starling
