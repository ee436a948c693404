// Embeddings, layer norm, dropout, and what goes row by row or element by element.
#include <cstring>

#include "backend/cpu/cpu_backend.h"
#include "backend/reference/reference.h"

namespace starling {
namespace {

constexpr int64_t kBytes = 32768;  // copied: a few microseconds, and less is not worth a second thread

}  // namespace

void CpuBackend::extend_signal(int64_t positions, int64_t D) {
  if (signal_width_ == D && signal_rows_ >= positions) return;
  positions = std::max<int64_t>(positions * 3 / 2, 256);
  signal_.resize(static_cast<size_t>(positions * D + 64));  // kernels may read past the last row
  signal_width_ = D;
  signal_rows_ = positions;
  for (int64_t p = 0; p < positions; ++p)
    for (int64_t c = 0; c < D; ++c) signal_[p * D + c] = static_cast<float>(sinusoid(p, c, D));
}

void CpuBackend::embed(const Ints& tokens, const Ints& positions, const Tensor& table, double scale, const Dropout& d, const Tensor& y) {
  const int64_t D = y.columns();
  if (!positions.empty()) extend_signal(*std::max_element(positions.begin(), positions.end()) + 1, D);
  ranges(tokens.size(), 16, [&](int64_t begin, int64_t end, int) {
    kernels_.embed(tokens.data(), kPaddingRow, positions.empty() ? nullptr : positions.data(), table.data<float>(), signal_.data(),
                   static_cast<float>(scale), mask_of(d), y.raw(), D, begin, end);
  });
}

void CpuBackend::embed_backward(const Ints& tokens, double scale, const Dropout& d, const Tensor& dy, const Tensor& dtable) {
  fixed_ranges(dy.columns(), 128, [&](int64_t begin, int64_t end, int) {
    kernels_.embed_backward(tokens.data(), tokens.size(), static_cast<float>(scale), mask_of(d), dy.raw(), dtable.data<float>(),
                            dy.columns(), begin, end);
  });
}

void CpuBackend::layer_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, double epsilon, const Tensor& y,
                            const Tensor& statistics) {
  ranges(x.rows(), 8, [&](int64_t begin, int64_t end, int) {
    kernels_.layer_norm(x.raw(), gamma.data<float>(), beta.data<float>(), static_cast<float>(epsilon), y.raw(), statistics.data<float>(),
                        x.columns(), begin, end);
  });
}

void CpuBackend::layer_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& gamma, const Tensor& statistics, const Tensor& dx,
                                     Write dx_write, const Tensor& dgamma, const Tensor& dbeta, Write parameter_write) {
  const int64_t D = x.columns();
  const Chunks chunks = chunks_of(x.rows(), 8);
  std::vector<float>& parts = partial_;  // of dgamma, by chunk, then of dbeta
  parts.assign(static_cast<size_t>(2 * D * chunks.count), 0.0f);
  take_chunks(threads_, chunks.count, [&](int64_t c, int) {
    kernels_.layer_norm_backward(dy.raw(), x.raw(), gamma.data<float>(), statistics.data<float>(), dx.raw(), dx_write == Write::accumulate,
                                 parts.data() + c * D, parts.data() + (chunks.count + c) * D, D, chunks.begin(c), chunks.begin(c + 1));
  });
  if (parameter_write == Write::overwrite) {
    dgamma.zero();
    dbeta.zero();
  }
  fixed_ranges(D, 64, [&](int64_t begin, int64_t end, int) {
    wide_.column_sums(parts.data(), dgamma.data<float>(), chunks.count, D, begin, end);
    wide_.column_sums(parts.data() + chunks.count * D, dbeta.data<float>(), chunks.count, D, begin, end);
  });
}

void CpuBackend::add_dropout(const Tensor& x, const Tensor& s, const Dropout& d, const Tensor& y) {
  ranges(s.rows(), 8,
         [&](int64_t begin, int64_t end, int) { kernels_.add_dropout(x.raw(), s.raw(), mask_of(d), y.raw(), s.columns(), begin, end); });
}

void CpuBackend::dropout_backward(const Tensor& dy, const Dropout& d, const Tensor& ds, Write write) {
  add_dropout(write == Write::accumulate ? ds : Tensor(), dy, d, ds);
}

void CpuBackend::relu_dropout_backward(const Tensor& h, double scale, const Tensor& dh, const Tensor& db, Write db_write) {
  ranges(h.count(), 1024, [&](int64_t begin, int64_t end, int) {
    kernels_.relu_dropout_backward(h.raw(), static_cast<float>(scale), dh.raw(), begin, end);
  });
  if (db) column_sums(dh, db, db_write);
}

