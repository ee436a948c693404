#include "strategies/embedding_exchange.h"

#include <numeric>

namespace starling {
double dense_exchange_bytes(int64_t V, int64_t D, int64_t element, int N) {
  return 2.0 * (N - 1) / N * static_cast<double>(V * D * element);
}
double rows_exchange_bytes(int64_t rows, int64_t D, int64_t element, int N) {
  return static_cast<double>(N - 1) / N * static_cast<double>(rows * (D + 1) * element);
}
double assumed_sparse_buffer_bytes(int64_t rows, int64_t D, int64_t element, int N) {
  return static_cast<double>(N) * static_cast<double>(rows * (D * element + 8));
}

RowExchange::RowExchange(Communicator& comm, FlatOps& flat, const Tensor& gradient, int64_t front, const std::vector<int64_t>& counts)
    : flat_(&flat), gradient_(gradient), front_(front), rank_(static_cast<size_t>(comm.rank())) {
  const int64_t width = gradient.columns() + front;
  offsets_.push_back(0);
  for (const int64_t n : counts) offsets_.push_back(offsets_.back() + n * width);
  all_ = Tensor({offsets_.back() / width, width}, gradient.dtype(), gradient.memory());
}

Tensor RowExchange::own_rows(size_t rows) const {
  const int64_t width = all_.columns(), begin = offsets_[rank_] / width, end = offsets_[rank_ + 1] / width;
  CHECK(end - begin == static_cast<int64_t>(rows) || !all_.has_elements(), "{} rows announced, {} there", end - begin, rows);
  return all_.rows(begin, end);
}

RowExchange RowExchange::start_rows(Communicator& comm, FlatOps& flat, const Tensor& gradient, const std::vector<int32_t>& touched,
                                    const std::vector<int64_t>& counts) {
  RowExchange e(comm, flat, gradient, 1, counts);
  const Ints rows(touched, gradient.memory());
  flat.pack_rows(gradient, rows, rows, 1, e.own_rows(touched.size()));
  e.pending_ = comm.all_gather_varying(e.all_, e.offsets_);
  return e;
}

RowExchange RowExchange::start_assumed_sparse(Communicator& comm, FlatOps& flat, const Tensor& gradient, const TokenGradients& tokens,
                                              bool dense, const std::vector<int64_t>& counts) {
  const int64_t front = 8 / size_of(gradient.dtype());  // a 64-bit index
  RowExchange e(comm, flat, gradient, front, counts);
  const int64_t rows = dense ? gradient.rows() : 0;
  const Tensor own = e.own_rows(static_cast<size_t>(rows) + tokens.tokens.size());
  if (dense) {
    std::vector<int32_t> number(static_cast<size_t>(rows));
    std::iota(number.begin(), number.end(), 0);
    flat.pack_rows(gradient, {}, Ints(std::move(number), gradient.memory()), front, own.rows(0, rows));
  }
  const Ints all(tokens.tokens, gradient.memory());
  int64_t at = 0;
  for (const Tensor& t : tokens.rows) {
    flat.pack_rows(t, {}, all.part(at, t.rows()), front, own.rows(rows + at, rows + at + t.rows()));
    at += t.rows();
  }
  e.pending_ = comm.all_gather_varying(e.all_, e.offsets_);
  return e;
}

RowExchange RowExchange::start_lookups(Communicator& comm, FlatOps& flat, const Tensor& gradient, const TokenGradients& tokens,
                                       const std::vector<int32_t>& touched, const std::vector<int64_t>& counts) {
  RowExchange e(comm, flat, gradient, 1, counts);
  e.on_top_ = true;
  std::vector<int32_t> place(static_cast<size_t>(gradient.rows()), -1);
  for (size_t i = 0; i < touched.size(); ++i) place[static_cast<size_t>(touched[i])] = static_cast<int32_t>(i);
  const Tensor own = e.own_rows(touched.size());
  flat.pack_rows({}, {}, Ints(touched, gradient.memory()), 1, own);
  size_t token = 0;
  for (const Tensor& t : tokens.rows) {
    std::vector<int32_t> at;
    for (int64_t r = 0; r < t.rows(); ++r) {
      at.push_back(place[static_cast<size_t>(tokens.tokens[token++])]);
      CHECK(at.back() >= 0, "token {} was looked up but not announced", tokens.tokens[token - 1]);
    }
    flat.add_to_rows(t, Ints(std::move(at), gradient.memory()), 1, own);
  }
  e.pending_ = comm.all_gather_varying(e.all_, e.offsets_);
  return e;
}

void RowExchange::add_up() {
  if (!on_top_) gradient_.zero();
  flat_->add_rows(all_, front_, gradient_);
}

}  // namespace starling
