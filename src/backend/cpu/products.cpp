#include "backend/cpu/products.h"

#include <string_view>

#include "backend/cpu/chunks.h"
#include "backend/cpu/dnnl_types.h"
#include "backend/int8.h"

namespace starling {
namespace {

using dnnl::memory;
using Type = memory::data_type;
using Tag = memory::format_tag;

// Has its own engine, so that every backend that shares the weight can pack it again after a change.
struct CpuPacked : Packed {
  dnnl::engine engine;
  memory packed;
  dnnl::reorder reorder;  // from the flat parameters; made once, since making it generates code
  Type source_type = Type::undef, type = Type::undef;
  bool transposed = false;
  bool steady = false;  // its products are to have the same bits in a row, however many rows there are
};

struct PackedIntegers : PackedInt8 {
  memory packed;
};

// Rows of a product that a thread takes at once: fewer would cost speed (kernels read the whole weight for them), more would leave others
// waiting longer for a thread that has lost its core.
constexpr int64_t kChunkRows = 128;
constexpr uint32_t kInt8 = 32;   // flag of a product of integers
constexpr uint32_t kAlone = 64;  // flag of a product that one thread computes
// Whether oneDNN multiplies 8-bit integers exactly: its kernels without VNNI add pairs of products in 16 bits, which saturate.
bool exact(const dnnl::matmul::primitive_desc& product) {
  const std::string_view kernel = product.impl_info_str();
  return kernel.find("vnni") != kernel.npos || kernel.find("amx") != kernel.npos;
}

// The kind of product that 8-bit weights are packed for.
dnnl::matmul::primitive_desc int8_product(int64_t in, int64_t out, const dnnl::engine& engine) {
  return {{{{256, in}, Type::s8, Tag::ab}, {{in, out}, Type::s8, Tag::any}, {{256, out}, Type::s32, Tag::ab}}, engine};
}

// While it exists, oneDNN makes primitives that one thread executes; then as many threads as before.
struct ForOneThread {
  explicit ForOneThread(int all) : threads(all) { omp_set_num_threads(1); }
  ~ForOneThread() { omp_set_num_threads(threads); }
  ForOneThread(const ForOneThread&) = delete;
  ForOneThread& operator=(const ForOneThread&) = delete;
  int threads;
};

enum class Kind : uint8_t { linear, weight_gradient };

struct Key {
  int64_t m, k, n;
  uint32_t flags;
  bool operator==(const Key&) const = default;
};
struct KeyHash {
  size_t operator()(const Key& key) const {
    uint64_t h = 0;
    for (uint64_t part : {uint64_t(key.m), uint64_t(key.k), uint64_t(key.n), uint64_t(key.flags)})
      h = (h ^ part) * 0x9E3779B97F4A7C15ull, h ^= h >> 29;
    return h;
  }
};

}  // namespace

struct Products::Implementation {
  explicit Implementation(DType t) : activation(dnnl_type(t)), engine(dnnl::engine::kind::cpu, 0), stream(engine) {
    dnnl::set_primitive_cache_capacity(0);  // this class keeps its own
  }

  struct Entry {
    Key key;
    dnnl::matmul primitive;
    dnnl::matmul::primitive_desc description;
  };

  // If there are more entries than this, the least recently used ones are dropped: an entry holds up to a few hundred KB of generated code.
  static constexpr size_t kCapacity = 1024;

  template <class Make>
  Entry& find(const Key& key, Make make) {
    if (auto it = index.find(key); it != index.end()) {
      entries.splice(entries.begin(), entries, it->second);
      return entries.front();
    }
    dnnl::matmul::primitive_desc description = make();
    entries.push_front({key, dnnl::matmul(description), description});
    index[key] = entries.begin();
    if (entries.size() > kCapacity) {
      index.erase(entries.back().key);
      entries.pop_back();
    }
    return entries.front();
  }

  memory scratch_for(const Entry& e, int thread) {
    return memory(e.description.scratchpad_desc(), engine, scratch[static_cast<size_t>(thread)]->data());
  }
  void reserve_scratch(const Entry& e, int threads) {
    const auto bytes = std::max<int64_t>(static_cast<int64_t>(e.description.scratchpad_desc().get_size()), 1);
    if (scratch.size() < static_cast<size_t>(threads)) scratch.resize(static_cast<size_t>(threads));
    for (int t = 0; t < threads; ++t)
      if (auto& s = scratch[static_cast<size_t>(t)]; !s || s->bytes() < bytes) s = std::make_unique<Storage>(bytes);
  }

