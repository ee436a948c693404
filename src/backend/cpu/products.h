// Matrix products through oneDNN: of f32 in training, of bf16 where ours are not taken (cpu_backend.h), and of 8-bit weights without VNNI.
// A primitive is made once per shape and kept; weights are packed into the layout that oneDNN prefers, which does not depend on the number
// of rows; scratch memory is one buffer per thread. Many rows are multiplied in chunks, each by one thread.
#pragma once

#include <list>
#include <memory>
#include <unordered_map>

#include "backend/backend.h"

namespace starling {

// What a quantised product needs besides the integers, which are inside in oneDNN's layout.
struct PackedInt8 : Packed {
  bool panels = false;        // packed for our own product instead of oneDNN's
  std::vector<float> scales;  // [out]
  float input_bound = 0;      // 0: each row's largest magnitude
  bool integers = true;       // false: multiplied as f32, with the same results to within f32 rounding
};

class Products {
 public:
  explicit Products(DType activation);
  ~Products();

  // steady: a row of the product has the same bits however many rows there are.
  std::shared_ptr<Packed> pack(const Tensor& w, bool transposed, std::shared_ptr<Packed> reuse, bool steady = false);
  void linear(const Tensor& x, const Packed& w, const Tensor& b, const Tensor& y, Activation activation, Write write);
  // Packs an 8-bit weight. If the processor cannot multiply 8-bit integers exactly at speed (no VNNI), they are kept as floats.
  std::shared_ptr<Packed> pack_int8(const Tensor& w, bool transposed, double input_bound);
  bool multiplies_int8() const;  // false: as floats
  // sums [N, out] = x [N, in] times the integers of an 8-bit weight; x is i8 and sums are i32 where w.integers, else both are f32.
  void multiply_int8(const Tensor& x, const PackedInt8& w, const Tensor& sums);
  void weight_gradient(const Tensor& a, const Tensor& c, const Tensor& dw, Write write);

 private:
  void linear_rows(const Tensor& x, const Packed& w, const Tensor& b, const Tensor& y, Activation activation, Write write);
  void multiply_rows(const Tensor& x, const PackedInt8& w, const Tensor& sums);
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace starling
