#include "strategies/embedding_exchange.h"

#include <cstring>

namespace starling {
namespace {

// Row `row` of a buffer [., width]: the index in front (as a number; exact up to 2^24 in f32), then the values.
template <class T>
void put_row(T* to, int64_t index, int64_t index_elements, const T* values, int64_t D) {
  to[0] = static_cast<T>(index);
  if (index_elements > 1) to[1] = 0;  // the second half of a 64-bit index
  std::memcpy(to + index_elements, values, static_cast<size_t>(D) * sizeof(T));
}

template <class T>
void add_rows(const Tensor& all, int64_t index_elements, const Tensor& gradient) {
  const int64_t width = all.columns(), D = gradient.columns();
  for (int64_t r = 0; r < all.rows(); ++r) {
    const T* row = all.data<T>() + r * width;
    const auto index = static_cast<int64_t>(row[0]);
    CHECK(index >= 0 && index < gradient.rows(), "row {} of {}", index, gradient.rows());
    T* to = gradient.data<T>() + index * D;
    for (int64_t i = 0; i < D; ++i) to[i] += row[index_elements + i];
  }
}

template <class F>
void by_type(DType type, F f) {
  if (type == DType::f64) return f(double{});
  CHECK(type == DType::f32, "gradients are {}", name_of(type));
  f(float{});
}

}  // namespace

double dense_exchange_bytes(int64_t V, int64_t D, int64_t element, int N) {
  return 2.0 * (N - 1) / N * static_cast<double>(V * D * element);
}
double rows_exchange_bytes(int64_t rows, int64_t D, int64_t element, int N) {
  return static_cast<double>(N - 1) / N * static_cast<double>(rows * (D + 1) * element);
}
double assumed_sparse_buffer_bytes(int64_t rows, int64_t D, int64_t element, int N) {
  return static_cast<double>(N) * static_cast<double>(rows * (D * element + 8));
}

RowExchange::RowExchange(Communicator& comm, const Tensor& gradient, int64_t index_elements, const std::vector<int64_t>& counts)
    : gradient_(gradient), index_elements_(index_elements), rank_(static_cast<size_t>(comm.rank())) {
  const int64_t width = gradient.columns() + index_elements;
  offsets_.push_back(0);
  for (const int64_t n : counts) offsets_.push_back(offsets_.back() + n * width);
  const Shape shape{offsets_.back() / width, width};
  all_ = gradient ? Tensor(shape, gradient.dtype()) : Tensor::phantom(shape, gradient.dtype());
}

template <class T>
T* RowExchange::own_rows(int64_t rows) const {
  const int64_t announced = (offsets_[rank_ + 1] - offsets_[rank_]) / all_.columns();
  CHECK(announced == rows, "{} rows announced, {} there", announced, rows);
  return all_.data<T>() + offsets_[rank_];
}

RowExchange RowExchange::start_rows(Communicator& comm, const Tensor& gradient, const std::vector<int32_t>& touched,
                                    const std::vector<int64_t>& counts) {
  RowExchange e(comm, gradient, 1, counts);
  const int64_t D = gradient.columns();
  by_type(gradient.dtype(), [&]<class T>(T) {
    T* to = e.own_rows<T>(static_cast<int64_t>(touched.size()));
    for (const int32_t row : touched) put_row(to, row, 1, gradient.data<T>() + row * D, D), to += D + 1;
  });
  e.pending_ = comm.all_gather_varying(e.all_, e.offsets_);
  return e;
}

RowExchange RowExchange::start_assumed_sparse(Communicator& comm, const Tensor& gradient, const TokenGradients& tokens, bool dense,
                                              const std::vector<int64_t>& counts) {
  RowExchange e(comm, gradient, 8 / size_of(gradient.dtype()), counts);
  const int64_t D = gradient.columns(), width = D + e.index_elements_;
  by_type(gradient.dtype(), [&]<class T>(T) {
    T* to = e.own_rows<T>(static_cast<int64_t>(tokens.tokens.size()) + (dense ? gradient.rows() : 0));
    const auto put = [&](int64_t index, const T* values) { put_row(to, index, e.index_elements_, values, D), to += width; };
    for (int64_t row = 0; dense && row < gradient.rows(); ++row) put(row, gradient.data<T>() + row * D);
    size_t token = 0;
    for (const Tensor& rows : tokens.rows)
      for (int64_t i = 0; i < rows.rows(); ++i) put(tokens.tokens[token++], rows.data<T>() + i * D);
  });
  e.pending_ = comm.all_gather_varying(e.all_, e.offsets_);
  return e;
}

RowExchange RowExchange::start_lookups(Communicator& comm, const Tensor& gradient, const TokenGradients& tokens,
                                       const std::vector<int32_t>& touched, const std::vector<int64_t>& counts) {
  RowExchange e(comm, gradient, 1, counts);
  e.on_top_ = true;
  const int64_t D = gradient.columns(), width = D + 1;
  std::vector<int32_t> place(static_cast<size_t>(gradient.rows()), -1);
  for (size_t i = 0; i < touched.size(); ++i) place[static_cast<size_t>(touched[i])] = static_cast<int32_t>(i);
  by_type(gradient.dtype(), [&]<class T>(T) {
    T* own = e.own_rows<T>(static_cast<int64_t>(touched.size()));
    for (size_t i = 0; i < touched.size(); ++i) own[static_cast<int64_t>(i) * width] = static_cast<T>(touched[i]);
    size_t token = 0;
    for (const Tensor& rows : tokens.rows)
      for (int64_t r = 0; r < rows.rows(); ++r) {
        const int32_t at = place[static_cast<size_t>(tokens.tokens[token++])];
        CHECK(at >= 0, "token {} was looked up but not announced", tokens.tokens[token - 1]);
        T* to = own + at * width + 1;
        const T* from = rows.data<T>() + r * D;
        for (int64_t i = 0; i < D; ++i) to[i] += from[i];
      }
  });
  e.pending_ = comm.all_gather_varying(e.all_, e.offsets_);
  return e;
}

RowExchange RowExchange::start_phantom(Communicator& comm, const Tensor& gradient, int64_t index_elements,
                                       const std::vector<int64_t>& counts) {
  RowExchange e(comm, gradient, index_elements, counts);
  e.pending_ = comm.all_gather_varying(e.all_, e.offsets_);
  return e;
}

void RowExchange::add_up() {
  if (!gradient_) return;
  if (!on_top_) gradient_.zero();
  by_type(gradient_.dtype(), [&]<class T>(T) { add_rows<T>(all_, index_elements_, gradient_); });
}

}  // namespace starling
