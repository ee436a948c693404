#include "parallel/stage_weights.h"

#include <algorithm>

#include "parallel/common_elements.h"

namespace starling {
namespace {

constexpr Tag kOrderTag = 35, kWeightsTag = 36;
constexpr int64_t kPiece = 1 << 20;  // elements a message

// Calls visit(range) for consecutive pieces of `count` elements.
template <class F>
void in_pieces(int64_t count, F visit) {
  for (int64_t at = 0; at < count; at += kPiece) visit(Range{at, std::min(at + kPiece, count)});
}

// The elements of a piece of a parameter that a shard has; in the shard they lie side by side.
Tensor slice_of(const Tensor& shard, const CommonElements& part) { return shard.slice(part.runs.front().first.begin, Shape{part.count}); }

}  // namespace

StageWeights::StageWeights(Model& part, const Mesh& mesh) : part_(part), mesh_(mesh) {
  if (!mesh.divided()) return;
  const std::vector<UnitRange> stages = stage_units(part, mesh);
  for (const Parameter* p : part.parameters().declared()) owners_.push_back(owners(stages, mesh, *p));
}

FetchWeights StageWeights::fetch() {
  if (!mesh_.divided()) return {};
  return [this](const Parameter& asked, ByteSink& sink) {
    // As this rank has it, since the rank that asks may have a whole model of the same parameters.
    const Parameter& p = *part_.parameters().declared()[asked.index];
    const DType type = part_.parameters().backend().parameter();
    const Tensor order({1}, DType::f64), piece({std::min(kPiece, p.whole.count())}, type), received(piece.shape(), type);
    doubles_of(order)[0] = static_cast<double>(p.index + 1);
    for (const Owner& owner : owners_[p.index])
      if (owner.rank > 0) mesh_.replica().send(order, owner.rank, kOrderTag).wait(kNoDeadline);
    in_pieces(p.whole.count(), [&](const Range& whole) {
      for (const Owner& owner : owners_[p.index]) {
        const CommonElements part = common_elements(owner.elements, {whole});
        if (part.count == 0) continue;
        const Tensor elements =
            owner.rank == 0 ? slice_of(part_.parameters().owned_value(p), part).on_host() : received.slice(0, Shape{part.count});
        if (owner.rank > 0) mesh_.replica().receive(elements, owner.rank, kWeightsTag).wait(kNoDeadline);
        for (int64_t at = 0; const auto& [here, there] : part.runs) {
          piece.slice(there.begin, Shape{there.count()}).copy_from(elements.slice(at, Shape{there.count()}));
          at += there.count();
        }
      }
      sink.write(piece.slice(0, Shape{whole.count()}).host_bytes());
    });
  };
}

void StageWeights::done() {
  if (!mesh_.divided()) return;
  const Tensor order({1}, DType::f64);  // zero
  order.zero();
  for (int rank = 1; rank < mesh_.replica_size(); ++rank) mesh_.replica().send(order, rank, kOrderTag).wait(kNoDeadline);
}

void StageWeights::serve() {
  if (!mesh_.divided()) return;
  const Tensor order({1}, DType::f64);
  for (;;) {
    mesh_.replica().receive(order, 0, kOrderTag).wait(kNoDeadline);
    const auto asked = static_cast<size_t>(doubles_of(order)[0]);
    if (asked == 0) return;
    const Parameter& p = *part_.parameters().declared()[asked - 1];
    const Tensor own = part_.parameters().owned_value(p);
    const auto owner =
        std::find_if(owners_[p.index].begin(), owners_[p.index].end(), [&](const Owner& o) { return o.rank == mesh_.replica().rank(); });
    in_pieces(p.whole.count(), [&](const Range& whole) {
      const CommonElements part = common_elements(owner->elements, {whole});
      // From host to host, since they are written from there; messages from card to card would need a card on both sides.
      if (part.count > 0) mesh_.replica().send(slice_of(own, part).on_host(), 0, kWeightsTag).wait(kNoDeadline);
    });
  }
}

}  // namespace starling
