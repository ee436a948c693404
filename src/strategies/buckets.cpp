#include "strategies/buckets.h"

#include <algorithm>

namespace starling {

bool overlap(const Parameter& p, const Range& r) { return p.offset < r.end && r.begin < p.offset + p.shape.count(); }

std::vector<Bucket> make_buckets(const ParameterStore& store, int64_t elements, const std::vector<const Parameter*>& tables) {
  CHECK(elements > 0, "buckets of {} elements", elements);
  elements = (elements + 15) / 16 * 16;
  std::vector<Bucket> buckets;
  int64_t end = store.flat_count();  // of what is not in a bucket yet
  int64_t begin = end;               // of the open bucket, which ends at `end`
  const auto close = [&] {
    if (begin < end) buckets.push_back({{begin, end}, nullptr});
    end = begin;
  };
  for (auto p = store.all().rbegin(); p != store.all().rend(); ++p) {
    const bool whole = std::find(tables.begin(), tables.end(), &*p) != tables.end();
    const bool large = begin - p->offset > elements;
    if (whole || large || end - p->offset > elements) close();
    begin = p->offset;
    if (whole) {
      buckets.push_back({{begin, end}, &*p});
      end = begin;
    } else if (large) {
      const int64_t pieces = (end - begin + elements - 1) / elements, piece = ((end - begin + pieces - 1) / pieces + 15) / 16 * 16;
      for (int64_t to = end; to > begin; to -= piece) buckets.push_back({{std::max(begin, to - piece), to}, nullptr});
      end = begin;
    }
  }
  close();
  return buckets;
}

BucketTracker::BucketTracker(const ParameterStore& parameters, const std::vector<Bucket>& buckets, std::function<void(size_t)> ready)
    : parameters_(parameters), buckets_(buckets), ready_(std::move(ready)) {}

void BucketTracker::restart() {
  next_ = 0;
  done_.assign(parameters_.declared().size(), false);
  open_.assign(buckets_.size(), 0);
  for (size_t b = 0; b < buckets_.size(); ++b)
    for (const Parameter& p : parameters_.all()) open_[b] += overlap(p, buckets_[b].range);
}

void BucketTracker::complete(const Parameter& parameter) {
  if (done_[parameter.index]) return;
  done_[parameter.index] = true;
  for (size_t b = 0; b < buckets_.size(); ++b) open_[b] -= overlap(parameter, buckets_[b].range);
  advance();
}

void BucketTracker::complete_rest() {
  std::fill(open_.begin(), open_.end(), 0);
  advance();
}

void BucketTracker::advance() {
  while (next_ < buckets_.size() && open_[next_] == 0) ready_(next_++);
}

}  // namespace starling
