#include "strategies/rounded_steps.h"

#include "strategies/steps.h"

namespace starling {

RoundedSteps::RoundedSteps(FlatOps& flat, const Tensor& values, std::vector<Range> own, int64_t largest)
    : flat_(flat), values_(values), own_(std::move(own)) {
  CHECK(values.dtype() == DType::f32, "steps of {} parameters, rounded to bf16", name_of(values.dtype()));
  wire_ = Tensor({values.count()}, DType::bf16, values.memory());
  before_ = Tensor({total(own_)}, DType::f32, values.memory());
  wide_ = Tensor({largest}, DType::f32, values.memory());
}

Tensor RoundedSteps::before(const Range& range) const {
  int64_t at = 0;
  auto o = own_.begin();
  for (; o != own_.end() && o->end <= range.begin; ++o) at += o->count();
  CHECK(o != own_.end() && o->begin <= range.begin && range.end <= o->end, "elements {} to {} are not this rank's", range.begin, range.end);
  at += range.begin - o->begin;
  return view(before_, {at, at + range.count()});
}

void RoundedSteps::remember() {
  for (const Range& r : own_) before(r).copy_from(view(values_, r));
}

void RoundedSteps::make(const Range& range) {
  const Tensor value = view(values_, range), was = before(range), step = view(wide_, {0, range.count()});
  flat_.displacement({value, was, {}, 0, step, {}});
  flat_.convert(step, view(wire_, range));
  value.copy_from(was);
}

void RoundedSteps::add(const Range& range) {
  const Tensor step = view(wide_, {0, range.count()});
  flat_.convert(view(wire_, range), step);
  flat_.scale(step, 1, view(values_, range), Write::accumulate);
}

}  // namespace starling
