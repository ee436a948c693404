// Compression: nothing is lost or invented, whatever the numbers; the largest are sent, as many as asked for; all backends and instruction
// sets agree; what takes the gradient's place follows its formula.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>
#include <numeric>

#include "backend/backend.h"
#include "base/random.h"
#include "tests/emulated/slow.h"
#include "tests/ops/backends.h"

namespace starling {
namespace {

using Values = std::vector<double>;

struct Case {
  Coding coding;
  bool by_tensor = false;
  const char* name = "";
};
const Case kCases[] = {{Coding::full, false, "full"},          {Coding::full, true, "full by tensor"}, {Coding::bf16, false, "bf16"},
                       {Coding::bf16, true, "bf16 by tensor"}, {Coding::two_bit, false, "two-bit"},    {Coding::ternary, false, "ternary"},
                       {Coding::four_bit, false, "four-bit"}};

struct ThreadedCase {
  std::string spec;
  int threads;
  const char* isa;
};
// A card has no instruction sets; its threads run in another order for each backend.
const std::vector<ThreadedCase> kThreadedBackends = unless_emulated<std::vector<ThreadedCase>>(
    {{"reference", 1, ""}, {"cpu:f32", 1, "v2"}, {"cpu:f32", 2, "v3"}, {"cpu:f32", 1, "v4"}, {"cpu:f32", 2, "v4"}},
    {{"reference", 1, ""}, {"cpu:f32", 1, ""}});

std::unique_ptr<Backend> make(const ThreadedCase& b) {
  setenv("STARLING_ISA", b.isa, 1);
  auto backend = make_backend(b.spec, b.threads);
  unsetenv("STARLING_ISA");
  return backend;
}

Values normal(int64_t n, uint64_t seed) {
  Random random(seed, 1);
  Values v(static_cast<size_t>(n));
  for (double& x : v) x = static_cast<float>(random.normal());
  return v;
}

// Numbers that rounding, ranges or ties could go wrong with; all of them are f32 numbers.
Values hard(const std::string& kind, int64_t n) {
  Random random(7, std::hash<std::string>{}(kind));
  Values v = normal(n, 3);
  const double most = std::numeric_limits<float>::max(), least = std::numeric_limits<float>::denorm_min();
  for (size_t i = 0; i < v.size(); ++i) {
    const double sign = random.below(2) ? 1 : -1;
    if (kind == "huge range") v[i] = static_cast<float>(sign * std::exp(random.uniform() * 170 - 90));
    if (kind == "denormal") v[i] = sign * least * static_cast<double>(random.below(1 << 24));
    if (kind == "least") v[i] = sign * least * static_cast<double>(random.below(3));
    if (kind == "zeros") v[i] = i % 1000 == 17 ? v[i] : sign * 0.0;
    if (kind == "all zeros") v[i] = sign * 0.0;
    if (kind == "ties") v[i] = sign * static_cast<double>(random.below(3));
    if (kind == "equal") v[i] = sign;
    if (kind == "largest") v[i] = sign * most * (i % 3 ? 1 : 0.25);
    if (kind == "outlier") v[i] = i % 5000 == 4 ? 1e30f : static_cast<float>(1e-12 * v[i]);
    if (kind == "powers") v[i] = std::ldexp(sign, static_cast<int>(random.below(60)) - 30);
    if (kind == "many digits") v[i] = sign * (1 + std::ldexp(1.0, -23) * static_cast<double>(random.below(1 << 23)));
  }
  return v;
}
const char* const kKinds[] = {"normal", "huge range", "denormal", "least",   "zeros",       "all zeros",
                              "ties",   "equal",      "largest",  "outlier", "many digits", "powers"};

// Whether a + b is c without any rounding (Knuth's sum and its error).
bool exactly(double a, double b, double c) {
  const double sum = a + b, z = sum - a, error = (a - (sum - z)) + (b - z);
  return sum == c && error == 0;
}

struct Coded {
  CodeLayout layout;
  Tensor x, residual, velocity, code;
  Values sent;
  int64_t bad = -1;
};

Coded compress(Backend& backend, const Case& c, double keep, const std::vector<Range>& tensors, const Values& x, const Values& residual,
               const std::function<void(Compression&)>& change = {}) {
  const DType type = backend.parameter();
  Coded r{make_layout(c.coding, c.by_tensor, tensors, keep, type), tensor_of(backend, x), tensor_of(backend, residual), {}, {}, {}};
  r.code = Tensor({r.layout.bytes}, DType::i8, backend.memory());
  const Tensor bad({1}, DType::f64, backend.memory());
  Compression task{&r.layout, r.x, r.residual, {}, 1, 0, LocalPart::none, 1, r.code, bad};
  if (change) change(task);
  r.velocity = task.velocity;
  backend.compress(task);
  r.bad = static_cast<int64_t>(bad.to_doubles()[0]) - 1;
  const Tensor sum(r.x.shape(), type, backend.memory());
  if (r.bad < 0) backend.decompress(r.layout, r.code, 1, sum);
  r.sent = sum.to_doubles();
  return r;
}

int64_t nonzero(const Values& v) { return static_cast<int64_t>(v.size()) - std::count(v.begin(), v.end(), 0.0); }

// Tensors of all sizes, with gaps between them.
const std::vector<Range> kTensors = {{0, 9000}, {9008, 9009}, {9024, 13120}, {13120, 13131}, {13136, 17235}};
constexpr int64_t kCompressed = 17248;

TEST(Compression, SentAndResidualAreWhatWasThere) {
  for (const ThreadedCase& b : kThreadedBackends) {
    const auto backend = make(b);
    for (const Case& c : kCases)
      for (const char* kind : kKinds)
        for (const double keep : {0.003, 0.4}) {
          const Values x = hard(kind, kCompressed);
          Values residual(x.rbegin(), x.rend());
          for (double& e : residual) e = std::string(kind) == "largest" ? 0 : static_cast<float>(e / 4);
          const Coded r = compress(*backend, c, keep, kTensors, x, residual);
          ASSERT_EQ(r.bad, -1);
          const Values left = r.residual.to_doubles();
          int64_t wrong = 0;
          for (const Range& t : kTensors)
            for (auto i = static_cast<size_t>(t.begin); i < static_cast<size_t>(t.end); ++i) {
              const double all =
                  b.spec == "reference" ? residual[i] + x[i] : double{static_cast<float>(residual[i]) + static_cast<float>(x[i])};
              wrong += !exactly(r.sent[i], left[i], all);
            }
          EXPECT_EQ(wrong, 0) << c.name << ", " << kind << ", keep " << keep << ", " << b.spec << b.isa;
          for (size_t i : {9007u, 9010u, 13135u}) EXPECT_EQ(r.sent[i], 0) << "outside the tensors";
        }
  }
}

// In double the residual of a bf16 or 2-bit value beyond their range stays whole.
TEST(Compression, ConservesWhatNoNarrowNumberCanHold) {
  const auto backend = make_backend("reference");
  Values x = normal(8192, 5);
  for (size_t i = 0; i < x.size(); ++i) x[i] *= i % 3 == 0 ? 1e300 : i % 3 == 1 ? 1e-300 : 1 + 1e-13;
  for (const Case& c : kCases) {
    const Coded r = compress(*backend, c, 0.5, {{0, 8192}}, x, Values(8192));
    const Values left = r.residual.to_doubles();
    for (size_t i = 0; i < x.size(); ++i) ASSERT_TRUE(exactly(r.sent[i], left[i], x[i])) << c.name << " " << x[i] << " " << r.sent[i];
  }
}

TEST(Compression, AsManyAreKeptAsAskedFor) {
  for (const ThreadedCase& b : kThreadedBackends) {
    const auto backend = make(b);
    const Values x = normal(100000, 1);
    for (const Case& c : kCases)
      for (const double keep : {0.0003, 0.001, 0.01, 0.0999, 0.37, 1.0}) {
        if (!is_sparse(c.coding) || (c.coding == Coding::two_bit && keep == 1)) continue;  // two levels do not fit small ones
        const Coded r = compress(*backend, c, keep, {{0, 70000}, {70000, 100000}}, x, Values(x.size()));
        EXPECT_NEAR(static_cast<double>(nonzero(r.sent)) / 1e5, keep, 0.1 * keep) << c.name << " " << b.spec << b.isa;
        if (c.coding == Coding::full) {
          EXPECT_EQ(nonzero(r.sent), std::llround(keep * 70000) + std::llround(keep * 30000));
        }
      }
    // Many zeros and ties: never more than asked for, and nothing is sent in vain.
    for (const char* kind : {"zeros", "ties", "equal"})
      for (const Case& c : kCases) {
        if (!is_sparse(c.coding)) continue;
        const Values y = hard(kind, 50000);
        const Coded r = compress(*backend, c, 0.01, {{0, 50000}}, y, Values(y.size()));
        const int64_t expected = std::string(kind) == "zeros" ? 50 : 500;
        EXPECT_LE(nonzero(r.sent), expected) << kind << " " << c.name;
        if (c.by_tensor || std::string(kind) != "zeros") {
          EXPECT_EQ(nonzero(r.sent), expected) << kind << " " << c.name;
        }
      }
  }
}

TEST(Compression, TheLargestAreSent) {
  for (const ThreadedCase& b : kThreadedBackends) {
    const auto backend = make(b);
    for (const bool by_tensor : {false, true})
      for (const double keep : {0.002, 0.02, 0.05, 0.2}) {  // each way of finding them
        Values x = normal(40000, 9);
        for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(x[i] * (1 + static_cast<double>(i / 4096)));
        const Coded r = compress(*backend, {Coding::full, by_tensor, ""}, keep, {{0, 40000}}, x, Values(x.size()));
        for (size_t begin = 0; begin < x.size(); begin += by_tensor ? 40000 : kChunk) {
          const size_t end = std::min<size_t>(x.size(), by_tensor ? 40000 : begin + kChunk);
          double least_sent = INFINITY, most_left = 0;
          for (size_t i = begin; i < end; ++i)
            r.sent[i] != 0 ? least_sent = std::min(least_sent, std::abs(x[i])) : most_left = std::max(most_left, std::abs(x[i]));
          EXPECT_GE(least_sent, most_left) << b.spec << b.isa;
          EXPECT_TRUE(std::isfinite(least_sent)) << "nothing was sent";
        }
      }
  }
}

// A sample of every 33rd element says nothing of these; the exact choice does not depend on it.
TEST(Compression, AMisleadingSampleChangesNothing) {
  const auto backend = make_backend("cpu:f32", 2);
  const int64_t n = unless_emulated(3'300'000, 330'000);
  for (const bool large_in_sample : {false, true}) {
    Values x(static_cast<size_t>(n), 1e-3);
    for (size_t i = 0; i < x.size(); ++i)
      if ((i % 33 == 0) == large_in_sample) x[i] = 1 + 1e-6 * static_cast<double>(i % 1000);
    const Coded r = compress(*backend, {Coding::full, true, ""}, 0.05, {{0, n}}, x, Values(x.size()));
    EXPECT_EQ(nonzero(r.sent), std::llround(0.05 * static_cast<double>(n)));
    const Values left = r.residual.to_doubles();
    int64_t wrong = 0;
    for (size_t i = 0; i < x.size(); ++i) wrong += !exactly(r.sent[i], left[i], double{static_cast<float>(x[i])});
    EXPECT_EQ(wrong, 0);
  }
}

TEST(Compression, BackendsAndInstructionSetsAgree) {
  const Values residual = normal(30000, 5);
  for (const std::string kind : {"normal", "ties", "equal"})  // of equal ones the first are sent
    for (const double keep : {0.01, 0.03, 0.3})
      for (const Case& c : kCases) {
        const Values x = hard(kind, 30000);
        Values first;
        std::vector<std::byte> bits;
        for (const ThreadedCase& b : kThreadedBackends) {
          const auto backend = make(b);
          const Coded r = compress(*backend, c, keep, {{0, 20000}, {20000, 30000}}, x, residual, [](Compression& t) { t.decay = 0; });
          if (first.empty()) first = r.sent;
          EXPECT_EQ(r.sent, first) << c.name << " " << kind << " " << b.spec << b.isa;
          if (b.spec == "reference") continue;
          const std::vector<std::byte> code = r.code.download();
          if (bits.empty()) bits = code;
          EXPECT_EQ(code, bits) << c.name << " " << kind << " " << b.spec << b.isa;
        }
      }
}

TEST(Compression, LocalPartsAndVelocityFollowTheirFormulas) {
  const int64_t n = 9000;
  const Values g = normal(n, 1), e = normal(n, 2), v = normal(n, 3);
  for (const ThreadedCase& b : kThreadedBackends) {
    const auto backend = make(b);
    for (const Case& c : kCases)
      for (const LocalPart local : {LocalPart::none, LocalPart::sum, LocalPart::partial, LocalPart::error})
        for (const bool momentum : {false, true}) {
          const Coded r = compress(*backend, c, 0.02, {{0, n}}, g, e, [&](Compression& t) {
            t.local = local, t.local_scale = 2, t.decay = 0.25;
            if (momentum) t.velocity = tensor_of(*backend, v), t.momentum = 0.5;
          });
          const Values x = r.x.to_doubles(), left = r.residual.to_doubles(), speed = momentum ? r.velocity.to_doubles() : Values{};
          int64_t sent = 0;
          for (size_t i = 0; i < g.size(); ++i) {
            const double s = r.sent[i], moved = momentum ? 0.5 * v[i] + g[i] : g[i];
            const double expected = local == LocalPart::none                ? 0
                                    : local == LocalPart::error             ? 2 * left[i]
                                    : local == LocalPart::partial && s != 0 ? g[i] - s
                                                                            : 2 * g[i];
            ASSERT_NEAR(x[i], expected, 1e-6) << c.name;
            ASSERT_NEAR(s + left[i], 0.25 * e[i] + moved, 1e-6) << c.name;
            if (momentum) {
              ASSERT_NEAR(speed[i], s != 0 ? 0 : moved, 1e-6) << c.name;
            }
            sent += s != 0;
          }
          EXPECT_GT(sent, 100);
        }
  }
}

TEST(Compression, SumsOverRanksInTheirOrder) {
  const Values x = normal(5000, 1), y = normal(5000, 2);
  for (const ThreadedCase& b : kThreadedBackends) {
    const auto backend = make(b);
    for (const Case& c : kCases) {
      const Coded first = compress(*backend, c, 0.05, {{0, 5000}}, x, Values(5000)),
                  second = compress(*backend, c, 0.05, {{0, 5000}}, y, Values(5000));
      const int64_t bytes = first.layout.bytes;
      const Tensor both({2 * bytes}, DType::i8, backend->memory()), sum = tensor_of(*backend, x);
      both.rows(0, bytes).copy_from(first.code), both.rows(bytes, 2 * bytes).copy_from(second.code);
      backend->decompress(first.layout, both, 0.5, sum);
      const Values got = sum.to_doubles();
      for (size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(got[i], x[i] + 0.5 * first.sent[i] + 0.5 * second.sent[i], 1e-6) << c.name;
    }
  }
}

TEST(Compression, RefusesWhatIsNotFinite) {
  for (const ThreadedCase& b : kThreadedBackends) {
    const auto backend = make(b);
    for (const Case& c : kCases)
      for (const double bad : {double{NAN}, double{INFINITY}, -double{INFINITY}})
        for (const size_t where : {size_t{0}, size_t{4095}, size_t{9999}}) {
          Values x = normal(10000, 1);
          x[where] = bad;
          EXPECT_EQ(compress(*backend, c, 0.01, {{0, 10000}}, x, Values(x.size())).bad, static_cast<int64_t>(where)) << c.name;
        }
  }
}

// Bytes of ten chunks by hand: headers 16 bits, indices 12, values 32, 16 or 2, levels 2 x 16; 5 elements in 8 bits or 2, and a level.
TEST(Compression, CodesHaveTheSizesOfTheFormat) {
  const auto bytes = [](Coding coding, double keep) { return make_layout(coding, false, {{0, 40960}}, keep, DType::f32).bytes; };
  const auto padded = [](int64_t chunk) { return round_up(10 * chunk, 16); };
  EXPECT_EQ(bytes(Coding::full, 64.0 / 4096), padded(2 + 96 + 256));
  EXPECT_EQ(bytes(Coding::bf16, 64.0 / 4096), padded(2 + 96 + 128));
  EXPECT_EQ(bytes(Coding::two_bit, 64.0 / 4096), padded(2 + 4 + 96 + 16));
  EXPECT_EQ(bytes(Coding::ternary, 1), padded(4 + 820));
  EXPECT_EQ(bytes(Coding::four_bit, 1), padded(2 + 2048));
}

}  // namespace
}  // namespace starling
