#include "strategies/ownership.h"

#include <algorithm>

namespace starling {
namespace {

// Merges neighbouring ranges of one rank.
void add(std::vector<Owned>& all, const Owned& o) {
  if (o.range.count() <= 0) return;
  if (!all.empty() && all.back().rank == o.rank && all.back().range.end == o.range.begin)
    all.back().range.end = o.range.end;
  else
    all.push_back(o);
}

// The owner of each matrix, by offset.
std::vector<int> owners_of(const std::vector<MatrixPlace>& matrices, const std::vector<int>& owners) {
  std::vector<size_t> costliest(matrices.size());
  for (size_t i = 0; i < matrices.size(); ++i) costliest[i] = i;
  std::stable_sort(costliest.begin(), costliest.end(),
                   [&](size_t a, size_t b) { return Muon::flops(matrices[a]) > Muon::flops(matrices[b]); });
  std::vector<double> load(owners.size(), 0.0);
  std::vector<int> of(matrices.size());
  for (const size_t i : costliest) {
    const auto least = static_cast<size_t>(std::min_element(load.begin(), load.end()) - load.begin());
    load[least] += Muon::flops(matrices[i]);
    of[i] = owners[least];
  }
  return of;
}

}  // namespace

Ownership::Ownership(const std::vector<Bucket>& buckets, const std::vector<int>& owners, std::vector<MatrixPlace> matrices)
    : buckets_(buckets), matrices_(std::move(matrices)), parts_(buckets.size()), updated_(buckets.size()) {
  const std::vector<int> of = owners_of(matrices_, owners);
  size_t next = 0;                         // matrix that is not in whole_ yet
  const auto flat = [&](const Owned& o) {  // and the matrices before its end
    int64_t at = o.range.begin;
    if (!whole_.empty()) at = std::max(at, whole_.back().range.end);
    for (; next < matrices_.size() && matrices_[next].offset < o.range.end; ++next) {
      const MatrixPlace& m = matrices_[next];
      add(whole_, {{at, m.offset}, o.rank});
      add(whole_, {{m.offset, m.offset + m.count()}, of[next]});
      at = m.offset + m.count();
    }
    add(whole_, {{at, o.range.end}, o.rank});
  };
  for (size_t b = buckets.size(); b-- > 0;) {  // ascending
    const Range& bucket = buckets[b].range;
    for (size_t i = 0; i < owners.size(); ++i) {
      const Owned o{part(bucket.count(), static_cast<int>(i), static_cast<int>(owners.size())), owners[i]};
      add(parts_[b], o);
      flat({{bucket.begin + o.range.begin, bucket.begin + o.range.end}, o.rank});
    }
  }
  for (size_t b = 0; b < buckets.size(); ++b) {
    const Range& bucket = buckets[b].range;
    auto o = std::partition_point(whole_.begin(), whole_.end(), [&](const Owned& w) { return w.range.end <= bucket.begin; });
    for (; o != whole_.end() && o->range.begin < bucket.end; ++o)
      add(updated_[b],
          {{std::max(o->range.begin, bucket.begin) - bucket.begin, std::min(o->range.end, bucket.end) - bucket.begin}, o->rank});
    each_change(parts_[b], updated_[b], [&](const Range& r, int, int) { moved_ += r.count(); });
  }
}

bool Ownership::cuts(int64_t offset) const {
  return std::any_of(matrices_.begin(), matrices_.end(),
                     [&](const MatrixPlace& m) { return m.offset < offset && offset < m.offset + m.count(); });
}

std::vector<Range> Ownership::of(int rank) const {
  std::vector<Range> ranges;
  for (const Owned& o : whole_)
    if (o.rank == rank) ranges.push_back(o.range);
  return ranges;
}

std::vector<Range> Ownership::updated_by(int rank, size_t bucket) const {
  std::vector<Range> own;
  const int64_t begin = buckets_[bucket].range.begin;
  for (const Owned& o : updated_[bucket])
    if (o.rank == rank) own.push_back({begin + o.range.begin, begin + o.range.end});
  return own;
}

Schedule Ownership::to_owners(const CollectiveShape& shape, size_t bucket) const {
  return hand_over(shape, parts_[bucket], updated_[bucket]);
}

Schedule Ownership::from_owners(const CollectiveShape& shape, size_t bucket, int receivers) const {
  Schedule gather = gather_owned(shape, parts_[bucket], receivers);
  return changes_hands(bucket) ? then(hand_over(shape, updated_[bucket], parts_[bucket]), gather) : gather;
}

}  // namespace starling
