// Embeddings, layer norm, dropout, and what goes row by row or element by element.
#include "backend/cuda/kernels/rows.h"

#include <algorithm>
#include <numeric>

#include "backend/cuda/cuda_backend.h"
#include "backend/reference/reference.h"

namespace starling::STARLING_CUDA {

void CudaBackend::embed(const Ints& tokens, const Ints& positions, const Tensor& table, double scale, const Dropout& d, const Tensor& y) {
  const int64_t D = y.columns();
  if (!positions.empty()) {
    const int64_t needed = *std::max_element(positions.begin(), positions.end()) + 1;
    if (!signal_ || signal_.columns() != D || signal_.rows() < needed) {
      const int64_t rows = std::max<int64_t>(needed * 3 / 2, 256);
      std::vector<double> values(static_cast<size_t>(rows * D));
      for (int64_t i = 0; i < rows * D; ++i) values[static_cast<size_t>(i)] = sinusoid(i / D, i % D, D);
      signal_ = Tensor({rows, D}, DType::f32, memory());
      signal_.from_doubles(values);
    }
  }
  kernels::embed(type(),
                 {at(tokens), at(positions), at<float>(table), positions.empty() ? nullptr : at<float>(signal_), static_cast<float>(scale),
                  mask_of(d), at(y), static_cast<int64_t>(tokens.size()), D, kPaddingRow},
                 stream());
}

void CudaBackend::embed_backward(const Ints& tokens, double scale, const Dropout& d, const Tensor& dy, const Tensor& dtable) {
  // Rows grouped by token, in order within a group, so that sums have a fixed order and no two threads add to one row of the table. The
  // groups of frequent tokens are cut into pieces, whose sums are added in a second step.
  constexpr size_t kPiece = 32;
  std::vector<int32_t> order;
  for (int32_t n = 0; n < static_cast<int32_t>(tokens.size()); ++n)
    if (tokens[n] >= 0) order.push_back(n);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return tokens[a] < tokens[b]; });
  std::vector<int32_t> token, first, part, cut_token, cut_first;
  int32_t parts = 0;
  for (size_t begin = 0, end; begin < order.size(); begin = end) {
    const int32_t here = tokens[order[begin]];
    for (end = begin + 1; end < order.size() && tokens[order[end]] == here;) ++end;
    const bool cut = end - begin > kPiece;
    if (cut) {
      cut_token.push_back(here);
      cut_first.push_back(parts);
    }
    for (size_t at = begin; at < end; at += kPiece) {
      token.push_back(here);
      first.push_back(static_cast<int32_t>(at));
      part.push_back(cut ? parts++ : -1);
    }
  }
  const auto groups = static_cast<int64_t>(token.size()), cuts = static_cast<int64_t>(cut_token.size());
  if (groups == 0) return;
  first.push_back(static_cast<int32_t>(order.size()));
  cut_first.push_back(parts);
  std::vector<int32_t> all;
  for (const std::vector<int32_t>* list : {&token, &first, &part, &cut_token, &cut_first, &order})
    all.insert(all.end(), list->begin(), list->end());
  const int32_t* const sent = send(0, all);
  const int32_t *const sent_part = sent + 2 * groups + 1, *const sent_cut = sent_part + groups;
  auto* const sums = parts > 0 ? scratch<float>(1, parts * dy.columns()) : nullptr;
  const auto factor = static_cast<float>(scale);
  kernels::embed_backward(
      type(),
      {sent, sent + groups, sent_cut + 2 * cuts + 1, sent_part, groups, factor, mask_of(d), at(dy), at<float>(dtable), sums, dy.columns()},
      stream());
  kernels::add_to_table({sent_cut, sent_cut + cuts, cuts, factor, sums, at<float>(dtable), dy.columns()}, stream());
}

void CudaBackend::layer_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, double epsilon, const Tensor& y,
                             const Tensor& statistics) {
  kernels::layer_norm(
      type(), {at(x), at<float>(gamma), at<float>(beta), static_cast<float>(epsilon), at(y), at<float>(statistics), x.rows(), x.columns()},
      stream());
}

void CudaBackend::layer_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& gamma, const Tensor& statistics, const Tensor& dx,
                                      Write dx_write, const Tensor& dgamma, const Tensor& dbeta, Write parameter_write) {
  const int64_t N = x.rows(), D = x.columns(), parts = kernels::norm_parts(N);
  auto* const sums = scratch<float>(0, parts * 2 * D);
  kernels::layer_norm_backward(
      type(), {at(dy), at(x), at<float>(gamma), at<float>(statistics), at(dx), dx_write == Write::accumulate, sums, N, D}, stream());
  const bool accumulate = parameter_write == Write::accumulate;
  kernels::add_parts({sums, parts, 2 * D, at<float>(dgamma), accumulate, D, at<float>(dbeta)}, stream());
}

