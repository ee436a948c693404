// The parts of the table, each filled by the file of the same name, for one instruction set and activations of type T.
#pragma once

#include "backend/cpu/kernels/kernels.h"

namespace starling::kernels::STARLING_ISA {

template <class T>
void set_rows(Table&);
template <class T>
void set_recurrent(Table&);
template <class T>
void set_attention(Table&);
template <class T>
void set_output(Table&);
template <class T>
void set_int8(Table&);
void set_pair_attention(Table&);
void set_optimizer_steps(Table&);
template <class T>
void set_products(Table&);

}  // namespace starling::kernels::STARLING_ISA
