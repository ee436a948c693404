#include "backend/cpu/product_times.h"

#include <omp.h>

#include <algorithm>
#include <chrono>

#include "backend/cpu/dnnl_types.h"

namespace starling {
namespace {

using dnnl::memory;
using Type = memory::data_type;
using Tag = memory::format_tag;

// Best of several rounds of at least 2 ms each, after two calls to warm up.
template <class F>
double seconds_of(F run) {
  using Clock = std::chrono::steady_clock;
  run();
  run();
  double best = 1e30;
  for (int round = 0; round < 3; ++round) {
    const auto start = Clock::now();
    int64_t calls = 0;
    double elapsed = 0;
    do {
      run();
      ++calls;
      elapsed = std::chrono::duration<double>(Clock::now() - start).count();
    } while (elapsed < 2e-3);
    best = std::min(best, elapsed / static_cast<double>(calls));
  }
  return best;
}

memory filled(const memory::desc& md, const dnnl::engine& engine) {
  memory m(md, engine);
  auto* bytes = static_cast<uint8_t*>(m.get_data_handle());
  for (size_t i = 0, size = md.get_size(); i < size; ++i)
    bytes[i] = static_cast<uint8_t>(i % 2 ? 0x3f : 0x80);  // small normal numbers in both types
  return m;
}

double matmul_seconds(const memory::desc& a, const memory::desc& b, const memory::desc& c) {
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  const dnnl::matmul::primitive_desc description({a, b, c}, engine);
  const memory ma = filled(description.src_desc(), engine), mb = filled(description.weights_desc(), engine),
               mc(description.dst_desc(), engine);
  const dnnl::matmul product(description);
  return seconds_of([&] {
    product.execute(stream, {{DNNL_ARG_SRC, ma}, {DNNL_ARG_WEIGHTS, mb}, {DNNL_ARG_DST, mc}});
    stream.wait();
  });
}

double inner_product_weights_seconds(Type t, int64_t rows, int64_t in, int64_t out, Tag layout) {
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  const memory::desc source({rows, in}, t, Tag::ab), target({rows, out}, t, Tag::ab);
  const dnnl::inner_product_forward::primitive_desc forward(
      {dnnl::prop_kind::forward_training, source, memory::desc({out, in}, t, Tag::any), target}, engine);
  const dnnl::inner_product_backward_weights::primitive_desc description({source, memory::desc({out, in}, Type::f32, layout), target},
                                                                         engine, forward);
  const memory ms = filled(source, engine), mt = filled(target, engine), mw(description.diff_weights_desc(), engine);
  const dnnl::inner_product_backward_weights product(description);
  return seconds_of([&] {
    product.execute(stream, {{DNNL_ARG_SRC, ms}, {DNNL_ARG_DIFF_DST, mt}, {DNNL_ARG_DIFF_WEIGHTS, mw}});
    stream.wait();
  });
}

}  // namespace

double product_seconds(DType type, const ProductShape& s, int threads) {
  if (threads > 0) omp_set_num_threads(threads);
  const Type t = dnnl_type(type);
  if (s.quantized)
    return matmul_seconds({{s.m, s.k}, Type::s8, Tag::ab}, {{s.k, s.n}, Type::s8, Tag::any}, {{s.m, s.n}, Type::s32, Tag::ab});
  if (s.kind == ProductKind::linear)
    return matmul_seconds({{s.m, s.k}, t, Tag::ab}, {{s.k, s.n}, t, Tag::any}, {{s.m, s.n}, s.wide_output ? Type::f32 : t, Tag::ab});
  return std::min({matmul_seconds({{s.m, s.k}, t, Tag::ba}, {{s.k, s.n}, t, Tag::ab}, {{s.m, s.n}, Type::f32, Tag::ab}),
                   inner_product_weights_seconds(t, s.k, s.n, s.m, Tag::ab), inner_product_weights_seconds(t, s.k, s.m, s.n, Tag::ba)});
}

double product_flops(const ProductShape& s) { return 2.0 * static_cast<double>(s.m) * static_cast<double>(s.k) * static_cast<double>(s.n); }

double attention_product_flops(const AttentionShape& s) {
  return s.products * 2.0 * static_cast<double>(s.query) * static_cast<double>(s.key) * static_cast<double>(s.head_width);
}

double peak_product_rate(DType type) {
  const ProductShape shape{ProductKind::linear, 2048, 1024, 2048, false};
  return product_flops(shape) / product_seconds(type, shape);
}

}  // namespace starling
