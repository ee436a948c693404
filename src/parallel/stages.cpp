#include "parallel/stages.h"

#include <algorithm>
#include <numeric>

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

void check_hybrid(const ModelConfig& model) {
  if (architecture_of(model.preset) != Architecture::gnmt)
    throw ConfigError(fmt::format(
        "parallel.hybrid is for recurrent models, which {} is not; leave it out, or set model.preset to one of gnmt", model.preset));
  if (model.attention_place != AttentionPlace::top)
    throw ConfigError(
        "parallel.hybrid computes attention after the whole decoder, but model.attention-place is bottom; set it to top and model.readout "
        "to context, or leave parallel.hybrid out");
}

namespace {

void add_output(std::vector<UnitRange>& stages, size_t unit) {
  for (size_t s = 0; s < stages.size(); ++s)
    stages[s].everywhere = unit, stages[s].part = static_cast<int>(s), stages[s].parts = static_cast<int>(stages.size());
}

}  // namespace

std::vector<UnitRange> stage_units(Model& model, int stages, bool hybrid) {
  if (hybrid) check_hybrid(model.config());
  const std::vector<double> costs = unit_costs(model);
  const size_t units = costs.size() - (hybrid ? 1 : 0), count = static_cast<size_t>(stages);
  if (count > units)
    throw ConfigError(fmt::format("parallel.pipeline {} is more than the {} units that the model can be cut into: its layers{}; lower it",
                                  stages, units, hybrid ? "" : " and the output"));
  // least[s][u]: the cost of the costliest of s stages that hold the units before u; from[s][u]: where the last of these stages begins.
  std::vector least(count + 1, std::vector<double>(units + 1, 1e300));
  std::vector from(count + 1, std::vector<size_t>(units + 1, 0));
  least[0][0] = 0;
  for (size_t s = 1; s <= count; ++s)
    for (size_t end = s; end <= units; ++end) {
      double last = 0;
      for (size_t begin = end; begin-- > s - 1;) {
        last += costs[begin];
        const double most = std::max(least[s - 1][begin], last);
        if (most < least[s][end]) {
          least[s][end] = most;
          from[s][end] = begin;
        }
      }
    }
  std::vector<UnitRange> ranges(count);
  for (size_t s = count, end = units; s > 0; --s) {
    ranges[s - 1] = {from[s][end], end};
    end = from[s][end];
  }
  if (hybrid) add_output(ranges, units);
  return ranges;
}

std::vector<double> output_weights(Model& model, const std::vector<UnitRange>& stages) {
  const std::vector<double> costs = unit_costs(model);
  std::vector<double> layers, weights;
  for (const UnitRange& s : stages)
    layers.push_back(std::accumulate(costs.begin() + static_cast<ptrdiff_t>(s.begin), costs.begin() + static_cast<ptrdiff_t>(s.end), 0.0));
  // The level up to which the output fills the stages, beginning with those with the cheapest layers.
  std::vector<double> rising = layers;
  std::sort(rising.begin(), rising.end());
  double level = 0, sum = costs.back();
  for (size_t n = 0; n < rising.size() && (n == 0 || rising[n] < level); ++n) {
    sum += rising[n];
    level = sum / static_cast<double>(n + 1);
  }
  for (const double l : layers) weights.push_back(std::max(level - l, 0.0));
  return weights;
}

std::vector<UnitRange> stage_units(Model& model, const Mesh& mesh) {
  const std::vector<int64_t>& sizes = mesh.stage_sizes();
  if (sizes.empty()) return stage_units(model, mesh.stages(), mesh.hybrid());
  if (mesh.hybrid()) check_hybrid(model.config());
  const size_t units = model.units() - (mesh.hybrid() ? 1 : 0);
  std::vector<UnitRange> ranges;
  size_t begin = 0;
  for (const int64_t size : sizes) {
    ranges.push_back({begin, begin + static_cast<size_t>(size)});
    begin = ranges.back().end;
  }
  if (begin != units)
    throw ConfigError(fmt::format("parallel.stages lists {} units, but the model has {}: its layers{}; change the list, or leave it out",
                                  begin, units, mesh.hybrid() ? "" : " and the output"));
  if (mesh.hybrid()) add_output(ranges, units);
  return ranges;
}

ModelPart part_of(const Mesh& mesh, const ModelConfig& config, const ModelVocabulary& vocabulary, Backend& backend) {
  const auto stages = stage_units(*declare_model(config, vocabulary, backend), mesh);
  return {stages[static_cast<size_t>(mesh.stage())], &mesh.tensor_parallel()};
}

std::string cut_text(const std::vector<UnitRange>& stages) {
  std::vector<size_t> sizes;
  for (const UnitRange& r : stages) sizes.push_back(r.end - r.begin);
  const bool hybrid = stages.front().everywhere != UnitRange().everywhere;
  return fmt::format("{}{}", fmt::join(sizes, ", "), hybrid ? ", the output on each" : "");
}

size_t stage_of(const std::vector<UnitRange>& stages, size_t unit) {
  return static_cast<size_t>(std::find_if(stages.begin(), stages.end(), [&](const UnitRange& r) { return r.has(unit); }) - stages.begin());
}

std::vector<Owner> owners(const std::vector<UnitRange>& stages, const Mesh& mesh, const Parameter& p) {
  const size_t unit = p.units.front();
  std::vector<Owner> all;
  if (unit == stages[0].everywhere) {
    for (const UnitRange& stage : stages)
      if (const Range own = part(p.whole.count(), stage.part, stage.parts); own.count() > 0)
        all.push_back({mesh.part_of(stage.part, 0), {own}});
    return all;
  }
  const auto stage = static_cast<int>(stage_of(stages, unit));
  const int shards = p.cut.axis >= 0 ? mesh.shards() : 1;
  for (int shard = 0; shard < shards; ++shard)
    all.push_back({mesh.part_of(stage, shard), shard_ranges(p.whole, shards > 1 ? p.cut : Cut(), shard, shards)});
  return all;
}

std::vector<PipelineOp> one_forward_one_backward(int stage, int stages, size_t passes) {
  const size_t ahead = std::min(passes, static_cast<size_t>(stages - 1 - stage));
  std::vector<PipelineOp> turns;
  for (size_t i = 0; i < ahead; ++i) turns.push_back({PipelineOp::forward, i});
  for (size_t i = 0; i < passes; ++i) {
    if (ahead + i < passes) turns.push_back({PipelineOp::forward, ahead + i});
    turns.push_back({PipelineOp::backward, i});
  }
  return turns;
}

std::vector<PipelineOp> hybrid_schedule(int stage, size_t passes) {
  std::vector<PipelineOp> turns;
  const auto add = [&](PipelineOp::Kind kind, size_t pass) {
    if (pass < passes) turns.push_back({kind, pass});
  };
  add(PipelineOp::forward, 0);
  add(PipelineOp::forward, 1);
  add(PipelineOp::output, 0);
  for (size_t i = 0; i < passes; ++i) {
    if (stage > 0) add(PipelineOp::backward, i);
    if (stage == 0) add(PipelineOp::forward, i + 2);
    add(PipelineOp::output, i + 1);
    stage == 0 ? add(PipelineOp::backward, i) : add(PipelineOp::forward, i + 2);
  }
  return turns;
}

}  // namespace starling
