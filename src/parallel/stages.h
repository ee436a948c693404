// Which units of a model go to which stage of a pipeline, and the order in which a stage computes.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "comm/mesh.h"
#include "models/model.h"

namespace starling {

// Units one behind the other, so that the most costly stage costs as little as possible, by operations for as many source as target tokens.
// ConfigError if there are fewer units than stages. The same for a whole model as for any part of it. Hybrid: the output is on every stage,
// and the others are cut.
std::vector<UnitRange> stage_units(Model& model, int stages, bool hybrid = false);
// The same, unless the mesh says how many units each stage has; ConfigError if these are not all of them.
std::vector<UnitRange> stage_units(Model& model, const Mesh& mesh);
// How much of an output on every stage each computes, so that with its layers all cost the same, as nearly as that is possible.
std::vector<double> output_weights(Model& model, const std::vector<UnitRange>& stages);
// ConfigError for a model whose output cannot be on every stage.
void check_hybrid(const ModelConfig& model);
// Operations of each unit, FLOP for one source and one target token, forward and backward.
std::vector<double> unit_costs(Model& model);
// The part of a model that the mesh, which must live as long as it, gives to this rank.
ModelPart part_of(const Mesh& mesh, const ModelConfig& config, const ModelVocabulary& vocabulary, Backend& backend);
// "5, 4, 4", or of a hybrid "5, 4, 4, the output on each": the units of each stage, to tell one cut from another.
std::string cut_text(const std::vector<UnitRange>& stages);
// The stage whose units have this one among them; of a unit that is everywhere, the first.
size_t stage_of(const std::vector<UnitRange>& stages, size_t unit);
// What a rank of a replica owns of a parameter: elements of the whole, ascending.
struct Owner {
  int rank;
  std::vector<Range> elements;
};
std::vector<Owner> owners(const std::vector<UnitRange>& stages, const Mesh& mesh, const Parameter& parameter);

// One forward or backward pass of a micro-batch, or both of an output that is apart.
struct PipelineOp {
  enum Kind : uint8_t { forward, output, backward } kind;
  size_t pass;
  bool operator==(const PipelineOp&) const = default;
};
// One forward, one backward (Narayanan et al. 2019, with a flush each update): no more than `stages - stage` passes are under way at once.
// With one stage, each backward pass follows its forward pass.
std::vector<PipelineOp> one_forward_one_backward(int stage, int stages, size_t passes);
// Where every stage has the output: in each round the layers of one micro-batch forwards, the output of the one before it and the layers of
// the one before that backwards. So what a turn reads of other stages is of the round before, but for the layers: the first stage begins
// with those forwards, and the others with those backwards.
std::vector<PipelineOp> hybrid_schedule(int stage, size_t passes);
inline size_t hybrid_passes(int stage) { return stage == 0 ? 3 : 2; }  // under way at once

}  // namespace starling