  // Products that give a row the same bits however many rows there are: they take multiples of `unit` rows, `most` at a time.
  struct Steadiness {
    int64_t unit = 1, most = INT64_MAX;
  };
  // product(x, y) in such pieces, the last rows with zeros behind them. `reads`: y is added to.
  template <class F>
  void in_steady_rows(const Tensor& x, const Tensor& y, bool reads, F product) {
    const auto [unit, most] = steadiness;
    for (int64_t first = 0; first < x.rows();) {
      const int64_t left = x.rows() - first, here = std::min(left, most), whole = here / unit * unit;
      // Fewer than `most` rows go as one piece; if any number can go at once, only the remainder is copied.
      if (whole == here || (whole > 0 && most == INT64_MAX)) {
        product(x.rows(first, first + whole), y.rows(first, first + whole));
        first += whole;
        continue;
      }
      rows.release({});
      const int64_t round = (here + unit - 1) / unit * unit;
      const Tensor last_x = rows.allocate({round, x.columns()}, x.dtype()), last_y = rows.allocate({round, y.columns()}, y.dtype());
      last_x.zero();
      last_x.rows(0, here).copy_from(x.rows(first, first + here));
      if (reads) {
        last_y.zero();
        last_y.rows(0, here).copy_from(y.rows(first, first + here));
      }
      product(last_x, last_y);
      y.rows(first, first + here).copy_from(last_y.rows(0, here));
      first += here;
    }
  }
  // oneDNN's AVX-512 kernels are steady as they are. Its older float kernels treat the last few rows differently, and its AMX kernels the
  // first few; they also split the long sums of many rows differently (tests/ops/product_rows_test.cpp).
  Steadiness find_steadiness() const {
    const dnnl::matmul::primitive_desc any(
        {{{256, 256}, activation, Tag::ab}, {{256, 256}, activation, Tag::any}, {{256, 256}, activation, Tag::ab}}, engine);
    const std::string_view kernel = any.impl_info_str();
    if (kernel.find("amx") != kernel.npos) return {16, 64};
    return activation != Type::f32 || kernel.find("brg") != kernel.npos ? Steadiness{} : Steadiness{12};
  }

