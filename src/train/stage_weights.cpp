#include "train/stage_weights.h"

#include <algorithm>

#include "train/stages.h"

namespace starling {
namespace {

constexpr Tag kOrderTag = 35, kWeightsTag = 36;
constexpr int64_t kPiece = 1 << 20;  // elements a message

// f(elements [begin, begin + n)) of so many.
template <class F>
void in_pieces(int64_t count, F visit) {
  for (int64_t at = 0; at < count; at += kPiece) visit(at, std::min(kPiece, count - at));
}

}  // namespace

StageWeights::StageWeights(Model& part, const Mesh& mesh) : part_(part), mesh_(mesh) {
  if (!mesh.divided()) return;
  const std::vector<UnitRange> stages = stage_units(part, mesh.stages());
  for (const Parameter* p : part.parameters().declared()) stage_.push_back(static_cast<int>(stage_of(stages, p->units.front())));
}

FetchWeights StageWeights::fetch() {
  if (!mesh_.divided()) return {};
  return [this](const Parameter& p, ByteSink& sink) {
    const int from = stage_[p.index];
    const Tensor order({1}, DType::f64), piece({std::min(kPiece, p.shape.count())}, DType::f32);
    doubles_of(order)[0] = static_cast<double>(p.index + 1);
    mesh_.replica().send(order, from, kOrderTag).wait(kPatience);
    in_pieces(p.shape.count(), [&](int64_t, int64_t n) {
      const Tensor part = piece.slice(0, Shape{n});
      mesh_.replica().receive(part, from, kWeightsTag).wait(kPatience);
      sink.write(part.host_bytes());
    });
  };
}

void StageWeights::done() {
  if (!mesh_.divided()) return;
  const Tensor order({1}, DType::f64);  // zero
  order.zero();
  for (int stage = 1; stage < mesh_.stages(); ++stage) mesh_.replica().send(order, stage, kOrderTag).wait(kPatience);
}

void StageWeights::serve() {
  if (!mesh_.divided()) return;
  const Tensor order({1}, DType::f64);
  for (;;) {
    mesh_.replica().receive(order, 0, kOrderTag).wait(kPatience);
    const auto asked = static_cast<size_t>(doubles_of(order)[0]);
    if (asked == 0) return;
    const Tensor& values = part_.parameters().declared()[asked - 1]->value;
    in_pieces(values.count(),
              [&](int64_t at, int64_t n) { mesh_.replica().send(values.slice(at, Shape{n}), 0, kWeightsTag).wait(kPatience); });
  }
}

}  // namespace starling
