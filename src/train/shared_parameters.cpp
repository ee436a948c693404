#include "train/shared_parameters.h"

#include <algorithm>

#include "train/stages.h"

namespace starling {
namespace {

constexpr Tag kGradientTag = 32, kValueTag = 33;

}  // namespace

SharedParameters::SharedParameters(Model& model, const Mesh& mesh) : model_(model), mesh_(mesh) {
  if (mesh.stages() == 1) return;
  const std::vector<UnitRange> stages = stage_units(model, mesh.stages());
  for (Parameter* p : model.parameters().declared()) {
    Shared shared{p, static_cast<int>(stage_of(stages, p->units.front())), {}, {}};
    for (const size_t unit : p->units) {
      const auto stage = static_cast<int>(stage_of(stages, unit));
      if (stage != shared.owner && std::find(shared.copies.begin(), shared.copies.end(), stage) == shared.copies.end())
        shared.copies.push_back(stage);
    }
    if (shared.copies.empty() || p->hold == Parameter::absent) continue;
    if (p->hold == Parameter::owned && p->gradient) shared.buffer = Tensor(p->shape, p->gradient.dtype(), p->gradient.memory());
    shared_.push_back(std::move(shared));
  }
}

bool SharedParameters::has(const Parameter& p) const {
  return std::any_of(shared_.begin(), shared_.end(), [&](const Shared& s) { return s.parameter == &p; });
}

Pending SharedParameters::send(const Tensor& x, int to, Tag tag) {
  bytes_sent_ += x.bytes();
  return mesh_.replica().send(x, to, tag);
}

void SharedParameters::gather_gradients(Clock& clock) {
  std::vector<Pending> sent;
  for (const Shared& s : shared_) {
    const Tensor& gradient = s.parameter->gradient;
    if (mesh_.stage() != s.owner) {
      sent.push_back(send(gradient, s.owner, kGradientTag));
      continue;
    }
    for (const int from : s.copies) {
      mesh_.replica().receive(s.buffer, from, kGradientTag).wait();
      clock.spend({Work::memory, 0, 3.0 * static_cast<double>(gradient.bytes())},
                  [&] { model_.parameters().backend().flat().scale(s.buffer, 1, gradient, Write::accumulate); });
    }
  }
  for (const Pending& p : sent) p.wait();
}

void SharedParameters::share() {
  std::vector<Pending> pending;
  for (const Shared& s : shared_)
    if (mesh_.stage() != s.owner)
      pending.push_back(mesh_.replica().receive(s.parameter->value, s.owner, kValueTag));
    else
      for (const int to : s.copies) pending.push_back(send(s.parameter->value, to, kValueTag));
  for (const Pending& p : pending) p.wait();
  if (!pending.empty()) model_.parameters().changed();
}

}  // namespace starling
