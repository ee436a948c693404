// Vectorised loops over rows, written once with the compiler's vector types and compiled for each instruction set (STARLING_ISA): the table
// of them, from its parts. Sums are f32.
#include "backend/cpu/kernels/kernels.h"

#include "backend/cpu/kernels/table_parts.h"

namespace starling::kernels::STARLING_ISA {
namespace {

template <class T>
Table make_table() {
  Table t{};
  set_rows<T>(t);
  set_recurrent<T>(t);
  set_attention<T>(t);
  if constexpr (sizeof(T) == 2) set_pair_attention(t);
  set_output<T>(t);
  set_int8<T>(t);
  set_optimizer_steps(t);
  set_products<T>(t);
  return t;
}

}  // namespace

const Table& table(DType activation) {
  static const Table f32 = make_table<float>(), narrow = make_table<bf16>();
  return activation == DType::bf16 ? narrow : f32;
}

}  // namespace starling::kernels::STARLING_ISA
