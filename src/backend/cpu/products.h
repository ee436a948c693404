// Matrix products through oneDNN. A primitive is made once for each shape and kept; weights are packed into the layout oneDNN
// prefers, which does not depend on the number of rows; scratch memory is one shared buffer.
#pragma once

#include <list>
#include <memory>
#include <unordered_map>

#include "backend/backend.h"

namespace starling {

class Products {
 public:
  explicit Products(DType activation);
  ~Products();

  std::shared_ptr<Packed> pack(const Tensor& w, bool transposed, std::shared_ptr<Packed> reuse);
  void linear(const Tensor& x, const Packed& w, const Tensor& b, const Tensor& y, Activation activation, Write write);
  void weight_gradient(const Tensor& a, const Tensor& c, const Tensor& dw, Write write);

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace starling
