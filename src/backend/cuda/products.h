// Matrix products through cuBLASLt. Its matrices are column-major: a row-major [rows, columns] is its [columns, rows], so y = x w is
// computed as y^T = w^T x^T. The library's choice for a product is cached, by everything that it depends on.
#pragma once

#include <cublasLt.h>

#include <map>
#include <memory>
#include <mutex>
#include <tuple>

#include "backend/backend.h"
#include "backend/cuda/device.h"

namespace starling::STARLING_CUDA {

// A weight for products, in activation type; 8-bit weights are stored as integers of that type.
struct PackedWeight : Packed {
  Tensor values;  // [in, out], or [out, in] when transposed; f32: the parameters themselves
  bool transposed = false;
  Tensor scales;  // f32 [out], of 8-bit weights
  float input_bound = 0;

  // Of a constant weight: its bias in activation type, once it has been used.
  mutable std::mutex mutex;
  mutable Tensor bias;
  mutable const void* bias_from = nullptr;  // the parameter that it is a copy of
};

// d [m, n] = op(a) [m, k] op(b) [k, n], column-major, or d += that; then the bias [m] is added and relu applied.
struct Product {
  const void *a, *b;
  void* d;
  bool transpose_a = false, transpose_b = false;
  int64_t m, n, k, lda, ldb, ldd;
  DType in, out;  // of a and b; of d and the bias
  const void* bias = nullptr;
  bool relu = false, accumulate = false;
};

class Products {
 public:
  explicit Products(CudaDevice& device);
  ~Products();
  Products(const Products&) = delete;
  Products& operator=(const Products&) = delete;
  void multiply(const Product& p);

 private:
  // Sizes, types, epilogue, accumulation and the alignment of each address.
  using Key = std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int, int, int, int, int, int>;
  struct Plan;
  Plan& plan_for(const Product& p);

  CudaDevice& device_;
  cublasLtHandle_t handle_ = nullptr;
  std::map<Key, std::unique_ptr<Plan>> plans_;
  std::unique_ptr<Storage> workspace_;
};

}  // namespace starling::STARLING_CUDA
