#include "strategies/deferred_gather.h"

#include <algorithm>

#include "strategies/steps.h"

namespace starling {

DeferredGather::DeferredGather(const ParameterStore& parameters, const std::vector<Bucket>& buckets, const Ownership& ownership,
                               const Ranks& ranks)
    : buckets_(buckets), ownership_(ownership), ranks_(ranks), values_(parameters.values()), units_(buckets.size()) {
  int64_t largest = 0;
  for (size_t b = 0; b < buckets.size(); ++b) {
    const Range& range = buckets[b].range;
    largest = std::max(largest, range.count());
    for (const Parameter& p : parameters.all())
      if (overlap(p, range)) units_[b].insert(p.units.begin(), p.units.end());
  }
  if (ranks.narrow) rounded_.emplace(parameters.backend().flat(), values_, ownership.of(ranks.rank), largest);
}

void DeferredGather::begin(Worker& w, bool late) {
  CHECK(!w.parameters().expects(), "an update of parameters of which some are on their way");
  pending_.assign(buckets_.size(), {});
  landed_.assign(buckets_.size(), false);
  asked_ = buckets_.size();
  late_ = late;
  const double bytes = RoundedSteps::kRememberBytes * static_cast<double>(total(ownership_.of(ranks_.rank)));
  if (rounded_) w.clock().spend({Work::memory, 0, bytes}, [&] { rounded_->remember(); });
}

void DeferredGather::updated(Worker& w, size_t b) {
  if (!late_ || units_[b].contains(0) || units_[b].contains(1)) issue_until(w, b);
}

void DeferredGather::end(Worker& w) {
  w.parameters().changed();
  const auto all = [this, &w] {
    w.comm().note("exchange of parameters", 0);
    issue_until(w, 0);
    for (size_t b = buckets_.size(); b-- > 0;) complete(w, b);
  };
  w.parameters().expect({all, [this, &w](size_t unit) { arrive(w, unit); }});
  if (!late_) w.parameters().wait_for_parameters();
}

void DeferredGather::arrive(Worker& w, size_t unit) {
  for (size_t b = buckets_.size(); b-- > 0;)
    if (units_[b].contains(unit)) complete(w, b);
  for (size_t b = asked_; b-- > 0;)
    if (units_[b].contains(unit + 1) || units_[b].contains(unit + 2)) issue_until(w, b);
}

void DeferredGather::issue_until(Worker& w, size_t b) {
  for (; asked_ > b; --asked_) pending_[asked_ - 1] = ask(w, asked_ - 1);
}

Pending DeferredGather::ask(Worker& w, size_t b) {
  if (rounded_) {
    const std::vector<Range> own = ownership_.updated_by(ranks_.rank, b);
    w.clock().spend({Work::memory, 0, RoundedSteps::kMakeBytes * static_cast<double>(total(own))}, [&] {
      for (const Range& r : own) rounded_->make(r);
    });
  }
  const Tensor x = view(rounded_ ? rounded_->wire() : values_, buckets_[b].range);
  if (rounded_ || ownership_.changes_hands(b))
    return w.comm().run(ownership_.from_owners({ranks_.rank, ranks_.size, x.count(), x.dtype()}, b, ranks_.workers), x,
                        rounded_ ? "steps from their owners" : "parameters from their owners");
  if (ranks_.servers.empty()) return w.comm().all_gather(x);
  return w.comm().run(server_pull({ranks_.rank, ranks_.size, x.count(), x.dtype(), ranks_.workers, ranks_.servers}), x,
                      "pull of parameters");
}

void DeferredGather::complete(Worker& w, size_t b) {
  if (landed_[b]) return;
  landed_[b] = true;
  issue_until(w, b);
  pending_[b].wait();
  if (rounded_) {
    // A rank that only serves has only its own steps.
    const std::vector<Range> ranges = ranks_.rank < ranks_.workers ? std::vector{buckets_[b].range} : ownership_.updated_by(ranks_.rank, b);
    w.clock().spend({Work::memory, 0, RoundedSteps::kAddBytes * static_cast<double>(total(ranges))}, [&] {
      for (const Range& r : ranges) rounded_->add(r);
    });
  }
  if (std::find(landed_.begin(), landed_.end(), false) == landed_.end()) w.parameters().expect({});
}

}  // namespace starling
