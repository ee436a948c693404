#include "autograd/relative.h"

namespace starling {

RelativeBins RelativeAttention::start(const Tensor& q, int64_t D) {
  if (!tables_.keys) return {};
  Backend& backend = tape_.backend();
  queries_ = tape_.allocate({q.rows(), D}, backend.activation());
  backend.copy_columns(q, 0, queries_, 0, D, Write::overwrite);
  bins_.reach = (tables_.keys->shape[0] - 1) / 2;
  const Shape shape{q.rows(), heads_ * bins_.bins()};
  bins_.scores = tape_.allocate(shape, backend.parameter()), bins_.mass = tape_.allocate(shape, backend.activation());
  backend.linear(by_head(queries_), tape_.parameters().packed(*tables_.keys, true), {}, by_head(bins_.scores), Activation::none,
                 Write::overwrite);
  return bins_;
}

void RelativeAttention::finish(const Tensor& y) {
  if (!tables_.keys) return;
  tape_.backend().linear(by_head(bins_.mass), tape_.parameters().packed(*tables_.values, false), {}, by_head(y), Activation::none,
                         Write::accumulate);
  tape_.use(*tables_.keys);
  tape_.use(*tables_.values);
}

RelativeBins RelativeAttention::start_backward(const Tensor& dy) {
  if (!tables_.keys) return {};
  dy_ = dy;
  bins_.dmass = tape_.allocate_like(bins_.scores), bins_.dscores = tape_.allocate_like(bins_.mass);
  tape_.backend().linear(by_head(dy), tape_.parameters().packed(*tables_.values, true), {}, by_head(bins_.dmass), Activation::none,
                         Write::overwrite);
  return bins_;
}

void RelativeAttention::finish_backward(const Tensor& dq) {
  if (!tables_.keys) return;
  Backend& backend = tape_.backend();
  const Tensor more = tape_.allocate_like(queries_);
  backend.linear(by_head(bins_.dscores), tape_.parameters().packed(*tables_.keys, false), {}, by_head(more), Activation::none,
                 Write::overwrite);
  backend.copy_columns(more, 0, dq, 0, more.columns(), Write::accumulate);
  add_gradient(*tables_.values, bins_.mass, dy_);
  add_gradient(*tables_.keys, bins_.dscores, queries_);
}

void RelativeAttention::add_gradient(Parameter& table, const Tensor& a, const Tensor& c) {
  Backend& backend = tape_.backend();
  const Write write = tape_.gradients().next_write(table);
  if (is_spread(tables_.shards)) {  // each has the part of its heads
    const Tensor here = tape_.allocate(table.shape, backend.parameter());
    backend.weight_gradient(by_head(a), by_head(c), here, Write::overwrite);
    tables_.shards->sum(here);
    backend.flat().scale(here, 1, table.gradient, write);
  } else {
    backend.weight_gradient(by_head(a), by_head(c), table.gradient, write);
  }
  tape_.done(table);
}

}  // namespace starling
