#include "guard/snapshot.h"

namespace starling {

std::vector<Tensor> ReplicaSnapshot::live() {
  std::vector<Tensor> all{replica_.model().parameters().values()};
  for (const auto& [name, tensor] : replica_.optimizer().state()) all.push_back(tensor);
  if (replica_.average()) all.push_back(replica_.average());
  for (const Strategy::StateTensor& t : replica_.strategy_state()) all.push_back(t.tensor);
  return all;
}

void ReplicaSnapshot::keep() {
  replica_.model().parameters().wait_for_parameters();
  const std::vector<Tensor> now = live();
  tensors_.resize(now.size());
  for (size_t i = 0; i < now.size(); ++i) {
    const Tensor& from = now[i];
    if (!tensors_[i] || tensors_[i].bytes() != from.bytes()) tensors_[i] = Tensor(from.shape(), from.dtype(), from.memory());
    tensors_[i].copy_from(from);
  }
  updates_ = replica_.steps();
  moments_since_ = replica_.moments_since();
}

void ReplicaSnapshot::restore() {
  CHECK(kept(), "nothing was kept");
  ParameterStore& parameters = replica_.model().parameters();
  parameters.wait_for_parameters();
  parameters.values().copy_from(tensors_.front());
  parameters.changed();
  replica_.optimizer().set_updates(updates_);
  replica_.optimizer().set_moments_since(moments_since_);
  replica_.begin();
  const std::vector<Tensor> now = live();
  CHECK(now.size() == tensors_.size(), "{} states, {} were kept", now.size(), tensors_.size());
  for (size_t i = 0; i < now.size(); ++i) now[i].copy_from(tensors_[i]);
  parameters.changed();
  replica_.share_parameters();
}

int64_t ReplicaSnapshot::bytes() const {
  int64_t sum = 0;
  for (const Tensor& t : tensors_) sum += t.bytes();
  return sum;
}

}  // namespace starling