void CudaBackend::add_dropout(const Tensor& x, const Tensor& s, const Dropout& d, const Tensor& y) {
  kernels::add_dropout(type(), {at(x), at(s), mask_of(d), at(y), s.rows(), s.columns()}, stream());
}

void CudaBackend::dropout_backward(const Tensor& dy, const Dropout& d, const Tensor& ds, Write write) {
  add_dropout(write == Write::accumulate ? ds : Tensor(), dy, d, ds);
}

void CudaBackend::relu_dropout_backward(const Tensor& h, double scale, const Tensor& dh, const Tensor& db, Write db_write) {
  if (!db) return kernels::relu_dropout_backward(type(), {at(h), at(dh), h.count(), static_cast<float>(scale)}, stream());
  add_columns({.x = at(dh), .parts = nullptr, .rows = dh.rows(), .columns = dh.columns(), .h = at(h), .factor = static_cast<float>(scale)},
              db, db_write);
}

void CudaBackend::activate(const Tensor& x, Activation a, const Tensor& y) {
  kernels::activate(type(), a, {at(x), at(y), x.count()}, stream());
}

void CudaBackend::activate_backward(const Tensor& x, Activation a, const Tensor& dy) {
  kernels::activate_backward(type(), a, {at(x), at(dy), x.count()}, stream());
}

void CudaBackend::add(const Tensor& x, const Tensor& y) { kernels::add(type(), {at(x), at(y), x.count()}, stream()); }

void CudaBackend::gather_rows(const Tensor& x, const Ints& index, const Tensor& y, Write write) {
  CHECK(x.dtype() == y.dtype() && x.columns() == y.columns(), "rows of {} into {}", x.shape().text(), y.shape().text());
  const int64_t D = x.columns();
  const kernels::CopyRows task{at(x), D, 0, at(index), at(y), D, 0, nullptr, static_cast<int64_t>(index.size()), D};
  if (write == Write::accumulate)
    kernels::add_rows(type_of(x.dtype()), task, stream());
  else
    kernels::copy_rows(size_of(x.dtype()), task, stream());
}

void CudaBackend::scatter_rows(const Tensor& x, int64_t x_column, const Ints& index, const Tensor& y) {
  const auto n = static_cast<int64_t>(index.size());
  CHECK(x.dtype() == y.dtype() && n <= x.rows() && x_column + y.columns() <= x.columns(), "{} rows of {} from column {} into {}", n,
        x.shape().text(), x_column, y.shape().text());
  kernels::copy_rows(size_of(x.dtype()), {at(x), x.columns(), x_column, nullptr, at(y), y.columns(), 0, at(index), n, y.columns()},
                     stream());
}

void CudaBackend::copy_columns(const Tensor& x, int64_t x_column, const Tensor& y, int64_t y_column, int64_t width, Write write) {
  CHECK(x.dtype() == y.dtype() && x.rows() <= y.rows() && x_column + width <= x.columns() && y_column + width <= y.columns(),
        "{} columns from {} of {} to {} of {}", width, x_column, x.shape().text(), y_column, y.shape().text());
  const kernels::CopyRows task{at(x), x.columns(), x_column, nullptr, at(y), y.columns(), y_column, nullptr, x.rows(), width};
  if (write == Write::accumulate)
    kernels::add_rows(type_of(x.dtype()), task, stream());
  else
    kernels::copy_rows(size_of(x.dtype()), task, stream());
}

void CudaBackend::clamp(const Tensor& x, double bound, const Tensor& y, const Tensor& clipped) {
  CHECK(x.dtype() == y.dtype(), "clamp of {} into {}", name_of(x.dtype()), name_of(y.dtype()));
  const int64_t parts = kernels::clamp_parts(x.count());
  auto* const counts = scratch<double>(0, parts);
  kernels::clamp(type_of(x.dtype()), {at(x), static_cast<float>(bound), at(y), counts, x.count()}, stream());
  add_counts(counts, parts, clipped);
}

void CudaBackend::clamp_backward(const Tensor& x, double bound, const Tensor& dy, const Tensor& dx, Write write) {
  CHECK(x.dtype() == dx.dtype() && x.dtype() == dy.dtype(), "clamp of {}, gradients {} and {}", name_of(x.dtype()), name_of(dy.dtype()),
        name_of(dx.dtype()));
  kernels::clamp_backward(type_of(x.dtype()), {at(x), static_cast<float>(bound), at(dy), at(dx), write == Write::accumulate, x.count()},
                          stream());
}

}  // namespace starling::STARLING_CUDA
