// In the place of cuda/ where the program was built without it.
#include "backend/cuda/cuda.h"

namespace starling::STARLING_CUDA {

std::unique_ptr<Backend> make_cuda_backend(int, DType) { throw ConfigError(describe_cuda()); }
bool has_cuda() { return false; }
int cuda_devices() { return 0; }
std::string describe_cuda() { return "this program was built without CUDA; build it with 'make build CUDA=1' (docs/guides/gpu.md)"; }

}  // namespace starling::STARLING_CUDA
