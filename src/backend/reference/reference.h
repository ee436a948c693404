// The naive double-precision backend and the sinusoidal position signal it defines.
#pragma once

#include <cstdint>
#include <memory>

#include "backend/backend.h"

namespace starling {

std::unique_ptr<Backend> make_reference_backend();

// Position signal: sines in the first half of the columns, cosines in the second, wavelengths from 2 pi to 10000 * 2 pi
// (the arrangement of tensor2tensor, which Marian shares).
double sinusoid(int64_t position, int64_t column, int64_t width);

}  // namespace starling
