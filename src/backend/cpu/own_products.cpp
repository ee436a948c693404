// Matrix products by kernels of our own (kernels/products.cpp). oneDNN generates code for each number of rows, takes twice as long for a
// single row, and in gradients of weights transposes one side again and again.
#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/panels.h"

namespace starling {
namespace {

constexpr int64_t kTile = 6;                              // rows that the kernels multiply at once
constexpr int64_t kPieceRows = 192, kPiecePanels = 4;     // of a piece of y = x w
constexpr int64_t kBlockRows = 512, kBlockColumns = 512;  // of a piece of a gradient: both sides of it stay in the second level

// [0, total) in pieces of at most `most`, at multiples of `unit`, and at least `least` of them if there are as many units.
Chunks pieces(int64_t total, int64_t unit, int64_t most, int64_t least) {
  return {total, unit, std::max((total + most - 1) / most, least)};
}

// The least count, from `count` on, of which `others` times as many pieces keep all threads busy to the end.
int64_t balanced(int64_t count, int64_t others, int threads) {
  while (count * others % threads != 0 && count * others < 4 * threads) ++count;
  return count;
}

}  // namespace

std::shared_ptr<Packed> CpuBackend::pack_own(const Tensor& w, bool transposed, std::shared_ptr<Packed> reuse) {
  const int64_t in = w.dim(transposed ? 1 : 0), out = w.dim(transposed ? 0 : 1), panel = kernels_.panel_width();
  const int64_t panels = (out + panel - 1) / panel;
  auto packed = std::dynamic_pointer_cast<Panels>(reuse);
  if (!packed || packed->in != in || packed->out != out) {
    packed = std::make_shared<Panels>();
    packed->in = in;
    packed->out = out;
    packed->storage = std::make_unique<Storage>(panels * panel * in * size_of(activation_));
  }
  ranges(panels, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t p = begin; p < end; ++p) kernels_.pack_weight(w.data<float>(), transposed, in, out, p, packed->storage->data());
  });
  return packed;
}

void CpuBackend::multiply(const Tensor& x, const Packed& w, const Tensor& b, const Tensor& y, Activation activation, Write write) {
  CHECK(x.columns() == w.in && y.columns() == w.out && y.rows() == x.rows(), "{} times [{}, {}] into {}", x.shape().text(), w.in, w.out,
        y.shape().text());
  const kernels::PanelProduct product{x.raw(),
                                      w.in,
                                      static_cast<const Panels&>(w).values(),
                                      w.out,
                                      b ? b.data<float>() : nullptr,
                                      activation == Activation::relu,
                                      write == Write::accumulate,
                                      y.dtype() == DType::f32,
                                      y.raw(),
                                      w.out};
  const int64_t panels = (w.out + kernels_.panel_width() - 1) / kernels_.panel_width();
  const Chunks rows = pieces(x.rows(), kTile, kPieceRows, 1),
               columns = pieces(panels, 1, kPiecePanels, rows.count < 2 * threads_ ? 2 * threads_ : 1);
  take_chunks(threads_, rows.count * columns.count, [&](int64_t c, int) {
    const int64_t r = c / columns.count, p = c % columns.count;
    kernels_.multiply(product, rows.begin(r), rows.begin(r + 1), columns.begin(p), columns.begin(p + 1));
  });
}

// db, if not empty, gets the sums of c's columns.
void CpuBackend::own_weight_gradient(const Tensor& a, const Tensor& c, const Tensor& dw, Write write, const Tensor& db, Write db_write) {
  const int64_t P = a.columns(), Q = c.columns(), N = a.rows();
  CHECK(c.rows() == N && dw.dim(0) == P && dw.dim(1) == Q, "{} and {} into {}", a.shape().text(), c.shape().text(), dw.shape().text());
  if (N == 0 && write == Write::overwrite) dw.zero();
  if (N == 0 && db && db_write == Write::overwrite) db.zero();
  if (P == 0 || Q == 0) return;
  const Chunks columns = pieces(Q, kernels_.panel_width(), kBlockColumns, 1);
  const Chunks rows = pieces(P, kTile, kBlockRows, balanced((P + kBlockRows - 1) / kBlockRows, columns.count, threads_));
  reserve_scratch(kernels_.weight_gradient_scratch(std::min(P, kBlockRows + kTile), std::min(Q, kBlockColumns + kernels_.panel_width())));
  take_chunks(threads_, rows.count * columns.count, [&](int64_t piece, int thread) {
    const int64_t r = piece / columns.count, q = piece % columns.count, first = rows.begin(r), column = columns.begin(q);
    kernels_.weight_gradient(
        {element(a, 0, first), element(c, 0, column), P, Q, N, rows.size(r), columns.size(q), dw.data<float>() + first * Q + column, Q,
         write == Write::accumulate, db && first == 0 ? db.data<float>() + column : nullptr, db_write == Write::accumulate},
        scratch(thread));
  });
}

}  // namespace starling
