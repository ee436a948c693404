// Compression on an emulated card and on the CPU: the same bytes, residuals and local parts, whatever the numbers. What these have to be is
// said by tests/ops/compression_test.cpp and known_values_test.cpp.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "backend/backend.h"
#include "base/random.h"
#include "tests/whole_matrix.h"

namespace starling {
namespace {

using Values = std::vector<double>;

struct Case {
  Coding coding;
  bool by_tensor;
};
const Case kCases[] = {{Coding::full, false},    {Coding::full, true},     {Coding::bf16, false},    {Coding::bf16, true},
                       {Coding::two_bit, false}, {Coding::ternary, false}, {Coding::four_bit, false}};

// Numbers that rounding, ranges or ties could go wrong with.
Values hard(const std::string& kind, int64_t n, uint64_t seed) {
  Random random(seed, std::hash<std::string>{}(kind));
  Values v(static_cast<size_t>(n));
  const double most = std::numeric_limits<float>::max(), least = std::numeric_limits<float>::denorm_min();
  for (size_t i = 0; i < v.size(); ++i) {
    const double sign = random.below(2) ? 1 : -1;
    v[i] = static_cast<float>(random.normal());
    if (kind == "huge range") v[i] = static_cast<float>(sign * std::exp(random.uniform() * 170 - 90));
    if (kind == "denormal") v[i] = sign * least * static_cast<double>(random.below(1 << 24));
    if (kind == "zeros") v[i] = i % 1000 == 17 ? v[i] : sign * 0.0;
    if (kind == "all zeros") v[i] = sign * 0.0;
    if (kind == "ties") v[i] = sign * static_cast<double>(random.below(3));
    if (kind == "equal") v[i] = sign;
    if (kind == "largest") v[i] = sign * most * (i % 3 ? 0.25 : 0.125);
    if (kind == "close") v[i] = sign * (1 + std::ldexp(1.0, -23) * static_cast<double>(random.below(2000)));
  }
  return v;
}
const char* const kKinds[] = {"normal", "huge range", "denormal", "zeros", "all zeros", "ties", "equal", "largest", "close"};

// Tensors of all sizes, with gaps between them and one without elements.
const std::vector<Range> kTensors = {{0, 9000}, {9008, 9009}, {9009, 9009}, {9024, 13120}, {13120, 13131}, {13136, 17235}};
constexpr int64_t kFlat = 17248;

struct Options {
  LocalPart local = LocalPart::none;
  double decay = 1, momentum = 0;
};

// Everything that compress writes, and what decompress adds to a sum.
std::vector<std::vector<std::byte>> coded(Backend& backend, const CodeLayout& layout, const std::string& kind, const Options& o) {
  const int64_t n = layout.chunks.empty() ? kFlat : std::max(kFlat, layout.chunks.back().begin + layout.chunks.back().count);
  const auto tensor = [&](const Shape& shape, const Values& values, DType type = DType::f32) {
    const Tensor t(shape, type, backend.memory());
    t.from_doubles(values);
    return t;
  };
  const Tensor x = tensor({n}, hard(kind, n, 1)), residual = tensor({n}, hard(kind, n, 2));
  const Tensor velocity = o.momentum > 0 ? tensor({n}, hard(kind, n, 3)) : Tensor();
  const Tensor codes({2 * layout.bytes}, DType::i8, backend.memory()), bad = tensor({1}, {0}, DType::f64),
                                                                       sum = tensor({n}, Values(n, 0.5));
  for (int64_t r = 0; r < 2; ++r) {
    backend.compress(
        {&layout, x, residual, velocity, o.decay, o.momentum, o.local, 2, codes.rows(r * layout.bytes, (r + 1) * layout.bytes), bad});
    if (r == 0) x.from_doubles(hard(kind, n, 4));
  }
  backend.decompress(layout, codes, 0.5, sum);
  std::vector<std::vector<std::byte>> all;
  for (const Tensor& t : {codes, x, residual, bad, sum}) all.push_back(t.download());
  if (velocity) all.push_back(velocity.download());
  return all;
}

void expect_as_cpu(const Case& c, const std::vector<Range>& tensors, double keep, const std::string& kind, const Options& o) {
  const CodeLayout layout = make_layout(c.coding, c.by_tensor, tensors, keep, DType::f32);
  const auto here = coded(*make_backend("cpu:f32", 1), layout, kind, o), there = coded(*make_backend("cuda-emulated:f32"), layout, kind, o);
  const char* const names[] = {"codes", "local part", "residual", "bad", "sum", "velocity"};
  for (size_t i = 0; i < here.size(); ++i)
    EXPECT_EQ(here[i], there[i]) << names[i] << " of coding " << static_cast<int>(c.coding) << (c.by_tensor ? " by tensor" : "") << ", "
                                 << kind << ", keep " << keep;
}

TEST(CudaCompression, HardNumbers) {
  size_t turn = 0;  // at every change, each kind of numbers meets a third of the codings
  for (const Case& c : kCases) {
    ++turn;
    for (size_t k = 0; k < std::size(kKinds); ++k)
      for (const double keep : of_cases<double>({0.003, 0.4}, 1)) {
        if (!is_sparse(c.coding) && keep > 0.1) continue;
        if (whole_matrix() || (turn + k) % 3 == 0) expect_as_cpu(c, kTensors, keep, kKinds[k], {});
      }
  }
}

TEST(CudaCompression, AnyNumberOfEntries) {
  for (const Case& c : kCases)
    for (const double keep : {0.00001, 0.0003, 0.03, 0.9, 1.0})
      if (is_sparse(c.coding)) expect_as_cpu(c, {{0, 5000}, {6000, 15000}}, keep, "normal", {});
}

// Factors are powers of two, so that it does not matter whether products are rounded.
TEST(CudaCompression, LocalPartsAndVelocity) {
  for (const Case& c : kCases)
    for (const LocalPart local : {LocalPart::none, LocalPart::sum, LocalPart::partial, LocalPart::error})
      for (const double momentum : of_cases<double>({0.5, 0.0}, 1)) expect_as_cpu(c, {{0, 9000}}, 0.02, "normal", {local, 0.25, momentum});
}

// More chunks than a block has threads, with ties among them.
TEST(CudaCompression, TensorsOfManyChunks) {
  for (const char* kind : {"normal", "ties"}) expect_as_cpu({Coding::bf16, true}, {{0, 5000}, {5008, 300 * kChunk + 77}}, 0.01, kind, {});
}

TEST(CudaCompression, NoTensors) {
  for (const Case& c : kCases) expect_as_cpu(c, {}, 0.5, "normal", {});
}

TEST(CudaCompression, NamesWhatIsNotFinite) {
  const auto card = make_backend("cuda-emulated:f32");
  for (const Case& c : kCases)
    for (const double what : {std::nan(""), double{INFINITY}, -double{INFINITY}})
      for (const size_t where : {size_t{0}, size_t{4095}, size_t{9999}}) {
        Values values = hard("normal", 10000, 1);
        values[where] = what;
        const CodeLayout layout = make_layout(c.coding, c.by_tensor, {{0, 10000}}, 0.01, DType::f32);
        const Tensor x({10000}, DType::f32, card->memory()), residual({10000}, DType::f32, card->memory());
        const Tensor code({layout.bytes}, DType::i8, card->memory()), bad({1}, DType::f64, card->memory());
        x.from_doubles(values);
        card->compress({&layout, x, residual, {}, 1, 0, LocalPart::none, 1, code, bad});
        EXPECT_EQ(bad.to_doubles()[0], static_cast<double>(where) + 1);
      }
}

}  // namespace
}  // namespace starling
