#include "watch/series.h"

#include <utility>

namespace starling {

void Series::add(int64_t step, double value) {
  const Point point{step, value};
  last_ = point;
  if (!buckets_.empty() && buckets_.back().count < per_bucket_) {
    Bucket& last = buckets_.back();
    if (value < last.least.value) last.least = point;
    if (value >= last.greatest.value) last.greatest = point;
    ++last.count;
    return;
  }
  if (buckets_.size() == kMostPoints / 2) {
    std::vector<Bucket> joined;
    for (size_t i = 0; i + 1 < buckets_.size(); i += 2) {
      const Bucket &a = buckets_[i], &b = buckets_[i + 1];
      joined.push_back({a.least.value <= b.least.value ? a.least : b.least, a.greatest.value > b.greatest.value ? a.greatest : b.greatest,
                        a.count + b.count});
    }
    buckets_ = std::move(joined);
    per_bucket_ *= 2;
  }
  buckets_.push_back({point, point, 1});
}

void Series::forget_after(int64_t step) {
  if (last_.step > step) last_ = {};
  while (!buckets_.empty()) {
    Bucket& last = buckets_.back();
    const bool least = last.least.step <= step, greatest = last.greatest.step <= step;
    if (least && greatest) return;
    if (least || greatest) {  // the bucket's other values may be from before or after: the one that is known stands for them
      last.least = last.greatest = least ? last.least : last.greatest;
      last.count = per_bucket_;
      return;
    }
    buckets_.pop_back();
  }
}

nlohmann::json Series::json() const {
  nlohmann::json steps = nlohmann::json::array(), values = nlohmann::json::array();
  for (const Bucket& bucket : buckets_) {
    Point first = bucket.least, second = bucket.greatest;
    if (first.step > second.step) std::swap(first, second);
    const auto put = [&](const Point& point) {
      steps.push_back(point.step);
      values.push_back(point.value);
    };
    put(first);
    if (second.step != first.step) put(second);
  }
  if (!steps.empty() && last_.step > steps.back().get<int64_t>()) {
    steps.push_back(last_.step);
    values.push_back(last_.value);
  }
  return {{"step", steps}, {"value", values}};
}

}  // namespace starling
