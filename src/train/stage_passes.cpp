#include "train/stage_passes.h"

#include <algorithm>

namespace starling {
namespace {

constexpr Tag kForwardTag = 16, kBackwardTag = 24;  // and the number of the tensor

void wait(std::vector<Pending>& pending) {
  for (const Pending& p : pending) p.wait();
  pending.clear();
}

}  // namespace

StagePasses::StagePasses(Model& model, const Mesh& mesh, GradientSum& gradients)
    : model_(model),
      mesh_(mesh),
      gradients_(gradients),
      first_unit_(model.parameters().units().begin),
      end_unit_(std::min(model.parameters().units().end, model.units())) {}

void StagePasses::restart(std::vector<const Batch*> batches) {
  batches_ = std::move(batches);
  const size_t under_way = std::clamp<size_t>(batches_.size(), 1, static_cast<size_t>(mesh_.stages() - mesh_.stage()));
  while (passes_.size() < under_way) passes_.push_back(std::make_unique<StagePass>(model_.parameters().backend().memory()));
  incoming_.resize(passes_.size() + 1);
  if (!batches_.empty()) expect(0);
}

std::vector<Tensor> StagePasses::boundary(size_t unit, const Batch& batch, Tensor& buffer) const {
  const Backend& backend = model_.parameters().backend();
  const std::vector<Shape> shapes = model_.boundary(unit, batch);
  int64_t count = 0;
  for (const Shape& shape : shapes) count += shape.count();
  if (!buffer || buffer.count() < count) buffer = Tensor({count}, backend.activation(), backend.memory());
  std::vector<Tensor> tensors;
  int64_t at = 0;
  for (const Shape& shape : shapes) tensors.push_back(buffer.slice(at, shape)), at += shape.count();
  return tensors;
}

void StagePasses::expect(size_t i) {
  if (mesh_.first_stage()) return;
  Incoming& in = incoming_[i % incoming_.size()];
  in.tensors = boundary(first_unit_, *batches_[i], in.buffer);
  for (size_t k = 0; k < in.tensors.size(); ++k)
    in.pending.push_back(mesh_.replica().receive(in.tensors[k], mesh_.stage() - 1, kForwardTag + static_cast<Tag>(k)));
}

StagePass& StagePasses::open(size_t i, uint64_t seed, uint64_t step) {
  StagePass& pass = at(i);
  wait(pass.sent);
  pass.tape.reset();
  pass.in.clear(), pass.out.clear(), pass.complete.clear();
  pass.arena.release({});
  pass.tape.emplace(model_.parameters(), pass.arena, gradients_, seed, step);
  if (mesh_.first_stage()) return pass;
  Incoming& in = incoming_[i % incoming_.size()];
  wait(in.pending);
  pass.given = in.tensors, pass.in_gradients.assign(in.tensors.size(), {});
  for (size_t k = 0; k < in.tensors.size(); ++k)
    pass.in.push_back(pass.tape->record(in.tensors[k], [&pass, k](const Tensor& dy) { pass.in_gradients[k] = dy; }));
  if (i + 1 < batches_.size()) expect(i + 1);
  return pass;
}

void StagePasses::send(StagePass& pass, const Tensor& x, int stage, Tag tag) {
  pass.sent.push_back(mesh_.replica().send(x, stage, tag));
  bytes_sent_ += x.bytes();
}

void StagePasses::forward_done(size_t i) {
  if (mesh_.last_stage()) return;
  StagePass& pass = at(i);
  pass.out_gradients = boundary(end_unit_, *batches_[i], pass.gradient_buffer);
  for (size_t k = 0; k < pass.out.size(); ++k) {
    const Tensor& y = pass.out[k].value;
    CHECK(pass.out.size() == pass.out_gradients.size() && y.shape() == pass.out_gradients[k].shape(), "boundary tensor {} is {}, not {}", k,
          y.shape().text(), pass.out_gradients[k].shape().text());
    send(pass, y, mesh_.stage() + 1, kForwardTag + static_cast<Tag>(k));
    pass.expected.push_back(mesh_.replica().receive(pass.out_gradients[k], mesh_.stage() + 1, kBackwardTag + static_cast<Tag>(k)));
  }
}

StagePass& StagePasses::await_gradients(size_t i) {
  StagePass& pass = at(i);
  wait(pass.expected);
  for (size_t k = 0; k < pass.out.size(); ++k) pass.tape->set_gradient(pass.out[k], pass.out_gradients[k]);
  return pass;
}

void StagePasses::backward_done(size_t i) {
  StagePass& pass = at(i);
  for (size_t k = 0; k < pass.in_gradients.size(); ++k) {
    Tensor& gradient = pass.in_gradients[k];
    if (!gradient) gradient = pass.arena.allocate(pass.given[k].shape(), pass.given[k].dtype()), gradient.zero();
    send(pass, gradient, mesh_.stage() - 1, kBackwardTag + static_cast<Tag>(k));
  }
}

int64_t StagePasses::activation_bytes() const {
  int64_t bytes = 0;
  for (const auto& pass : passes_) bytes += pass->arena.capacity() + (pass->gradient_buffer ? pass->gradient_buffer.bytes() : 0);
  for (const Incoming& in : incoming_) bytes += in.buffer ? in.buffer.bytes() : 0;
  return bytes;
}

}  // namespace starling
