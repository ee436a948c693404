#include "decode/quantization.h"

namespace starling {

std::vector<QuantizableMatrix> quantizable_matrices(Model& model) {
  const std::vector<EmbeddingTable> tables = model.embedding_tables();
  std::vector<QuantizableMatrix> matrices;
  for (Parameter& p : model.parameters().all()) {
    if (p.shape.rank() != 2 || p.name.ends_with(".positions")) continue;  // tables of positions are small
    bool table = false;
    for (const EmbeddingTable& t : tables) table |= t.table == &p;
    matrices.push_back({&p, table});
  }
  return matrices;
}

void set_quantized(Parameter& parameter, bool quantized) {
  parameter.quantized = quantized;
  parameter.packed = std::make_shared<PackedForms>();
}

void quantize(const QuantizableMatrix& matrix) {
  Parameter& p = *matrix.parameter;
  const Int8Matrix integers = round_to_int8(p.value, matrix.by_row);
  std::vector<double> values(p.shape.count());
  for (int64_t r = 0; r < p.shape[0]; ++r)
    for (int64_t c = 0; c < p.shape[1]; ++c) values[r * p.shape[1] + c] = integers.value(r, c);
  p.value.from_doubles(values);
  set_quantized(p, true);
}

void quantize_all(Model& model) {
  for (const QuantizableMatrix& m : quantizable_matrices(model)) quantize(m);
}

}  // namespace starling