void CpuBackend::activate(const Tensor& x, Activation a, const Tensor& y) {
  ranges(x.count(), 1024, [&](int64_t begin, int64_t end, int) { kernels_.activate(x.raw(), a, y.raw(), begin, end); });
}

void CpuBackend::activate_backward(const Tensor& x, Activation a, const Tensor& dy) {
  ranges(x.count(), 1024, [&](int64_t begin, int64_t end, int) { kernels_.activate_backward(x.raw(), a, dy.raw(), begin, end); });
}

void CpuBackend::add(const Tensor& x, const Tensor& y) {
  ranges(x.count(), 1024, [&](int64_t begin, int64_t end, int) { kernels_.add(x.raw(), y.raw(), begin, end); });
}

void CpuBackend::gather_rows(const Tensor& x, const Ints& index, const Tensor& y, Write write) {
  CHECK(x.dtype() == y.dtype() && x.columns() == y.columns(), "rows of {} into {}", x.shape().text(), y.shape().text());
  const int64_t D = x.columns(), bytes = D * size_of(x.dtype());
  const auto add = write == Write::accumulate ? loops(x).add : nullptr;
  ranges(index.size(), 1 + kBytes / (bytes + 1), [&](int64_t begin, int64_t end, int) {
    for (int64_t n = begin; n < end; ++n) {
      std::byte* out = y.raw() + n * bytes;
      if (add) {
        if (index[n] >= 0) add(x.raw() + index[n] * bytes, out, 0, D);
      } else if (index[n] < 0) {
        std::memset(out, 0, bytes);
      } else {
        std::memcpy(out, x.raw() + index[n] * bytes, bytes);
      }
    }
  });
}

void CpuBackend::scatter_rows(const Tensor& x, int64_t x_column, const Ints& index, const Tensor& y) {
  const auto n = static_cast<int64_t>(index.size());
  CHECK(x.dtype() == y.dtype() && n <= x.rows() && x_column + y.columns() <= x.columns(), "{} rows of {} from column {} into {}", n,
        x.shape().text(), x_column, y.shape().text());
  const int64_t element = size_of(x.dtype()), bytes = y.columns() * element;
  ranges(n, 1 + kBytes / (bytes + 1), [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) std::memcpy(y.raw() + index[r] * bytes, x.raw() + (r * x.columns() + x_column) * element, bytes);
  });
}

void CpuBackend::copy_columns(const Tensor& x, int64_t x_column, const Tensor& y, int64_t y_column, int64_t width, Write write) {
  CHECK(x.dtype() == y.dtype() && x.rows() <= y.rows() && x_column + width <= x.columns() && y_column + width <= y.columns(),
        "{} columns from {} of {} to {} of {}", width, x_column, x.shape().text(), y_column, y.shape().text());
  const int64_t element = size_of(x.dtype());
  const auto add = write == Write::accumulate ? loops(x).add : nullptr;
  ranges(x.rows(), 1 + kBytes / (width * element + 1), [&](int64_t begin, int64_t end, int) {
    for (int64_t n = begin; n < end; ++n) {
      const std::byte* in = x.raw() + (n * x.columns() + x_column) * element;
      std::byte* out = y.raw() + (n * y.columns() + y_column) * element;
      if (add)
        add(in, out, 0, width);
      else
        std::memcpy(out, in, width * element);
    }
  });
}

void CpuBackend::clamp(const Tensor& x, double bound, const Tensor& y, const Tensor& clipped) {
  CHECK(x.dtype() == y.dtype(), "clamp of {} into {}", name_of(x.dtype()), name_of(y.dtype()));
  const auto clamp = loops(x).clamp;
  add_number(clipped, counted(x.count(), 4096,
                              [&](int64_t begin, int64_t end) { return clamp(x.raw(), static_cast<float>(bound), y.raw(), begin, end); }));
}

void CpuBackend::clamp_backward(const Tensor& x, double bound, const Tensor& dy, const Tensor& dx, Write write) {
  CHECK(x.dtype() == dx.dtype() && x.dtype() == dy.dtype(), "clamp of {}, gradients {} and {}", name_of(x.dtype()), name_of(dy.dtype()),
        name_of(dx.dtype()));
  const auto backward = loops(x).clamp_backward;
  ranges(x.count(), 4096, [&](int64_t begin, int64_t end, int) {
    backward(x.raw(), static_cast<float>(bound), dy.raw(), dx.raw(), write == Write::accumulate, begin, end);
  });
}

}  // namespace starling
