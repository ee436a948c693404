// Selects the parameters that may be 8-bit integers, and quantises them. Their values become what the integers represent, so that lookups
// and other precisions see the same numbers; matrix products then use the integers themselves (Backend::pack_int8). See
// docs/guides/quantization.md.
#pragma once

#include <vector>

#include "backend/int8.h"
#include "models/model.h"

namespace starling {

struct QuantizableMatrix {
  Parameter* parameter = nullptr;
  bool by_row = false;  // embedding table or output projection [V, D]: one scale per row; otherwise [in, out]: one per column
};

// Returns all matrices of a model in its order: weights of products, and embedding tables.
std::vector<QuantizableMatrix> quantizable_matrices(Model& model);

// Rounds the values to what their integers represent. For inference, before any view of the model is made.
void quantize(const QuantizableMatrix& matrix);
void quantize_all(Model& model);

// Sets whether products use integers from now on, and drops packed matrices. Values do not change.
void set_quantized(Parameter& parameter, bool quantized);

}  // namespace starling
