#include "train/stages.h"

#include <algorithm>

#include "base/error.h"

namespace starling {

std::vector<double> unit_costs(Model& model) {
  std::vector<double> costs(model.units());
  const std::vector<EmbeddingTable> tables = model.embedding_tables();
  for (const Parameter* p : model.parameters().declared()) {
    if (p->shape.rank() != 2) continue;
    const double cost = 6.0 * static_cast<double>(p->whole.count());
    const EmbeddingTable* table = table_of(tables, *p);
    if (!table)
      costs[p->units.front()] += cost;
    else if (table->output)  // looking up costs next to nothing
      costs[p->units.back()] += cost;
  }
  return costs;
}

std::vector<UnitRange> stage_units(Model& model, int stages) {
  const std::vector<double> costs = unit_costs(model);
  const size_t units = costs.size(), count = static_cast<size_t>(stages);
  if (count > units)
    throw ConfigError(fmt::format("parallel.pipeline {} is more than the model can be cut into, which is {}: its layers and the output; lower it",
                                  stages, units));
  // least[s][u]: the cost of the most costly of s stages that have the units before u; from[s][u]: where the last of them begins.
  std::vector least(count + 1, std::vector<double>(units + 1, 1e300));
  std::vector from(count + 1, std::vector<size_t>(units + 1, 0));
  least[0][0] = 0;
  for (size_t s = 1; s <= count; ++s)
    for (size_t end = s; end <= units; ++end) {
      double last = 0;
      for (size_t begin = end; begin-- > s - 1;) {
        last += costs[begin];
        const double most = std::max(least[s - 1][begin], last);
        if (most < least[s][end]) least[s][end] = most, from[s][end] = begin;
      }
    }
  std::vector<UnitRange> ranges(count);
  for (size_t s = count, end = units; s > 0; --s) ranges[s - 1] = {from[s][end], end}, end = from[s][end];
  return ranges;
}

std::vector<UnitRange> stage_units(Model& model, const Mesh& mesh) {
  const std::vector<int64_t>& sizes = mesh.stage_sizes();
  if (sizes.empty()) return stage_units(model, mesh.stages());
  std::vector<UnitRange> ranges;
  size_t begin = 0;
  for (const int64_t size : sizes) ranges.push_back({begin, begin + static_cast<size_t>(size)}), begin = ranges.back().end;
  if (begin != model.units())
    throw ConfigError(fmt::format("parallel.stages names {} units, and the model has {}: its layers and the output; change the list, or leave "
                                  "it out",
                                  begin, model.units()));
  return ranges;
}

ModelPart part_of(const Mesh& mesh, const ModelConfig& config, const ModelVocabulary& vocabulary, Backend& backend) {
  const auto stages = stage_units(*declare_model(config, vocabulary, backend), mesh);
  return {stages[static_cast<size_t>(mesh.stage())], &mesh.group()};
}

std::string cut_text(const std::vector<UnitRange>& stages) {
  std::vector<size_t> sizes;
  for (const UnitRange& r : stages) sizes.push_back(r.end - r.begin);
  return fmt::format("{}", fmt::join(sizes, ", "));
}

size_t stage_of(const std::vector<UnitRange>& stages, size_t unit) {
  return static_cast<size_t>(std::find_if(stages.begin(), stages.end(), [&](const UnitRange& r) { return r.has(unit); }) - stages.begin());
}

std::vector<Turn> one_forward_one_backward(int stage, int stages, size_t passes) {
  const size_t ahead = std::min(passes, static_cast<size_t>(stages - 1 - stage));
  std::vector<Turn> turns;
  for (size_t i = 0; i < ahead; ++i) turns.push_back({true, i});
  for (size_t i = 0; i < passes; ++i) {
    if (ahead + i < passes) turns.push_back({true, ahead + i});
    turns.push_back({false, i});
  }
  return turns;
}

}  // namespace starling