  Type activation;
  dnnl::engine engine;
  dnnl::stream stream;
  const Steadiness steadiness = find_steadiness();
  Arena rows{host_memory()};  // the last rows of a product
  std::list<Entry> entries;
  std::unordered_map<Key, std::list<Entry>::iterator, KeyHash> index;
  std::vector<std::unique_ptr<Storage>> scratch;  // by thread
};

Products::Products(DType activation) : implementation_(std::make_unique<Implementation>(activation)) {}
Products::~Products() = default;

std::shared_ptr<Packed> Products::pack(const Tensor& w, bool transposed, std::shared_ptr<Packed> reuse, bool steady) {
  auto& im = *implementation_;
  const int64_t in = w.dim(transposed ? 1 : 0), out = w.dim(transposed ? 0 : 1);
  if (reuse && reuse->quantized) reuse = nullptr;  // of another class
  auto packed = std::static_pointer_cast<CpuPacked>(reuse);
  if (!packed || packed->in != in || packed->out != out || packed->type != im.activation) {
    packed = std::make_shared<CpuPacked>();
    packed->in = in;
    packed->out = out;
    packed->engine = im.engine;
    packed->type = im.activation;
    packed->steady = steady;
    const dnnl::matmul::primitive_desc any(
        {{{256, in}, im.activation, Tag::ab}, {{in, out}, im.activation, Tag::any}, {{256, out}, im.activation, Tag::ab}}, im.engine);
    packed->packed = memory(any.weights_desc(), im.engine);
  }
  const memory source({{in, out}, dnnl_type(w.dtype()), transposed ? Tag::ba : Tag::ab}, packed->engine, w.raw());
  if (packed->source_type != dnnl_type(w.dtype()) || packed->transposed != transposed) {
    packed->reorder = dnnl::reorder(dnnl::reorder::primitive_desc(source, packed->packed));
    packed->source_type = dnnl_type(w.dtype());
    packed->transposed = transposed;
  }
  dnnl::stream stream(packed->engine);
  packed->reorder.execute(stream, {{DNNL_ARG_FROM, source}, {DNNL_ARG_TO, packed->packed}});
  stream.wait();
  return packed;
}

void Products::linear(const Tensor& x, const Packed& w, const Tensor& b, const Tensor& y, Activation activation, Write write) {
  CHECK(x.rows() == y.rows(), "{} times [{}, {}] into {}", x.shape().text(), w.in, w.out, y.shape().text());
  const auto product = [&](const Tensor& rows, const Tensor& results) { linear_rows(rows, w, b, results, activation, write); };
  // Training does not need equal bits, and larger products are faster.
  if (static_cast<const CpuPacked&>(w).steady || implementation_->activation == Type::f32)
    implementation_->in_steady_rows(x, y, write == Write::accumulate, product);
  else
    product(x, y);
}

void Products::linear_rows(const Tensor& x, const Packed& weight, const Tensor& b, const Tensor& y, Activation activation, Write write) {
  auto& im = *implementation_;
  const auto& w = static_cast<const CpuPacked&>(weight);
  CHECK(x.columns() == w.in && y.columns() == w.out && x.rows() == y.rows(), "{} times [{}, {}] into {}", x.shape().text(), w.in, w.out,
        y.shape().text());
  CHECK(write == Write::overwrite || activation == Activation::none, "oneDNN would add before the activation");
  const uint32_t flags = static_cast<uint32_t>(Kind::linear) | (b ? 2u : 0u) | (activation == Activation::relu ? 4u : 0u) |
                         (write == Write::accumulate ? 8u : 0u) | (y.dtype() == DType::f32 ? 16u : 0u);
  const auto entry_of = [&](int64_t rows, uint32_t more) -> Implementation::Entry& {
    auto& entry = im.find({rows, w.in, w.out, flags | more}, [&] {
      dnnl::primitive_attr attributes;
      attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
      dnnl::post_ops after;
      if (write == Write::accumulate) after.append_sum(1.0f);
      if (activation == Activation::relu) after.append_eltwise(1.0f, dnnl::algorithm::eltwise_relu, 0, 0);
      attributes.set_post_ops(after);
      const memory::desc source({rows, w.in}, im.activation, Tag::ab), target({rows, w.out}, dnnl_type(y.dtype()), Tag::ab);
      if (!b) return dnnl::matmul::primitive_desc({source, w.packed.get_desc(), target}, attributes, im.engine);
      return dnnl::matmul::primitive_desc({source, w.packed.get_desc(), {{1, w.out}, Type::f32, Tag::ab}, target}, attributes, im.engine);
    });
    CHECK(entry.description.weights_desc() == w.packed.get_desc(), "a weight [{}, {}] packed in another layout", w.in, w.out);
    return entry;
  };
  const auto run = [&](Implementation::Entry& entry, int64_t first, int64_t rows, int thread) {
    const Tensor source = x.rows(first, first + rows), target = y.rows(first, first + rows);
    std::unordered_map<int, memory> arguments{{DNNL_ARG_SRC, memory(entry.description.src_desc(), im.engine, source.raw())},
                                              {DNNL_ARG_WEIGHTS, memory(w.packed.get_desc(), im.engine, w.packed.get_data_handle())},
                                              {DNNL_ARG_DST, memory(entry.description.dst_desc(), im.engine, target.raw())},
                                              {DNNL_ARG_SCRATCHPAD, im.scratch_for(entry, thread)}};
    if (b) arguments.emplace(DNNL_ARG_BIAS, memory(entry.description.bias_desc(), im.engine, b.raw()));
    dnnl::stream stream(im.engine);
    entry.primitive.execute(stream, arguments);
    stream.wait();
  };
  const int threads = omp_get_max_threads();
  const int64_t each = x.rows() / (kChunkRows * threads);  // chunks per thread
  if (threads == 1 || each < 2) {
    auto& whole = entry_of(x.rows(), 0);  // cut by oneDNN, in both directions
    im.reserve_scratch(whole, 1);
    return run(whole, 0, x.rows(), 0);
  }
  const Chunks chunks(x.rows(), std::max<int64_t>(im.steadiness.unit, 8), each * threads);
  std::vector<Implementation::Entry*> entries;  // three at most are different
  {
    const ForOneThread one(threads);
    for (int64_t c = 0; c < chunks.count; ++c) entries.push_back(&entry_of(chunks.size(c), kAlone));
  }
  for (const auto* entry : entries) im.reserve_scratch(*entry, threads);
  take_chunks(threads, chunks.count, [&](int64_t c, int t) { run(*entries[static_cast<size_t>(c)], chunks.begin(c), chunks.size(c), t); });
}

std::shared_ptr<Packed> Products::pack_int8(const Tensor& w, bool transposed, double input_bound) {
  auto& im = *implementation_;
  const int64_t in = w.dim(transposed ? 1 : 0), out = w.dim(transposed ? 0 : 1);
  Int8Matrix rounded = round_to_int8(w, transposed);
  auto packed = std::make_shared<PackedIntegers>();
  packed->in = in;
  packed->out = out;
  packed->quantized = true;
  packed->scales = std::move(rounded.scales);
  packed->input_bound = static_cast<float>(input_bound);
  dnnl::matmul::primitive_desc any = int8_product(in, out, im.engine);
  packed->integers = exact(any);
  const memory::desc plain({in, out}, Type::s8, transposed ? Tag::ba : Tag::ab);
  memory source(plain, im.engine, rounded.values.data());
  if (!packed->integers) {
    any = dnnl::matmul::primitive_desc(
        {{{256, in}, Type::f32, Tag::ab}, {{in, out}, Type::f32, Tag::any}, {{256, out}, Type::f32, Tag::ab}}, im.engine);
  }
  packed->packed = memory(any.weights_desc(), im.engine);
  dnnl::reorder(source, packed->packed).execute(im.stream, source, packed->packed);
  im.stream.wait();
  return packed;
}

bool Products::multiplies_int8() const { return exact(int8_product(256, 256, implementation_->engine)); }

void Products::multiply_int8(const Tensor& x, const PackedInt8& w, const Tensor& sums) {
  CHECK(x.rows() == sums.rows(), "{} rows into {}", x.rows(), sums.rows());
  if (w.integers) return multiply_rows(x, w, sums);
  implementation_->in_steady_rows(x, sums, false, [&](const Tensor& rows, const Tensor& results) { multiply_rows(rows, w, results); });
}

void Products::multiply_rows(const Tensor& x, const PackedInt8& weight, const Tensor& sums) {
  auto& im = *implementation_;
  const auto& w = static_cast<const PackedIntegers&>(weight);
  CHECK(x.columns() == w.in && sums.columns() == w.out && x.rows() == sums.rows(), "{} times [{}, {}] into {}", x.shape().text(), w.in,
        w.out, sums.shape().text());
  CHECK(x.dtype() == (w.integers ? DType::i8 : DType::f32) && size_of(sums.dtype()) == 4, "8-bit product of {} into {}", name_of(x.dtype()),
        name_of(sums.dtype()));
  const Type in = w.integers ? Type::s8 : Type::f32, out = w.integers ? Type::s32 : Type::f32;
  auto& entry = im.find({x.rows(), w.in, w.out, kInt8 | (w.integers ? 2u : 0u)}, [&] {
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    return dnnl::matmul::primitive_desc({{{x.rows(), w.in}, in, Tag::ab}, w.packed.get_desc(), {{x.rows(), w.out}, out, Tag::ab}},
                                        attributes, im.engine);
  });
  CHECK(entry.description.weights_desc() == w.packed.get_desc(), "an 8-bit weight [{}, {}] packed in another layout", w.in, w.out);
  im.reserve_scratch(entry, 1);
  entry.primitive.execute(im.stream, {{DNNL_ARG_SRC, memory(entry.description.src_desc(), im.engine, x.raw())},
                                      {DNNL_ARG_WEIGHTS, memory(w.packed.get_desc(), im.engine, w.packed.get_data_handle())},
                                      {DNNL_ARG_DST, memory(entry.description.dst_desc(), im.engine, sums.raw())},
                                      {DNNL_ARG_SCRATCHPAD, im.scratch_for(entry, 0)}});
  im.stream.wait();
}

void Products::weight_gradient(const Tensor& a, const Tensor& c, const Tensor& dw, Write write) {
  auto& im = *implementation_;
  const int64_t P = a.columns(), Q = c.columns(), N = a.rows();
  CHECK(c.rows() == N && dw.dim(0) == P && dw.dim(1) == Q, "{} and {} into {}", a.shape().text(), c.shape().text(), dw.shape().text());
  const uint32_t flags = static_cast<uint32_t>(Kind::weight_gradient) | (write == Write::accumulate ? 8u : 0u);
  auto& entry = im.find({P, N, Q, flags}, [&] {
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    dnnl::post_ops after;
    if (write == Write::accumulate) after.append_sum(1.0f);
    attributes.set_post_ops(after);
    return dnnl::matmul::primitive_desc({{{P, N}, im.activation, Tag::ba}, {{N, Q}, im.activation, Tag::ab}, {{P, Q}, Type::f32, Tag::ab}},
                                        attributes, im.engine);
  });
  im.reserve_scratch(entry, 1);
  entry.primitive.execute(im.stream, {{DNNL_ARG_SRC, memory(entry.description.src_desc(), im.engine, a.raw())},
                                      {DNNL_ARG_WEIGHTS, memory(entry.description.weights_desc(), im.engine, c.raw())},
                                      {DNNL_ARG_DST, memory(entry.description.dst_desc(), im.engine, dw.raw())},
                                      {DNNL_ARG_SCRATCHPAD, im.scratch_for(entry, 0)}});
  im.stream.wait();
}

}  // namespace starling
