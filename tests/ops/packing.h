// The ways to pack a weight.
#pragma once

#include "backend/backend.h"

namespace starling {

enum class Packing { changing, constant, int8 };

inline std::shared_ptr<Packed> pack(Backend& backend, const Tensor& w, Packing packing) {
  if (packing == Packing::int8) return backend.pack_int8(w, false, 0);
  return packing == Packing::constant ? backend.pack_constant(w, false) : backend.pack(w, false, nullptr);
}

}  // namespace starling
