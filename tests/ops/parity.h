// Every case of the table on a backend against the double-precision reference.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/ops/cases.h"

namespace starling {

inline std::vector<std::vector<double>> outputs_of(const OpCase& op, Backend& backend) {
  CaseContext context(backend, 42);
  op.run(context);
  return context.outputs;
}

// Largest error relative to the value plus the output's root mean square.
inline double worst_error(const std::vector<double>& expected, const std::vector<double>& actual) {
  double squares = 0, worst = 0;
  for (double x : expected) squares += x * x;
  const double unit = std::max(std::sqrt(squares / std::max<size_t>(expected.size(), 1)), 1e-6);
  for (size_t i = 0; i < expected.size(); ++i)
    worst = std::max(worst, std::isnan(actual[i]) ? INFINITY : std::abs(expected[i] - actual[i]) / (unit + std::abs(expected[i])));
  return worst;
}

inline void compare_with_reference(const std::string& spec, double tolerance, const std::string& part = "") {
  const auto reference = make_backend("reference");
  const auto backend = make_backend(spec, 2);
  for (const OpCase& op : op_cases()) {
    if (op.name.find(part) == std::string::npos) continue;
    const auto expected = outputs_of(op, *reference), actual = outputs_of(op, *backend);
    ASSERT_EQ(expected.size(), actual.size()) << op.name;
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_EQ(expected[i].size(), actual[i].size()) << op.name << " output " << i;
      EXPECT_LT(worst_error(expected[i], actual[i]), tolerance) << op.name << " output " << i << " on " << backend->describe();
    }
  }
}

}  // namespace starling
