// Chooses the instruction set of the vectorised loops at run time, so that one build runs on any x86-64-v2 machine; on 64-bit Arm
// there is only NEON.
#pragma once

#include <string>

#include "backend/cpu/kernels/compression.h"
#include "backend/cpu/kernels/kernels.h"

namespace starling {

const kernels::Table& kernel_table(DType activation);
// Whether products of 8-bit integers are our own (vnni/), and whether they may use AMX.
bool multiplies_by_vnni();
bool multiplies_by_tiles();
const kernels::CompressionTable& compression_table();

}  // namespace starling
