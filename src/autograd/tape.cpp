#include "autograd/tape.h"

#include <algorithm>

#include "backend/dropout.h"

namespace starling {

// FNV-1a.
DropoutSite::DropoutSite(std::string_view name) : key(0xcbf29ce484222325u) {
  for (const char c : name) key = (key ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
}

Dropout Tape::dropout(double p, const DropoutSite& site, const RowKeys& rows, int64_t first_column) {
  if (!training()) return {};
  CHECK(std::find(sites_.begin(), sites_.end(), site.key) == sites_.end(), "dropout site {:x} is used twice on a tape", site.key);
  sites_.push_back(site.key);
  if (p <= 0) return {};
  return {p, dropout_key(seed_, step_, site.key), rows, first_column};
}

Var Tape::record(Tensor y, Backward backward) {
  if (!training()) return {this, -1, std::move(y)};
  nodes_.push_back({y, {}, std::move(backward)});
  return {this, static_cast<int32_t>(nodes_.size()) - 1, std::move(y)};
}

Tape::Slot Tape::gradient(const Var& x) {
  Node& node = nodes_.at(x.node);
  if (node.gradient) return {node.gradient, Write::accumulate};
  node.gradient = allocate_like(node.value);
  return {node.gradient, Write::overwrite};
}

void Tape::pass_gradient(const Var& x, const Tensor& dy) {
  Node& node = nodes_.at(x.node);
  if (node.gradient)
    backend().add(dy, node.gradient);
  else
    node.gradient = dy;
}

void Tape::set_gradient(const Var& x, const Tensor& dx) {
  Node& node = nodes_.at(x.node);
  CHECK(!node.gradient, "a second gradient for node {}", x.node);
  node.gradient = dx;
}

void Tape::backward() {
  for (auto node = nodes_.rbegin(); node != nodes_.rend(); ++node) {
    if (!node->gradient) continue;
    node->backward(node->gradient);
    node->backward = nullptr;
  }
  nodes_.clear();
}

}  // namespace starling
