#include "train/whole_model.h"

#include "train/stages.h"

namespace starling {
namespace {

constexpr Tag kWholeTag = 34;

}  // namespace

std::unique_ptr<Model> whole_model(Model& part, const Mesh& mesh) {
  std::vector<Pending> pending;
  std::unique_ptr<Model> whole;
  if (mesh.first_stage()) {
    whole = make_model(part.config(), part.vocabulary(), part.parameters().backend(), std::nullopt, false);
    const std::vector<UnitRange> stages = stage_units(part, mesh.stages());
    for (Parameter& p : whole->parameters().all()) {
      const Parameter& own = *part.parameters().declared()[p.index];
      if (own.hold == Parameter::owned)
        p.value.copy_from(own.value);
      else
        pending.push_back(mesh.replica().receive(p.value, static_cast<int>(stage_of(stages, p.units.front())), kWholeTag));
    }
  } else {
    for (const Parameter& p : part.parameters().all()) pending.push_back(mesh.replica().send(p.value, 0, kWholeTag));
  }
  for (const Pending& p : pending) p.wait(kPatience);
  if (whole) whole->parameters().changed();
  return whole;
}

}  // namespace starling
