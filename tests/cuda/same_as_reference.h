// Cases that the op table does not have, on emulated cards against the double-precision reference.
#pragma once

#include "tests/ops/parity.h"

namespace starling {

// In f32, and in bf16 to its precision.
inline void expect_same_as_reference(const std::string& name, std::function<void(CaseContext&)> run) {
  const OpCase op{name, std::move(run)};
  const auto expected = outputs_of(op, *make_backend("reference"));
  for (const auto& [spec, tolerance] : {std::pair{"cuda-emulated:f32", 2e-5}, {"cuda-emulated:bf16", 0.02}}) {
    const auto actual = outputs_of(op, *make_backend(spec));
    ASSERT_EQ(expected.size(), actual.size()) << name;
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_EQ(expected[i].size(), actual[i].size()) << name << " output " << i;
      EXPECT_LT(worst_error(expected[i], actual[i]), tolerance) << name << " output " << i << " on " << spec;
    }
  }
}

}  // namespace starling
