// Which units of a model go to which stage of a pipeline, and the order in which a stage computes.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "comm/mesh.h"
#include "models/model.h"

namespace starling {

// Units one behind the other, so that the most costly stage costs as little as possible, by operations for as many source as target tokens.
// ConfigError if there are fewer units than stages. The same for a whole model as for any part of it.
std::vector<UnitRange> stage_units(Model& model, int stages);
// The same, unless the mesh says how many units each stage has; ConfigError if these are not all of them.
std::vector<UnitRange> stage_units(Model& model, const Mesh& mesh);
// Operations of each unit, FLOP for one source and one target token, forward and backward.
std::vector<double> unit_costs(Model& model);
// The part of a model that the mesh, which must live as long as it, gives to this rank.
ModelPart part_of(const Mesh& mesh, const ModelConfig& config, const ModelVocabulary& vocabulary, Backend& backend);
// "5, 4, 4": the units of each stage, to tell one cut from another.
std::string cut_text(const std::vector<UnitRange>& stages);
size_t stage_of(const std::vector<UnitRange>& stages, size_t unit);

// One forward or backward pass of a micro-batch.
struct Turn {
  bool forward;
  size_t pass;
  bool operator==(const Turn&) const = default;
};
// One forward, one backward (Narayanan et al. 2019, with a flush each update): no more than `stages - stage` passes are under way at once.
// With one stage, each backward pass follows its forward pass.
std::vector<Turn> one_forward_one_backward(int stage, int stages, size_t passes);

}  // namespace starling
