#include "parallel/output_shares.h"

#include <numeric>

#include "data/batches.h"
#include "parallel/stages.h"

namespace starling {
namespace {

constexpr Tag kRowsTag = 40, kGradientsTag = 44;  // and the number of the tensor

bool empty(const Batch& share) { return share.target.count() == 0; }

}  // namespace

void wait_for(std::vector<Pending>& pending) {
  for (const Pending& p : pending) p.wait();
  pending.clear();
}

std::vector<Batch> output_shares(const Batch& batch, std::span<const double> weights) {
  const double whole = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<Batch> shares;
  for (double from = 0; const double weight : weights) {
    const bool last = shares.size() + 1 == weights.size();  // whatever sums are rounded to
    shares.push_back(share_between(batch, from, last ? 2 * whole : from + weight, whole, 0, 1));
    from += weight;
  }
  return shares;
}

std::vector<Range> share_rows(const Model& model, const std::vector<Batch>& shares, size_t tensor) {
  std::vector<Range> rows;
  int64_t at = 0;
  for (const Batch& share : shares) {
    const int64_t n = empty(share) ? 0 : model.boundary(model.units() - 1, share)[tensor][0];
    rows.push_back({at, at + n});
    at += n;
  }
  return rows;
}

OutputShares::OutputShares(Model& model, const Mesh& mesh, GradientSum& gradients)
    : model_(model), mesh_(mesh), gradients_(gradients), arena_(model.parameters().backend().memory()) {
  const std::vector<UnitRange> stages = stage_units(model, mesh);
  for (const size_t unit : model.output_reads()) sources_.push_back(static_cast<int>(stage_of(stages, unit)));
  weights_ = output_weights(model, stages);
  own_.resize(sources_.size());
}

void OutputShares::restart(const std::vector<const Batch*>& batches) {
  shares_.clear();
  for (const Batch* batch : batches) shares_.push_back(output_shares(*batch, weights_));
  for (auto& own : own_) own.clear();
  expect(0);
}

void OutputShares::expect(size_t i) {
  received_.assign(sources_.size(), {});
  if (i >= shares_.size() || empty(own(i))) return;
  const std::vector<Shape> shapes = model_.boundary(model_.units() - 1, own(i));
  const Backend& backend = model_.parameters().backend();
  int64_t count = 0, at = 0;
  for (const Shape& shape : shapes) count += shape.count();
  if (!buffer_ || buffer_.count() < count) buffer_ = Tensor({count}, backend.activation(), backend.memory());
  for (size_t k = 0; k < shapes.size(); ++k) {
    if (sources_[k] == mesh_.stage()) continue;
    received_[k] = buffer_.slice(at, shapes[k]);
    at += shapes[k].count();
    pending_.push_back(mesh_.replica().receive(received_[k], sources_[k], kRowsTag + static_cast<Tag>(k)));
  }
}

Tensor OutputShares::send(size_t i, const ChunkedPass::ForOutput& left, std::vector<Pending>& sent, std::vector<Pending>& expected) {
  const Tensor& x = left.rows.value;
  const Tensor gradient = left.rows.tape->allocate_like(x);
  const std::vector<Range> rows = share_rows(model_, shares_[i], left.tensor);
  CHECK(rows.back().end == x.rows(), "{} rows for shares of {}", x.rows(), rows.back().end);
  for (int s = 0; s < mesh_.stages(); ++s) {
    const Range& r = rows[static_cast<size_t>(s)];
    if (r.count() == 0) continue;
    const Tensor values = x.rows(r.begin, r.end), back = gradient.rows(r.begin, r.end);
    if (s == mesh_.stage()) {
      own_[left.tensor].push_back({values, back});
      continue;
    }
    sent.push_back(mesh_.replica().send(values, s, kRowsTag + static_cast<Tag>(left.tensor)));
    expected.push_back(mesh_.replica().receive(back, s, kGradientsTag + static_cast<Tag>(left.tensor)));
    bytes_sent_ += values.bytes();
  }
  return gradient;
}

Tape& OutputShares::begin(size_t i, double label_smoothing, uint64_t seed, uint64_t update) {
  wait_for(pending_);
  wait_for(sent_);
  in_.clear();
  tape_.reset();
  pass_.reset();
  arena_.release({});
  tape_ = std::make_unique<Tape>(model_.parameters(), arena_, gradients_, seed, update);
  pass_ = model_.begin_output(own(i), label_smoothing);
  in_gradients_.assign(sources_.size(), {});
  for (size_t k = 0; k < sources_.size(); ++k)
    in_.push_back(
        tape_->record(received_[k] ? received_[k] : own_[k].front().values, [this, k](const Tensor& dy) { in_gradients_[k] = dy; }));
  return *tape_;
}

void OutputShares::end(size_t i) {
  for (size_t k = 0; !empty(own(i)) && k < sources_.size(); ++k) {
    const Tensor& gradient = in_gradients_[k];
    if (received_[k]) {
      sent_.push_back(mesh_.replica().send(gradient, sources_[k], kGradientsTag + static_cast<Tag>(k)));
      bytes_sent_ += gradient.bytes();
      continue;
    }
    own_[k].front().gradients.copy_from(gradient);
    own_[k].pop_front();
  }
  expect(i + 1);
}

}  // namespace starling
