#include "parallel/shared_parameters.h"

#include <algorithm>

#include "parallel/stages.h"

namespace starling {
namespace {

constexpr Tag kGradientTag = 32, kValueTag = 33;

}  // namespace

SharedParameters::SharedParameters(Model& model, const Mesh& mesh) : model_(model), mesh_(mesh) {
  if (mesh.shards() > 1) {
    int64_t count = 0;
    for (Parameter* p : model.parameters().declared())
      if (!model.parameters().is_cut(*p) && p->hold != Parameter::absent) uncut_.push_back(p), count += p->shape.count();
    uncut_values_ = Tensor({count}, model.parameters().values().dtype(), model.parameters().values().memory());
  }
  if (mesh.stages() == 1) return;
  const std::vector<UnitRange> stages = stage_units(model, mesh);
  for (Parameter* p : model.parameters().declared()) {
    if (p->units.front() == stages[0].everywhere) {
      spread_.push_back({p, model.parameters().part_of(*p), {}});
      continue;
    }
    Shared shared{p, static_cast<int>(stage_of(stages, p->units.front())), {}, {}};
    for (int stage = 0; stage < mesh.stages(); ++stage) {
      const UnitRange& here = stages[static_cast<size_t>(stage)];
      if (stage != shared.owner && std::any_of(p->units.begin(), p->units.end(), [&](size_t unit) { return here.has(unit); }))
        shared.copies.push_back(stage);
    }
    if (shared.copies.empty() || p->hold == Parameter::absent) continue;
    if (mesh.shard() > 0 && !model.parameters().is_cut(*p)) continue;  // it comes from the first shard
    if (p->hold == Parameter::owned && p->gradient) shared.buffer = Tensor(p->shape, p->gradient.dtype(), p->gradient.memory());
    shared_.push_back(std::move(shared));
  }
}

bool SharedParameters::has(const Parameter& p) const {
  if (p.copy || std::any_of(spread_.begin(), spread_.end(), [&](const Spread& s) { return s.copy == &p; })) return true;
  return std::any_of(shared_.begin(), shared_.end(), [&](const Shared& s) { return s.parameter == &p; });
}

Pending SharedParameters::send(const Tensor& x, int to, Tag tag) {
  bytes_sent_ += x.bytes();
  return mesh_.pipeline().send(x, to, tag);
}

void SharedParameters::count(const Spread& s) { bytes_sent_ += s.copy->value.bytes() - (s.own ? s.own->value.bytes() : 0); }

void SharedParameters::begin_sums(GradientSum& gradients) {
  for (Spread& s : spread_) {
    if (gradients.next_write(*s.copy) == Write::overwrite) s.copy->gradient.zero();  // no sentence was for this stage
    s.sum = mesh_.replica().reduce_scatter(s.copy->gradient);
    count(s);
  }
}

void SharedParameters::gather_gradients(Clock& clock) {
  for (Spread& s : spread_) {
    s.sum.wait();
    s.sum = {};
    if (s.own) s.own->gradient.copy_from(s.copy->gradient.slice(s.own->first, s.own->shape));
  }
  std::vector<Pending> sent;
  for (const Shared& s : shared_) {
    const Tensor& gradient = s.parameter->gradient;
    if (mesh_.stage() != s.owner) {
      sent.push_back(send(gradient, s.owner, kGradientTag));
      continue;
    }
    for (const int from : s.copies) {
      mesh_.pipeline().receive(s.buffer, from, kGradientTag).wait();
      clock.spend({Work::memory, 0, 3.0 * static_cast<double>(gradient.bytes())},
                  [&] { model_.parameters().backend().flat().scale(s.buffer, 1, gradient, Write::accumulate); });
    }
  }
  for (const Pending& p : sent) p.wait();
}

void SharedParameters::share() {
  std::vector<Pending> pending;
  for (const Spread& s : spread_) {
    if (s.own) s.copy->value.slice(s.own->first, s.own->shape).copy_from(s.own->value);
    pending.push_back(mesh_.replica().all_gather(s.copy->value));
    count(s);
  }
  for (const Shared& s : shared_)
    if (mesh_.stage() != s.owner)
      pending.push_back(mesh_.pipeline().receive(s.parameter->value, s.owner, kValueTag));
    else
      for (const int to : s.copies) pending.push_back(send(s.parameter->value, to, kValueTag));
  for (const Pending& p : pending) p.wait();
  if (!uncut_.empty()) share_uncut();
  if (!pending.empty() || !uncut_.empty()) model_.parameters().changed();
}

// One message for all of them: most are a few hundred numbers.
void SharedParameters::share_uncut() {
  const auto each = [&](auto visit) {
    int64_t at = 0;
    for (Parameter* p : uncut_) {
      visit(p->value, uncut_values_.slice(at, p->shape));
      at += p->shape.count();
    }
  };
  if (mesh_.shard() == 0)
    each([](const Tensor& value, const Tensor& place) { place.copy_from(value); }), bytes_sent_ += uncut_values_.bytes();
  mesh_.tensor_parallel().comm().broadcast(uncut_values_, 0).wait();
  if (mesh_.shard() > 0) each([](const Tensor& value, const Tensor& place) { value.copy_from(place); });
}

}  // namespace starling
