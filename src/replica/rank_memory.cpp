#include "replica/rank_memory.h"

namespace starling {

double TensorsOfKind::bytes() const {
  double sum = 0;
  for (const Tensor& x : tensors) sum += static_cast<double>(x.bytes());
  return sum;
}

std::vector<TensorsOfKind> tensors_by_kind(Replica& replica) {
  const ParameterStore& store = replica.model().parameters();
  TensorsOfKind optimizer{"optimizer", {}}, copies{"copies", {}}, strategy{"strategy", {}};
  for (const auto& [name, tensor] : replica.optimizer().state()) optimizer.tensors.push_back(tensor);
  if (replica.average()) optimizer.tensors.push_back(replica.average());
  for (const Parameter* p : store.declared())
    if (p->hold == Parameter::copied) copies.tensors.insert(copies.tensors.end(), {p->value, p->gradient});
  for (const Strategy::StateTensor& t : replica.strategy_state()) strategy.tensors.push_back(t.tensor);
  return {{"parameters", {store.values()}}, {"gradients", {store.gradients()}}, optimizer, copies, strategy};
}

RankMemory memory_of(Replica& replica) {
  const ParameterStore& store = replica.model().parameters();
  const std::vector<TensorsOfKind> kinds = tensors_by_kind(replica);
  RankMemory m;
  m.parameters = kinds[0].bytes(), m.gradients = kinds[1].bytes(), m.optimizer = kinds[2].bytes();
  m.copies = kinds[3].bytes(), m.strategy = kinds[4].bytes();
  const std::vector<EmbeddingTable> tables = replica.model().embedding_tables();
  for (const Parameter* p : store.declared()) {
    if (p->hold == Parameter::absent) continue;
    const EmbeddingTable* table = table_of(tables, *p);
    const bool multiplied = !table ? p->shape.rank() == 2 : table->output && replica.model().has_output();
    if (multiplied) m.packed += 2.0 * static_cast<double>(p->shape.count() * size_of(store.backend().activation()));
  }
  m.activations = static_cast<double>(replica.activation_bytes());
  return m;
}

double pass_of_whole_batch(Model& model, const Batch& batch) {
  Arena arena(model.parameters().backend().memory());
  GradientSum sum(model.parameters());
  Tape tape(model.parameters(), arena, sum, 1, 1);
  model.loss(tape, batch, 0.1);
  tape.backward();
  return static_cast<double>(arena.most_used());
}

}  // namespace starling
