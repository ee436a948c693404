#include "parallel/stage_passes.h"

#include <algorithm>

#include "parallel/stages.h"

namespace starling {
namespace {

constexpr Tag kForwardTag = 16, kBackwardTag = 24;  // and the number of the tensor

}  // namespace

StagePasses::StagePasses(Model& model, const Mesh& mesh, GradientSum& gradients)
    : model_(model),
      mesh_(mesh),
      gradients_(gradients),
      first_unit_(model.parameters().units().begin),
      end_unit_(std::min(model.parameters().units().end, model.units())) {
  if (mesh.hybrid()) output_.emplace(model, mesh, gradients);
}

void StagePasses::restart(std::vector<const Batch*> batches) {
  batches_ = std::move(batches);
  const size_t most = mesh_.hybrid() ? hybrid_passes(mesh_.stage()) : static_cast<size_t>(mesh_.stages() - mesh_.stage());
  const size_t under_way = std::clamp<size_t>(batches_.size(), 1, most);
  while (passes_.size() < under_way) passes_.push_back(std::make_unique<StagePass>(model_.parameters().backend().memory()));
  incoming_.resize(passes_.size() + 1);
  if (output_) output_->restart(batches_);
  if (!batches_.empty()) expect(0);
}

StagePasses::Pieces StagePasses::boundary(size_t unit, const Batch& batch, Tensor& buffer) const {
  const Backend& backend = model_.parameters().backend();
  const auto shapes = model_.boundary_pieces(unit, batch, mesh_.time_pieces());
  int64_t count = 0, at = 0;
  for (const auto& piece : shapes)
    for (const Shape& shape : piece) count += shape.count();
  if (!buffer || buffer.count() < count) buffer = Tensor({count}, backend.activation(), backend.memory());
  Pieces pieces;
  for (const auto& piece : shapes) {
    pieces.emplace_back();
    for (const Shape& shape : piece) {
      pieces.back().push_back(buffer.slice(at, shape));
      at += shape.count();
    }
  }
  return pieces;
}

void StagePasses::expect(size_t i) {
  if (mesh_.first_stage()) return;
  Incoming& in = incoming_[i % incoming_.size()];
  in.tensors = boundary(first_unit_, *batches_[i], in.buffer);
  in.pending.assign(in.tensors.size(), {});
  for (size_t piece = 0; piece < in.tensors.size(); ++piece)
    for (size_t k = 0; k < in.tensors[piece].size(); ++k)
      in.pending[piece].push_back(
          mesh_.pipeline().receive(part_here(in.tensors[piece][k]), mesh_.stage() - 1, kForwardTag + static_cast<Tag>(k)));
}

StagePass& StagePasses::open(size_t i, double label_smoothing) {
  StagePass& pass = (*this)[i];
  wait_for(pass.sent);
  pass.steps.clear();
  pass.complete.clear();
  pass.backwards = false;
  pass.model = output_ ? model_.begin_layers(*batches_[i], output_->shares(i), mesh_.time_pieces())
                       : model_.begin_pass(*batches_[i], label_smoothing, mesh_.time_pieces());
  pass.arena.release({});
  return pass;
}

Tensor StagePasses::part_here(const Tensor& x) const {
  if (mesh_.shards() == 1) return x;
  const Range own = part(x.count(), mesh_.shard(), mesh_.shards());
  return x.slice(own.begin, Shape{own.count()});
}

void StagePasses::join_parts(const Tensor& x) {
  if (mesh_.shards() == 1) return;
  mesh_.tensor_parallel().comm().all_gather(x).wait();
  bytes_sent_ += x.bytes() * (mesh_.shards() - 1) / mesh_.shards();
}

void StagePasses::send(StagePass& pass, const Tensor& x, int stage, Tag tag) {
  const Tensor own = part_here(x);
  pass.sent.push_back(mesh_.pipeline().send(own, stage, tag));
  bytes_sent_ += own.bytes();
}

StageStep& StagePasses::next_step(size_t i, uint64_t seed, uint64_t update) {
  StagePass& pass = (*this)[i];
  const size_t number = pass.steps.size();
  StageStep& step = number > 0 ? pass.steps.emplace_back(pass.steps.front().tape.another())
                               : pass.steps.emplace_back(Tape(model_.parameters(), pass.arena, gradients_, seed, update));
  Incoming& in = incoming_[i % incoming_.size()];
  const size_t piece = number - pass.model->first_taking();  // none: beyond all
  if (mesh_.first_stage() || piece >= in.tensors.size()) return step;
  wait_for(in.pending[piece]);
  for (const Tensor& x : in.tensors[piece]) join_parts(x);
  step.in_gradients.resize(in.tensors[piece].size());
  for (size_t k = 0; k < in.tensors[piece].size(); ++k)
    step.in.push_back(step.tape.record(in.tensors[piece][k], [&step, k](const Tensor& dy) { step.in_gradients[k] = dy; }));
  if (piece == 0 && i + 1 < batches_.size()) expect(i + 1);
  return step;
}

void StagePasses::forward_done(size_t i) {
  StagePass& pass = (*this)[i];
  StageStep& step = pass.steps.back();
  if (const ChunkedPass::ForOutput left = pass.model->for_output(); left.rows.tape) {
    step.for_output = left.rows;
    step.for_output_gradient = output_->send(i, left, pass.sent, step.expected);
  }
  for (size_t k = 0; k < step.out.size(); ++k) send(pass, step.out[k].value, mesh_.stage() + 1, kForwardTag + static_cast<Tag>(k));
  if (!mesh_.last_stage() && pass.steps.size() == pass.model->steps()) expect_gradients(i);
}

// In the order of arrival: the last piece comes first. Each step that produced output produced one piece.
void StagePasses::expect_gradients(size_t i) {
  StagePass& pass = (*this)[i];
  const Pieces pieces = boundary(end_unit_, *batches_[i], pass.gradient_buffer);
  auto step = pass.steps.rbegin();
  for (auto piece = pieces.rbegin(); piece != pieces.rend(); ++piece, ++step) {
    while (step != pass.steps.rend() && step->out.empty()) ++step;
    CHECK(step != pass.steps.rend(), "{} pieces of {} steps", pieces.size(), pass.steps.size());
    CHECK(step->out.size() == piece->size(), "{} tensors for a boundary of {}", step->out.size(), piece->size());
    step->out_gradients = *piece;
    for (size_t k = 0; k < piece->size(); ++k) {
      const Tensor &y = step->out[k].value, &gradient = (*piece)[k];
      CHECK(y.shape() == gradient.shape(), "boundary tensor {} is {}, not {}", k, y.shape().text(), gradient.shape().text());
      step->expected.push_back(mesh_.pipeline().receive(part_here(gradient), mesh_.stage() + 1, kBackwardTag + static_cast<Tag>(k)));
    }
  }
}

StageStep& StagePasses::await_gradients(size_t i, size_t number) {
  StageStep& step = (*this)[i].steps[number];
  wait_for(step.expected);
  for (const Tensor& gradient : step.out_gradients) join_parts(gradient);
  for (size_t k = 0; k < step.out.size(); ++k) step.tape.set_gradient(step.out[k], step.out_gradients[k]);
  if (step.for_output.tape) step.tape.set_gradient(step.for_output, step.for_output_gradient);
  return step;
}

void StagePasses::backward_done(size_t i, size_t number) {
  StagePass& pass = (*this)[i];
  StageStep& step = pass.steps[number];
  for (size_t k = 0; k < step.in.size(); ++k) {
    Tensor& gradient = step.in_gradients[k];
    if (!gradient) {
      gradient = step.tape.allocate_like(step.in[k].value);
      gradient.zero();
    }
    send(pass, gradient, mesh_.stage() - 1, kBackwardTag + static_cast<Tag>(k));
  }
}

int64_t StagePasses::activation_bytes() const {
  int64_t bytes = output_ ? output_->activation_bytes() : 0;
  for (const auto& pass : passes_) bytes += pass->arena.most_used() + (pass->gradient_buffer ? pass->gradient_buffer.bytes() : 0);
  for (const Incoming& in : incoming_) bytes += in.buffer ? in.buffer.bytes() : 0;
  return bytes;
}

}  // namespace starling
