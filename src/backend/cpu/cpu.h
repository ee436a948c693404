// The CPU backend: vectorised loops, some of oneDNN's matrix products, OpenMP threads with fixed ranges.
#pragma once

#include <memory>

#include "backend/backend.h"

namespace starling {

// activation is f32 or bf16. threads 0 = the cores of the affinity mask. Throws ConfigError if the system does not give that many.
std::unique_ptr<Backend> make_cpu_backend(DType activation, int threads);

}  // namespace starling
