// Decides which units of a model go to which stage of a pipeline, and in which order a stage computes.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "comm/mesh.h"
#include "models/model.h"

namespace starling {

// Cuts the units into consecutive stages so that the costliest stage costs as little as possible, measured in operations for equal numbers
// of source and target tokens. Throws ConfigError if there are fewer units than stages. The result is the same for a whole model and for
// any part of it. Hybrid: the output is on every stage, and only the other units are cut.
std::vector<UnitRange> stage_units(Model& model, int stages, bool hybrid = false);
// The same, unless the mesh gives the number of units of each stage; throws ConfigError if these do not add up to all units.
std::vector<UnitRange> stage_units(Model& model, const Mesh& mesh);
// The share of an output on every stage that each stage computes, so that together with its layers all stages cost as nearly the same as
// possible.
std::vector<double> output_weights(Model& model, const std::vector<UnitRange>& stages);
// Throws ConfigError if the model's output cannot be on every stage.
void check_hybrid(const ModelConfig& model);
// The cost of each unit: FLOP for one source and one target token, forward and backward.
std::vector<double> unit_costs(Model& model);
// The part of a model that the mesh assigns to this rank; the mesh must live as long as the part.
ModelPart part_of(const Mesh& mesh, const ModelConfig& config, const ModelVocabulary& vocabulary, Backend& backend);
// "5, 4, 4", or for a hybrid "5, 4, 4, the output on each": the units of each stage, to tell one cut from another.
std::string cut_text(const std::vector<UnitRange>& stages);
// The stage that has this unit; the first, if every stage has it.
size_t stage_of(const std::vector<UnitRange>& stages, size_t unit);
// What a rank of a replica owns of a parameter: ranges of the whole parameter, ascending.
struct Owner {
  int rank;
  std::vector<Range> elements;
};
std::vector<Owner> owners(const std::vector<UnitRange>& stages, const Mesh& mesh, const Parameter& parameter);

// One forward or backward pass of a micro-batch, or both passes of an output that is apart.
struct PipelineOp {
  enum Kind : uint8_t { forward, output, backward } kind;
  size_t pass;
  bool operator==(const PipelineOp&) const = default;
};
// One forward, one backward (Narayanan et al. 2019, with a flush at each update): at most `stages - stage` passes are in progress at once.
// With one stage, each backward pass follows its forward pass.
std::vector<PipelineOp> one_forward_one_backward(int stage, int stages, size_t passes);
// The order if every stage has the output: each round runs the layers of one micro-batch forwards, the output of the previous one, and the
// layers of the one before that backwards. So everything that an operation reads from other stages comes from the previous round, except
// for the layers: the first stage begins with those forwards, the others with those backwards.
std::vector<PipelineOp> hybrid_schedule(int stage, size_t passes);
inline size_t hybrid_passes(int stage) { return stage == 0 ? 3 : 2; }  // in progress at once

}  // namespace starling
