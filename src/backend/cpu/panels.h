// Weights in the layouts of our own products.
#pragma once

#include <memory>

#include "backend/cpu/products.h"
#include "backend/cpu/vnni/int8_product.h"
#include "tensor/tensor.h"

namespace starling {

struct Panels : Packed {
  std::unique_ptr<Storage> storage;
  const std::byte* values() const { return storage->data(); }  // layout: kernels::PanelProduct
};

struct Int8Panels : PackedInt8 {
  std::unique_ptr<Storage> values, offsets, padded_scales;  // layout: vnni::Weight
  // Outputs [first, first + n); first is a multiple of vnni::kPanel.
  vnni::Weight part(int64_t first, int64_t n) const {
    return {in, n, reinterpret_cast<const int8_t*>(values->data()) + first * vnni::padded_in(in),
            reinterpret_cast<const int32_t*>(offsets->data()) + first, reinterpret_cast<const float*>(padded_scales->data()) + first};
  }
};

}  // namespace starling
