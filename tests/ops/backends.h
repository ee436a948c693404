// The backends whose numbers are written down or compared: the reference, and the cpu with each set of instructions.
#pragma once

#include <cstdlib>
#include <memory>
#include <vector>

#include "backend/backend.h"

namespace starling {

struct BackendCase {
  const char *spec, *isa;
};
inline constexpr BackendCase kBackends[] = {{"reference", ""}, {"cpu:f32", "v2"}, {"cpu:f32", "v3"}, {"cpu:f32", "v4"}};

inline std::unique_ptr<Backend> make(const BackendCase& b) {
  setenv("STARLING_ISA", b.isa, 1);
  auto backend = make_backend(b.spec, 1);
  unsetenv("STARLING_ISA");
  return backend;
}

inline Tensor tensor_of(Backend& backend, const std::vector<double>& values) {
  const Tensor t({static_cast<int64_t>(values.size())}, backend.parameter(), backend.memory());
  t.from_doubles(values);
  return t;
}

}  // namespace starling
