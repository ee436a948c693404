#include "replica/rank_memory.h"

#include <algorithm>

namespace starling {

double TensorsOfKind::bytes() const {
  double sum = 0;
  for (const Tensor& x : tensors) sum += static_cast<double>(x.bytes());
  return sum;
}

std::vector<TensorsOfKind> tensors_by_kind(Replica& replica) {
  const ParameterStore& store = replica.model().parameters();
  TensorsOfKind optimizer{"optimizer", &RankMemory::optimizer, {}}, copies{"copies", &RankMemory::copies, {}},
      strategy{"strategy", &RankMemory::strategy, {}};
  for (const auto& [name, tensor] : replica.optimizer().state()) optimizer.tensors.push_back(tensor);
  if (replica.average()) optimizer.tensors.push_back(replica.average());
  for (const Parameter* p : store.declared())
    if (p->hold == Parameter::copied) copies.tensors.insert(copies.tensors.end(), {p->value, p->gradient});
  for (const Strategy::StateTensor& t : replica.strategy_state()) strategy.tensors.push_back(t.tensor);
  return {{"parameters", &RankMemory::parameters, {store.values()}},
          {"gradients", &RankMemory::gradients, {store.gradients()}},
          optimizer,
          copies,
          strategy};
}

RankMemory memory_of(Replica& replica) {
  const ParameterStore& store = replica.model().parameters();
  RankMemory m;
  for (const TensorsOfKind& t : tensors_by_kind(replica)) m.*t.place = t.bytes();
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

const Batch& largest_batch(std::span<const Batch> batches) {
  CHECK(!batches.empty(), "no batches");
  return *std::max_element(batches.begin(), batches.end(), [](const Batch& a, const Batch& b) {
    return a.source.count() + a.target.count() < b.source.count() + b.target.count();
  });
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
