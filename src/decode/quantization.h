// Which parameters of a model may be 8-bit integers, and turning them so. Values become what the integers stand for, so that lookups and
// other precisions see the same numbers; matrix products then use the integers themselves (Backend::pack_int8).
// docs/explanation/quantization.md.
#pragma once

#include <vector>

#include "backend/int8.h"
#include "models/model.h"

namespace starling {

struct QuantizableMatrix {
  Parameter* parameter = nullptr;
  bool by_row = false;  // an embedding table or output projection [V, D]: one scale a row; else [in, out]: one a column
};

// All matrices of a model, in its order: weights of products and embedding tables.
std::vector<QuantizableMatrix> quantizable_matrices(Model& model);

// The values become what their integers stand for. For inference, before any view of the model is made.
void quantize(const QuantizableMatrix& matrix);
void quantize_all(Model& model);

// Tells products whether to use integers from here on; what was packed is forgotten. Values stay as they are.
void set_quantized(Parameter& parameter, bool quantized);

}  // namespace starling
