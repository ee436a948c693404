// With STARLING_TEST_BACKEND=queued in the environment, make_backend gives every backend of this test program wrapped in a queued one: so
// what passes on a backend is run again as on a device (tests/CMakeLists.txt, label `queued`).
#include <cstdlib>
#include <string_view>

#include "backend/cpu/cpu.h"
#include "backend/reference/reference.h"
#include "tests/queued/queued_backend.h"

namespace starling {
namespace {

std::unique_ptr<Backend> queued(std::unique_ptr<Backend> inner) { return std::make_unique<QueuedBackend>(std::move(inner)); }

bool register_queued() {
  const char* asked = std::getenv("STARLING_TEST_BACKEND");
  if (asked == nullptr || std::string_view(asked) != "queued") return false;
  for (const char* spec : {"cpu", "cpu:f32"})
    register_backend(spec, [](int threads) { return queued(make_cpu_backend(DType::f32, threads)); });
  if (cpu_has_bf16()) register_backend("cpu:bf16", [](int threads) { return queued(make_cpu_backend(DType::bf16, threads)); });
  register_backend("reference", [](int) { return queued(make_reference_backend()); });
  return true;
}

const bool kRegistered = register_queued();

}  // namespace
}  // namespace starling
