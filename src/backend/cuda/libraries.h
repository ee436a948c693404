// NVIDIA's libraries, which the program opens when it needs them: a build with CUDA starts on machines that have none of them.
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

// Value of a variable of the environment; null where it is not set.
using Environment = std::function<const char*(const char* name)>;
// The folders in which NVIDIA's libraries may lie beside the system's own: CUDA's (CUDA_HOME, CUDA_PATH, /usr/local/cuda*), and those of
// Python packages such as PyTorch's (VIRTUAL_ENV, CONDA_PREFIX, the python3 of PATH, ~/.local, /usr/local, /usr). Only those that exist.
std::vector<std::filesystem::path> nvidia_folders(const Environment& environment);

// The library of this file name, opened once and kept until the program ends.
const SharedLibrary& nvidia_library(const std::string& name);

// Defines a function that the headers of `library`, a SharedLibrary, declare: it calls the library's.
#define STARLING_FORWARD(library, result, name, parameters, arguments)                           \
  result name parameters {                                                                       \
    static auto* const function = (library).find<std::remove_pointer_t<decltype(&name)>>(#name); \
    return function arguments;                                                                   \
  }

// Why products cannot be computed on cards here; "" where cuBLASLt is.
std::string cublaslt_problem();

}  // namespace starling::STARLING_CUDA
