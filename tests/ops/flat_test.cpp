// The flat ops of strategies against their formulas in double, for one thread and two: the same bits.
#include "backend/flat.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "base/random.h"

namespace starling {
namespace {

constexpr int64_t kMany = 20011;  // enough for two threads

using Values = std::vector<double>;

class Flat : public testing::TestWithParam<DType> {
 protected:
  Tensor random(uint64_t stream, int64_t count = kMany) const {
    Random random(7, stream);
    Values values(static_cast<size_t>(count));
    for (double& v : values) v = static_cast<float>(random.normal());
    const Tensor t({count}, GetParam());
    t.from_doubles(values);
    return t;
  }
  // Calls body(ops) with one thread and with two, from the same tensors on, and compares.
  void check(const std::vector<Tensor>& in_and_out, const std::function<void(FlatOps&)>& body,
             const std::function<double(size_t tensor, size_t i, const std::vector<Values>& before)>& expected) const {
    std::vector<Values> before, first;
    for (const Tensor& t : in_and_out) before.push_back(t.to_doubles());
    body(*make_host_flat_ops(1));
    for (const Tensor& t : in_and_out) first.push_back(t.to_doubles());
    const double tolerance = GetParam() == DType::f32 ? 3e-7 : 1e-15;
    for (size_t k = 0; k < first.size(); ++k)
      for (size_t i = 0; i < first[k].size(); ++i) {
        const double value = expected(k, i, before);
        ASSERT_NEAR(first[k][i], value, 20 * tolerance * std::max(1.0, std::abs(value))) << "tensor " << k << ", element " << i;
      }
    for (size_t k = 0; k < first.size(); ++k) in_and_out[k].from_doubles(before[k]);
    body(*make_host_flat_ops(2));
    for (size_t k = 0; k < first.size(); ++k) ASSERT_EQ(in_and_out[k].to_doubles(), first[k]) << "two threads, tensor " << k;
  }
};

TEST_P(Flat, DivideAndScale) {
  const Tensor x = random(1), y = random(2);
  check(
      {x}, [&](FlatOps& f) { f.divide(x, 3); }, [](size_t, size_t i, const auto& b) { return b[0][i] / 3; });
  check(
      {x, y}, [&](FlatOps& f) { f.scale(x, 0.3, y, Write::overwrite); },
      [](size_t k, size_t i, const auto& b) { return k == 0 ? b[0][i] : 0.3 * b[0][i]; });
  check(
      {x, y}, [&](FlatOps& f) { f.scale(x, -1.7, y, Write::accumulate); },
      [](size_t k, size_t i, const auto& b) { return k == 0 ? b[0][i] : b[1][i] - 1.7 * b[0][i]; });
  check(
      {x}, [&](FlatOps& f) { f.scale(x, 2, x, Write::overwrite); }, [](size_t, size_t i, const auto& b) { return 2 * b[0][i]; });
}

TEST_P(Flat, DisplacementFromWhereTheBlockBegan) {
  const Tensor value = random(1), merged = random(2), step = random(3), out = random(4), sent = random(5);
  check(
      {out, sent, value},
      [&](FlatOps& f) {
        f.displacement({.value = value, .merged = merged, .step = step, .momentum = 0.9, .displacement = out, .sent = sent});
      },
      [&, m = merged.to_doubles(), s = step.to_doubles()](size_t k, size_t i, const auto& b) {
        return k == 0 ? b[2][i] - (m[i] + 0.9 * s[i]) : b[2][i];
      });
  check(
      {out}, [&](FlatOps& f) { f.displacement({.value = value, .merged = merged, .step = {}, .displacement = out, .sent = {}}); },
      [v = value.to_doubles(), m = merged.to_doubles()](size_t, size_t i, const auto&) { return v[i] - m[i]; });
}

// The four ways to go on after a merge, with and without an outer momentum.
TEST_P(Flat, OuterStep) {
  const Tensor sum = random(1), value = random(2), merged = random(3), step = random(4), sent = random(5);
  const Values s = sum.to_doubles(), t = sent.to_doubles();
  const auto test = [&](const OuterStep& o) {
    check(
        {value, merged, step}, [&](FlatOps& f) { f.outer_step(o); },
        [&](size_t k, size_t i, const std::vector<Values>& b) {
          const double move = o.step ? o.momentum * b[2][i] + o.rate * s[i] : o.rate * s[i];
          const double now = b[1][i] + move + o.anchor * move, start = now + o.ahead * move;
          if (k == 2) return o.step ? move : b[2][i];
          if (k == 1) return now;
          if (!o.sent) return start;
          return o.corrected ? start + (b[0][i] - t[i]) : o.keep * b[0][i] + (1 - o.keep) * start;
        });
  };
  OuterStep o{.sum = sum, .value = value, .merged = merged, .step = {}, .sent = {}, .rate = 0.25};
  test(o);
  o.step = step, o.momentum = 0.9;
  test(o);
  o.ahead = 0.9;
  test(o);
  o.ahead = 0, o.anchor = 0.9;
  test(o);
  o.sent = sent, o.corrected = true;
  test(o);
  o.corrected = false, o.keep = 0.3;
  test(o);
}

TEST_P(Flat, DelayCompensation) {
  const Tensor g = random(1), now = random(2), then = random(3);
  check(
      {g}, [&](FlatOps& f) { f.compensate(g, now, then, 0.5); },
      [a = now.to_doubles(), b = then.to_doubles()](size_t, size_t i, const auto& before) {
        const double x = before[0][i];
        return x + 0.5 * x * x * (a[i] - b[i]);
      });
}

TEST_P(Flat, CollectTakesEverythingAndNamesWhatIsNotFinite) {
  const Tensor bad({1}, DType::f64);
  const Tensor x = random(1), residual = random(2), velocity = random(3), y = random(4);
  check(
      {y, residual, velocity}, [&](FlatOps& f) { f.collect(x, residual, 0.5, velocity, 0.9, y, 0, bad); },
      [v = x.to_doubles()](size_t k, size_t i, const auto& b) { return k == 0 ? 0.5 * b[1][i] + 0.9 * b[2][i] + v[i] : 0; });
  check(
      {y, residual}, [&](FlatOps& f) { f.collect(x, residual, 1, {}, 0.9, y, 0, bad); },
      [v = x.to_doubles()](size_t k, size_t i, const auto& b) { return k == 0 ? b[1][i] + v[i] : 0; });
  Values values = x.to_doubles();
  values[17003] = INFINITY;
  x.from_doubles(values);
  EXPECT_EQ(bad.data<double>()[0], 0);
  make_host_flat_ops(2)->collect(x, residual, 1, {}, 0, y, 500, bad);
  EXPECT_EQ(bad.data<double>()[0], 500 + 17003 + 1);
}

TEST_P(Flat, VectorsOfAGivenLength) {
  const Tensor v = random(1), y = random(2), scale({1}, GetParam());
  scale.from_doubles(std::vector<double>{-3});
  double squares = 0;
  for (const double x : v.to_doubles()) squares += x * x;
  check(
      {y}, [&](FlatOps& f) { f.rescale(v, scale, y); },
      [&, x = v.to_doubles()](size_t, size_t i, const auto&) { return -3 * x[i] / std::sqrt(squares); });
}

// Against central differences of the scalar sum of c_i y_i.
TEST_P(Flat, GradientsOfVectorsOfAGivenLength) {
  if (GetParam() != DType::f64) GTEST_SKIP() << "differences of f32 are too coarse";
  const auto flat = make_host_flat_ops(1);
  const Tensor v({5}, DType::f64), scale({1}, DType::f64), c({5}, DType::f64), y({5}, DType::f64), dv({5}, DType::f64), ds({1}, DType::f64);
  v.from_doubles(std::vector<double>{0.3, -1.2, 0.7, 2, -0.1}), scale.from_doubles(std::vector<double>{1.7});
  c.from_doubles(std::vector<double>{1, -2, 0.5, 0.25, 3});
  const auto scalar = [&] {
    flat->rescale(v, scale, y);
    double sum = 0;
    for (int i = 0; i < 5; ++i) sum += c.data<double>()[i] * y.data<double>()[i];
    return sum;
  };
  const auto slope = [&](double& x) {
    const double saved = x, h = 1e-6;
    x = saved + h;
    const double up = scalar();
    x = saved - h;
    const double down = scalar();
    x = saved;
    return (up - down) / (2 * h);
  };
  flat->rescale_backward(c, v, scale, dv, ds, Write::overwrite);
  for (int i = 0; i < 5; ++i) EXPECT_NEAR(dv.data<double>()[i], slope(v.data<double>()[i]), 1e-8) << i;
  EXPECT_NEAR(ds.data<double>()[0], slope(scale.data<double>()[0]), 1e-8);
  const std::vector<double> once = dv.to_doubles();
  flat->rescale_backward(c, v, scale, dv, ds, Write::accumulate);
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(dv.to_doubles()[i], 2 * once[i]);
}

TEST_P(Flat, RowsOnTheWire) {
  const auto flat = make_host_flat_ops(2);
  const Tensor x({4, 2}, GetParam()), wire({3, 4}, GetParam());
  x.from_doubles(Values{1, 2, 3, 4, 5, 6, 7, 8});
  const Ints rows(std::vector<int32_t>{3, 0, 2}), numbers(std::vector<int32_t>{30, 10, 20});
  flat->pack_rows(x, rows, numbers, 2, wire);
  EXPECT_EQ(wire.to_doubles(), (Values{30, 0, 7, 8, 10, 0, 1, 2, 20, 0, 5, 6}));
  flat->pack_rows(x.rows(0, 3), {}, numbers, 2, wire);
  EXPECT_EQ(wire.to_doubles(), (Values{30, 0, 1, 2, 10, 0, 3, 4, 20, 0, 5, 6}));
  const Ints places(std::vector<int32_t>{1, 2, 1});
  const Tensor sums({3, 2}, GetParam());
  flat->add_to_rows(x.rows(1, 4), places, sums);
  flat->pack_rows(sums, {}, rows, 2, wire);
  EXPECT_EQ(wire.to_doubles(), (Values{3, 0, 0, 0, 0, 0, 10, 12, 2, 0, 5, 6}));
  flat->add_rows(wire, 2, x);
  EXPECT_EQ(x.to_doubles(), (Values{11, 14, 3, 4, 10, 12, 7, 8}));
  flat->pack_rows(sums, {}, std::vector<int32_t>{4, 0, 0}, 2, wire);
  EXPECT_THROW(flat->add_rows(wire, 2, x), Error) << "there is no row 4";
}

TEST_P(Flat, RowsWithoutNumbers) {
  const auto flat = make_host_flat_ops(1);
  const Tensor x({3, 2}, GetParam()), y({2, 2}, GetParam());
  x.from_doubles(Values{1, 2, 3, 4, 5, 6});
  const Ints rows(std::vector<int32_t>{2, 0});
  flat->pack_rows(x, rows, rows, 0, y);
  EXPECT_EQ(y.to_doubles(), (Values{5, 6, 1, 2}));
}

INSTANTIATE_TEST_SUITE_P(Types, Flat, testing::Values(DType::f32, DType::f64),
                         [](const auto& info) { return std::string(name_of(info.param)); });

// Ranks of unlike hosts must come to the same number, to the last bit: that of pieces of 4,096 in order, then of their sums in order.
TEST_P(Flat, SquaresAreAddedInOrderInDouble) {
  const Tensor x = random(1);
  ASSERT_GT(x.count(), 3 * 4096);
  const Values values = x.to_doubles();
  double squares = 0;
  for (size_t begin = 0; begin < values.size(); begin += 4096) {
    double piece = 0;
    for (size_t i = begin; i < std::min(begin + 4096, values.size()); ++i) piece += values[i] * values[i];
    squares += piece;
  }
  const Tensor sum({1}, DType::f64);
  make_host_flat_ops(1)->squares_in_order(x, sum);
  EXPECT_EQ(sum.data<double>()[0], squares);
  make_host_flat_ops(2)->squares_in_order(x, sum);
  EXPECT_EQ(sum.data<double>()[0], squares);
}

// By hand: 0.5 ln 2 + 2 ln 10, and for a probability of zero that of the least.
TEST_P(Flat, TheLossAlongLinksAndItsGradient) {
  const Tensor p({4}, GetParam()), dp({4}, GetParam()), sum({1}, DType::f64);
  p.from_doubles(Values{0.1, 0.5, 0.4, 0});
  dp.from_doubles(Values{9, 9, 9, 9});
  sum.from_doubles(Values{3});
  const HostDeviceArray<float> weights(std::vector<float>{0.5f, 2, 1}, host_memory());
  make_host_flat_ops(1)->link_loss(p, Ints(std::vector<int32_t>{1, 0, 3}, host_memory()), weights, dp, sum);
  EXPECT_NEAR(sum.to_doubles()[0], 3 + 0.5 * std::log(2.0) + 2 * std::log(10.0) + 30 * std::log(10.0), 1e-5);
  const Values gradient = dp.to_doubles();
  EXPECT_NEAR(gradient[0], -20, 1e-5);
  EXPECT_NEAR(gradient[1], -1, 1e-6);
  EXPECT_EQ(gradient[2], 0);
  EXPECT_NEAR(gradient[3] / -1e30, 1, 1e-6);
}

TEST(Flat, ConvertRoundsToNearestEven) {
  const auto flat = make_host_flat_ops(2);
  const Tensor x({3}, DType::f32), y({3}, DType::bf16), z({3}, DType::f32);
  x.from_doubles(Values{1, 1 + std::ldexp(1.0, -8), -(1 + 3 * std::ldexp(1.0, -8))});
  flat->convert(x, y);
  flat->convert(y, z);
  EXPECT_EQ(z.to_doubles(), (Values{1, 1, -(1 + std::ldexp(1.0, -6))}));
}

}  // namespace
}  // namespace starling
