#include "parallel/decoding_model.h"

#include <algorithm>

#include "parallel/common_elements.h"

namespace starling {
namespace {

constexpr Tag kPartTag = 34;

Tensor elements(const Tensor& x, const Range& r) { return x.slice(r.begin, Shape{r.count()}); }

}  // namespace

DecodingModel::DecodingModel(Model& part, const Mesh& mesh) : part_(part), mesh_(mesh) {
  shards_ = mesh.replica_size();
  while (!can_be_cut(part.config(), shards_)) --shards_;
  const std::vector<UnitRange> stages = stage_units(part, mesh);
  for (const Parameter* p : part.parameters().declared()) owners_.push_back(owners(stages, mesh, *p));
  comm_ = mesh.replica().split([shards = shards_](int r) { return r < shards ? 0 : 1; }, "decoding");
  group_.emplace(*comm_);
}

std::unique_ptr<Model> DecodingModel::make() {
  std::unique_ptr<Model> model;
  if (mesh_.replica().rank() < shards_) {
    const ModelPart part({}, &*group_);
    model = make_model(part_.config(), part_.vocabulary(), part_.parameters().backend(), std::nullopt, false, part);
  }
  fill(model.get());
  if (model) model->parameters().changed();
  return model;
}

// Parameter by parameter, so that little is in transit at once.
void DecodingModel::fill(Model* model) const {
  Communicator& replica = mesh_.replica();
  Backend& backend = part_.parameters().backend();
  for (const Parameter* own : part_.parameters().declared()) {
    const auto shard = [&](int rank, int size) { return shard_ranges(own->whole, size > 1 ? own->cut : Cut(), rank, size); };
    std::vector<Pending> pending;
    std::vector<std::pair<Tensor, CommonElements>> arriving;
    const Tensor owned = part_.parameters().owned_value(*own);
    for (const auto& [from, held] : owners_[own->index])
      for (int to = 0; to < shards_; ++to) {
        if (replica.rank() != from && replica.rank() != to) continue;
        const CommonElements c = common_elements(held, shard(to, shards_));
        if (c.count == 0) continue;
        const Tensor packed({c.count}, backend.parameter(), backend.memory());
        if (replica.rank() == from)
          for (int64_t at = 0; const auto& [here, there] : c.runs)
            elements(packed, {at, at + here.count()}).copy_from(elements(owned, here)), at += here.count();
        if (replica.rank() == from && from != to) pending.push_back(replica.send(packed, to, kPartTag));
        if (replica.rank() != to) continue;
        if (from != to) pending.push_back(replica.receive(packed, from, kPartTag));
        arriving.push_back({packed, c});
      }
    for (const Pending& p : pending) p.wait(kNoDeadline);
    for (const auto& [packed, c] : arriving)
      for (int64_t at = 0; const auto& [here, there] : c.runs)
        elements(model->parameters().declared()[own->index]->value, there).copy_from(elements(packed, {at, at + here.count()})),
            at += here.count();
  }
}

}  // namespace starling
