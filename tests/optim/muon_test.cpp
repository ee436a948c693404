// Muon's steps against singular value decompositions, and against its equations, in double precision.
#include "optim/muon.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"
#include "optim/optimizer.h"

namespace starling {
namespace {

using Matrix = std::vector<std::vector<double>>;  // by column

// Singular values and both bases of a, n >= m, by one-sided Jacobi rotations (Hestenes 1958): a becomes u s, v the product of rotations.
struct Svd {
  Matrix u, v;
  std::vector<double> s;
};
Svd svd(Matrix a) {
  const size_t m = a.size(), n = a[0].size();
  Svd r{a, Matrix(m, std::vector<double>(m, 0.0)), std::vector<double>(m)};
  for (size_t i = 0; i < m; ++i) r.v[i][i] = 1;
  const auto dot = [](const std::vector<double>& x, const std::vector<double>& y) {
    double sum = 0;
    for (size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
    return sum;
  };
  for (int sweep = 0; sweep < 60; ++sweep)
    for (size_t p = 0; p < m; ++p)
      for (size_t q = p + 1; q < m; ++q) {
        const double alpha = dot(r.u[p], r.u[p]), beta = dot(r.u[q], r.u[q]), gamma = dot(r.u[p], r.u[q]);
        if (std::fabs(gamma) <= 1e-16 * std::sqrt(alpha * beta)) continue;
        const double zeta = (beta - alpha) / (2 * gamma);
        const double t = (zeta >= 0 ? 1 : -1) / (std::fabs(zeta) + std::sqrt(1 + zeta * zeta)), c = 1 / std::sqrt(1 + t * t);
        for (Matrix* w : {&r.u, &r.v})
          for (size_t i = 0; i < (*w)[p].size(); ++i) {
            const double x = (*w)[p][i], y = (*w)[q][i];
            (*w)[p][i] = c * x - c * t * y, (*w)[q][i] = c * t * x + c * y;
          }
      }
  for (size_t j = 0; j < m; ++j) {
    r.s[j] = std::sqrt(dot(r.u[j], r.u[j]));
    for (size_t i = 0; i < n; ++i) r.u[j][i] /= r.s[j];
  }
  return r;
}

// What Newton-Schulz makes of a singular value, over 1.05 times the fourth root of the sum of all their fourth powers.
double mapped(double x) {
  for (const NewtonSchulz& p : newton_schulz()) x = p.a * x + p.b * x * x * x + p.c * std::pow(x, 5);
  return x;
}

// Row-major n x m, orthogonalised by its decomposition.
std::vector<double> orthogonal(const std::vector<double>& x, size_t n, size_t m) {
  const bool tall = n >= m;
  const size_t rows = tall ? n : m, columns = tall ? m : n;
  Matrix a(columns, std::vector<double>(rows));
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < m; ++j) (tall ? a[j][i] : a[i][j]) = x[i * m + j];
  const Svd d = svd(a);
  double fourth = 0;
  for (const double s : d.s) fourth += std::pow(s, 4);
  std::vector<double> y(n * m, 0.0);
  for (size_t k = 0; k < columns; ++k) {
    const double s = mapped(d.s[k] / (1.05 * std::pow(fourth, 0.25)));
    for (size_t i = 0; i < rows; ++i)
      for (size_t j = 0; j < columns; ++j) (tall ? y[i * m + j] : y[j * m + i]) += s * d.u[k][i] * d.v[k][j];
  }
  return y;
}

std::vector<double> noise(size_t count, uint64_t seed) {
  Random random(seed, 0);
  std::vector<double> x(count);
  for (double& v : x) v = static_cast<float>(random.normal());
  return x;
}

double distance(const std::vector<double>& a, const std::vector<double>& b) {
  double d = 0, n = 0;
  for (size_t i = 0; i < a.size(); ++i) d += (a[i] - b[i]) * (a[i] - b[i]), n += b[i] * b[i];
  return std::sqrt(d / n);
}

TEST(Muon, TakesSingularValuesThroughItsPolynomials) {
  for (const auto& [backend_name, tolerance] : {std::pair("reference", 1e-12), std::pair("cpu:f32", 1e-5), std::pair("cpu:bf16", 0.05)}) {
    const auto backend = make_backend(backend_name, 2);
    Muon muon(*backend);
    for (const auto& [n, m] :
         {std::pair(12, 7), std::pair(7, 12), std::pair(33, 33), std::pair(64, 16), std::pair(5, 1), std::pair(1, 4)}) {
      const std::vector<double> x = noise(static_cast<size_t>(n * m), static_cast<uint64_t>(n + m));
      const Tensor t({n, m}, backend->parameter(), backend->memory());
      t.from_doubles(x);
      muon.orthogonalize(t);
      EXPECT_LT(distance(t.to_doubles(), orthogonal(x, static_cast<size_t>(n), static_cast<size_t>(m))), tolerance)
          << backend_name << " " << n << " x " << m;
    }
  }
}

TEST(Muon, PolynomialsBringSingularValuesToAboutOne) {
  for (double x = 0.015; x <= 1; x += 0.0005) {
    EXPECT_GT(mapped(x), 0.99) << x;
    EXPECT_LT(mapped(x), 1.01) << x;
  }
  for (double x = 0; x < 0.015; x += 0.0005) EXPECT_NEAR(mapped(x), 92 * x, 26 * x) << x;  // about in proportion
  EXPECT_EQ(mapped(0), 0);
}

// a x + b x^3 + c x^5 is nearest to 1 on an interval where its error has four extremes of equal size and alternating sign (Chebyshev): at
// both ends, and at the two points between them where the polynomial is flat. The next step begins with the interval that this one leaves.
TEST(Muon, EachPolynomialIsTheBestForWhatTheOneBeforeLeaves) {
  double low = 0.015, high = 1, stretch = 1;
  for (const NewtonSchulz& p : newton_schulz()) {
    const double a = p.a * stretch, b = p.b * std::pow(stretch, 3), c = p.c * std::pow(stretch, 5);
    const auto error = [&](double x) { return 1 - (a * x + b * x * x * x + c * std::pow(x, 5)); };
    const double root = std::sqrt(9 * b * b - 20 * a * c);
    const double hill = std::sqrt((-3 * b - root) / (10 * c)), valley = std::sqrt((-3 * b + root) / (10 * c));
    EXPECT_TRUE(low < hill && hill < valley && valley < high) << low << " " << hill << " " << valley << " " << high;
    const double e = error(low);
    EXPECT_GT(e, 0);
    EXPECT_NEAR(error(hill), -e, 2e-3);  // coefficients of five digits
    EXPECT_NEAR(error(valley), e, 2e-3);
    EXPECT_NEAR(error(high), -e, 2e-3);
    double least = 2, most = 0;
    for (int i = 0; i <= 10000; ++i) {
      const double y = 1 - error((low + (high - low) * i / 10000) / stretch);
      least = std::min(least, y), most = std::max(most, y);
    }
    low = least, high = most, stretch = 1.02;
  }
}

// In bf16 too, whatever the singular values: one alone, which is as large as the bound allows, or all alike.
TEST(Muon, RoundingDoesNotDriveSingularValuesAway) {
  for (const char* name : {"cpu:bf16", "cpu:f32"}) {
    const auto backend = make_backend(name, 1);
    for (uint64_t seed = 0; seed < 50; ++seed)
      for (const int rank : {1, 2, 4, 16}) {
        constexpr size_t n = 24, m = 16;
        std::vector<double> x(n * m, 0.0);
        for (int k = 0; k < rank; ++k) {
          const std::vector<double> u = noise(n, 100 * seed + static_cast<uint64_t>(k)),
                                    v = noise(m, 100 * seed + 50 + static_cast<uint64_t>(k));
          for (size_t i = 0; i < n; ++i)
            for (size_t j = 0; j < m; ++j) x[i * m + j] += u[i] * v[j];
        }
        const Tensor t({n, m}, backend->parameter(), backend->memory());
        t.from_doubles(x);
        Muon(*backend).orthogonalize(t);
        const std::vector<double> y = t.to_doubles();
        Matrix columns(m, std::vector<double>(n));
        for (size_t i = 0; i < n; ++i)
          for (size_t j = 0; j < m; ++j) columns[j][i] = y[i * m + j] + (i == j ? 1e-9 : 0.0);  // nothing is exactly zero
        double largest = 0;
        for (const double s : svd(columns).s) largest = std::max(largest, s);
        EXPECT_GT(largest, 0.85) << name << " rank " << rank << " seed " << seed;
        EXPECT_LT(largest, 1.15) << name << " rank " << rank << " seed " << seed;
      }
  }
}

TEST(Muon, ZerosStayZeros) {
  const auto backend = make_backend("cpu:f32", 1);
  const Tensor t({8, 4}, backend->parameter(), backend->memory());
  t.zero();
  Muon(*backend).orthogonalize(t);
  for (const double v : t.to_doubles()) EXPECT_EQ(v, 0);
}

// Three updates of a flat buffer: a bias, a matrix of two blocks, a bias, a matrix, a table's row; in ranges that cut the first matrix.
TEST(Muon, FollowsItsEquationsAndLeavesTheRestToAdam) {
  for (const char* backend_name : {"reference", "cpu:f32"}) {
    const auto backend = make_backend(backend_name, 2);
    constexpr int64_t n = 16 + 8 * 12 + 16 + 6 * 8 + 16;
    const std::vector<MatrixPlace> places{{16, 8, 12, 2}, {128, 6, 8, 1}};
    OptimizerOptions o, adamw;
    o.optimizer = OptimizerKind::muon, o.weight_decay = 0.1, o.muon_momentum = 0.9;
    adamw = o, adamw.optimizer = OptimizerKind::adamw;
    Optimizer muon(*backend, o, {{0, n}}, places), adam(*backend, adamw, n);
    const Tensor x({n}, backend->parameter(), backend->memory()), y({n}, backend->parameter(), backend->memory()),
        g({n}, backend->parameter(), backend->memory());
    std::vector<double> expected = noise(n, 3), momentum(n, 0.0);
    x.from_doubles(expected), y.from_doubles(expected);
    const double scale = 0.5, rate = 0.01;
    for (int t = 1; t <= 3; ++t) {
      const std::vector<double> gradient = noise(n, static_cast<uint64_t>(10 + t));
      g.from_doubles(gradient);
      adam.begin_update(), adam.update(y, g, scale, rate);
      muon.begin_update();
      for (const auto& [begin, end] : {std::pair(64, int(n)), std::pair(0, 64)}) muon.update(x, g, begin, end, scale, rate);
      for (const MatrixPlace& p : places)
        for (int64_t b = 0; b < p.blocks; ++b) {
          const int64_t w = p.width();
          std::vector<double> u;
          for (int64_t i = 0; i < p.rows; ++i)
            for (int64_t j = 0; j < w; ++j) {
              const auto at = static_cast<size_t>(p.offset + i * p.columns + b * w + j);
              momentum[at] = 0.9 * momentum[at] + 0.1 * scale * gradient[at];
              u.push_back(0.9 * momentum[at] + 0.1 * scale * gradient[at]);
            }
          const std::vector<double> q = orthogonal(u, static_cast<size_t>(p.rows), static_cast<size_t>(w));
          for (int64_t i = 0; i < p.rows; ++i)
            for (int64_t j = 0; j < w; ++j) {
              const auto at = static_cast<size_t>(p.offset + i * p.columns + b * w + j);
              expected[at] -= rate * (0.1 * expected[at] + 0.2 * std::sqrt(8.0) * q[static_cast<size_t>(i * w + j)]);
            }
        }
    }
    const std::vector<double> got = x.to_doubles(), others = y.to_doubles();
    for (int64_t i = 0; i < n; ++i) {
      const auto at = static_cast<size_t>(i);
      const bool in_matrix = (i >= 16 && i < 112) || (i >= 128 && i < 176);
      EXPECT_NEAR(got[at], in_matrix ? expected[at] : others[at], backend->parameter() == DType::f64 ? 1e-13 : 2e-6) << i;
    }
    EXPECT_EQ(muon.flops(0, n), 4 * (2 * (4.0 * 6 * 6 * 8 + 2 * 6 * 6 * 6) + 4.0 * 6 * 6 * 8 + 2 * 6 * 6 * 6));
    EXPECT_EQ(muon.flops(17, 128), 0);
  }
}

}  // namespace
}  // namespace starling
