// NVIDIA's libraries, which the program opens on demand: a build with CUDA also starts on machines that have none of them.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include "base/shared_library.h"

#ifndef STARLING_CUDA
#define STARLING_CUDA cuda
#endif

namespace starling::STARLING_CUDA {

// The value of an environment variable; null if it is not set.
using Environment = std::function<const char*(const char* name)>;
// The existing folders, besides the system's own, in which NVIDIA's libraries may lie: CUDA's (CUDA_HOME, CUDA_PATH, /usr/local/cuda*), and
// those of Python packages such as PyTorch's (VIRTUAL_ENV, CONDA_PREFIX, the python3 of PATH, ~/.local, /usr/local, /usr).
std::vector<std::filesystem::path> nvidia_folders(const Environment& environment);

// Returns the library of this file name, which is opened once and kept until the program ends.
const SharedLibrary& nvidia_library(const std::string& name);

// Defines a function that is declared in the headers of `library`, a SharedLibrary: it calls the library's.
#define STARLING_FORWARD(library, result, name, parameters, arguments)                           \
  result name parameters {                                                                       \
    static auto* const function = (library).find<std::remove_pointer_t<decltype(&name)>>(#name); \
    return function arguments;                                                                   \
  }

// Why products cannot be computed on cards here; "" if cuBLASLt is available.
std::string cublaslt_problem();

}  // namespace starling::STARLING_CUDA
