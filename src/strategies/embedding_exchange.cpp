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

struct Gathered {
  Tensor all;
  std::vector<int64_t> offsets;  // in elements, by rank
};

Gathered allocate(const std::vector<int64_t>& counts, int64_t width, DType type, bool phantom = false) {
  Gathered g;
  int64_t rows = 0;
  g.offsets.push_back(0);
  for (const int64_t n : counts) rows += n, g.offsets.push_back(rows * width);
  g.all = phantom ? Tensor::phantom({rows, width}, type) : Tensor({rows, width}, type);
  return g;
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

RowExchange RowExchange::start_rows(Communicator& comm, const Tensor& gradient, const std::vector<int32_t>& touched,
                                    const std::vector<int64_t>& counts) {
  RowExchange e;
  e.gradient_ = gradient;
  const int64_t D = gradient.columns();
  Gathered g = allocate(counts, D + 1, gradient.dtype());
  CHECK(counts[static_cast<size_t>(comm.rank())] == static_cast<int64_t>(touched.size()), "{} rows announced, {} there",
        counts[static_cast<size_t>(comm.rank())], touched.size());
  by_type(gradient.dtype(), [&]<class T>(T) {
    T* to = g.all.data<T>() + g.offsets[static_cast<size_t>(comm.rank())];
    for (const int32_t row : touched) put_row(to, row, 1, gradient.data<T>() + row * D, D), to += D + 1;
  });
  e.all_ = g.all;
  e.pending_ = comm.all_gather_varying(g.all, g.offsets);
  return e;
}

RowExchange RowExchange::start_assumed_sparse(Communicator& comm, const Tensor& gradient, const TokenGradients& tokens, bool dense,
                                              const std::vector<int64_t>& counts) {
  RowExchange e;
  e.gradient_ = gradient;
  e.index_elements_ = 8 / size_of(gradient.dtype());
  const int64_t D = gradient.columns(), width = D + e.index_elements_;
  Gathered g = allocate(counts, width, gradient.dtype());
  by_type(gradient.dtype(), [&]<class T>(T) {
    T* to = g.all.data<T>() + g.offsets[static_cast<size_t>(comm.rank())];
    const auto put = [&](int64_t index, const T* values) { put_row(to, index, e.index_elements_, values, D), to += width; };
    for (int64_t row = 0; dense && row < gradient.rows(); ++row) put(row, gradient.data<T>() + row * D);
    size_t token = 0;
    for (const Tensor& rows : tokens.rows)
      for (int64_t i = 0; i < rows.rows(); ++i) put(tokens.tokens[token++], rows.data<T>() + i * D);
    const int64_t end = g.offsets[static_cast<size_t>(comm.rank()) + 1];
    CHECK(to == g.all.data<T>() + end, "rows announced and rows there differ by {} elements", to - (g.all.data<T>() + end));
  });
  e.all_ = g.all;
  e.pending_ = comm.all_gather_varying(g.all, g.offsets);
  return e;
}

RowExchange RowExchange::start_lookups(Communicator& comm, const Tensor& gradient, const TokenGradients& tokens,
                                       const std::vector<int32_t>& touched, const std::vector<int64_t>& counts) {
  RowExchange e;
  e.gradient_ = gradient;
  e.on_top_ = true;
  const int64_t D = gradient.columns(), width = D + 1;
  Gathered g = allocate(counts, width, gradient.dtype());
  CHECK(counts[static_cast<size_t>(comm.rank())] == static_cast<int64_t>(touched.size()), "{} rows announced, {} there",
        counts[static_cast<size_t>(comm.rank())], touched.size());
  std::vector<int32_t> place(static_cast<size_t>(gradient.rows()), -1);
  for (size_t i = 0; i < touched.size(); ++i) place[static_cast<size_t>(touched[i])] = static_cast<int32_t>(i);
  by_type(gradient.dtype(), [&]<class T>(T) {
    T* own = g.all.data<T>() + g.offsets[static_cast<size_t>(comm.rank())];
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
  e.all_ = g.all;
  e.pending_ = comm.all_gather_varying(g.all, g.offsets);
  return e;
}

RowExchange RowExchange::start_phantom(Communicator& comm, const Tensor& gradient, int64_t index_elements,
                                       const std::vector<int64_t>& counts) {
  RowExchange e;
  const Gathered g = allocate(counts, gradient.columns() + index_elements, gradient.dtype(), true);
  e.all_ = g.all;
  e.pending_ = comm.all_gather_varying(g.all, g.offsets);
  return e;
}

void RowExchange::add_up() {
  if (!gradient_) return;
  if (!on_top_) gradient_.zero();
  by_type(gradient_.dtype(), [&]<class T>(T) { add_rows<T>(all_, index_elements_, gradient_); });
}

}  // namespace starling
