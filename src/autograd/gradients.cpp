#include "autograd/gradients.h"

namespace starling {

void GradientSum::complete() {
  for (const Parameter* p : parameters_.declared())
    if (p->hold != Parameter::absent && !written_[p->index]) p->gradient.zero();
}

Write GradientSum::next_write(const Parameter& p) {
  const bool more = written_[p.index];
  written_[p.index] = true;
  return more ? Write::accumulate : Write::overwrite;
}

void GradientSum::drop_tokens() {
  for (auto& tokens : tokens_) tokens.reset();
}

}  // namespace starling
