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
// Whether oneDNN multiplies bf16 by AMX, and whether an instruction of AVX512-BF16 makes more products a second than one of f32: measured
// once a process. STARLING_ISA=v4_bf16 says no and yes.
bool multiplies_bf16_by_tiles();
bool multiplies_pairs_fast();
const kernels::CompressionTable& compression_table();

}  // namespace starling
