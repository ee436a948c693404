#include "cleaning/near_search.h"

#include <algorithm>
#include <atomic>
#include <optional>

#include "base/start_threads.h"
#include "cleaning/near_block.h"
#include "cleaning/score_order.h"

namespace starling {
namespace {

// A pair that may be in a block.
struct Ranked {
  uint64_t rank = 0;      // of the pair: the best first, no two are equal
  uint32_t shingles = 0;  // of both sides
  uint32_t place = 0;     // in the block
  uint32_t number() const { return static_cast<uint32_t>(rank); }
};
bool is_better(const Ranked& a, const Ranked& b) { return a.rank < b.rank; }
uint64_t rank_of(const NearRecord& record) {
  return uint64_t{~order_of(record.score + 0.0f)} << 32 | record.number;  // -0 is 0
}

uint64_t bytes_of(const Ranked& pair) { return NearBlock::kPairBytes + 2 * sizeof(Ranked) + pair.shingles * sizeof(uint32_t); }

class NearCopies {
 public:
  NearCopies(const Segments& segments, const NearSearch& search)
      : segments_(segments), search_(search), most_(std::max<uint64_t>(1, search.bytes / bytes_of({}))) {}
  void mark() {
    uint64_t done = 0;
    for (uint64_t after = 0;;) {
      std::vector<Ranked> chosen = best_after(after);
      if (chosen.empty()) return;
      after = chosen.back().rank + 1;
      NearBlock block = load(chosen);
      compare_within(block, done);
      compare_rest(block, after);
      done += block.size();
    }
  }

 private:
  // Calls visit(index in the segment, record) for the pairs without a mark whose rank is at least this.
  template <class Visit>
  void for_each(size_t segment, const NearRecords& near, const SegmentMarks& marks, uint64_t from, const Visit& visit) const {
    for (const NearRecord& record : near.records()) {
      const uint32_t i = record.number - segments_.first(segment);
      if (rank_of(record) >= from && !marks.marked(i)) visit(i, record);
    }
  }

  // Returns the best pairs from this rank on that fit into a block, the best first.
  std::vector<Ranked> best_after(uint64_t from) const {
    std::vector<Ranked> best;
    best.reserve(std::min<size_t>(2 * most_, segments_.all_pairs()));
    const auto leave_best = [&] {
      if (best.size() <= most_) return;
      std::nth_element(best.begin(), best.begin() + static_cast<ptrdiff_t>(most_), best.end(), is_better);
      best.resize(most_);
    };
    for (size_t s = 0; s < segments_.size(); ++s) {
      const NearRecords near = segments_.near(s);
      for_each(s, near, segments_.marks(s), from, [&](uint32_t, const NearRecord& record) {
        best.push_back({rank_of(record), record.shingles(), 0});
        if (best.size() == 2 * most_) leave_best();
      });
    }
    leave_best();
    std::sort(best.begin(), best.end(), is_better);
    uint64_t bytes = 0;
    size_t fit = 0;
    while (fit < best.size() && (fit == 0 || bytes + bytes_of(best[fit]) <= search_.bytes)) bytes += bytes_of(best[fit++]);
    best.resize(fit);
    return best;
  }

  NearBlock load(std::vector<Ranked>& chosen) const {
    uint64_t shingles = 0;
    for (uint32_t i = 0; i < chosen.size(); ++i) {
      chosen[i].place = i;
      shingles += chosen[i].shingles;
    }
    NearBlock block(search_.threshold, chosen.size(), shingles);
    std::sort(chosen.begin(), chosen.end(), [](const Ranked& a, const Ranked& b) { return a.number() < b.number(); });
    auto next = chosen.begin();
    for (size_t s = 0; s < segments_.size() && next != chosen.end(); ++s) {
      const NearRecords near = segments_.near(s);
      const SegmentMarks marks = segments_.marks(s);
      for (const NearRecord& record : near.records()) {
        if (next == chosen.end()) break;
        if (record.number != next->number()) continue;
        block.put(next->place, record, near.shingles(record), marks.first[record.number - segments_.first(s)]);
        ++next;
      }
    }
    return block;
  }

  void compare_within(NearBlock& block, uint64_t done) const {
    constexpr size_t kTold = 1024;                      // pairs
    std::vector<std::pair<uint32_t, uint32_t>> copies;  // numbers of a pair and of the one that it is near
    for (size_t i = 0; i < block.size(); ++i) {
      if (search_.told && i % kTold == 0) search_.told(done + i);
      uint32_t tried = block.tried(i);
      if (const auto found = block.find(block.query(i), tried))
        copies.emplace_back(block.number(i), *found);
      else
        block.add(i);
    }
    std::sort(copies.begin(), copies.end());
    for (auto next = copies.begin(); next != copies.end();) {
      const size_t segment = next->first / segments_.segment_pairs();
      SegmentMarks marks = segments_.marks(segment);
      for (; next != copies.end() && next->first / segments_.segment_pairs() == segment; ++next)
        set(marks, next->first - segments_.first(segment), next->second);
      segments_.save_marks(segment, marks);
    }
  }

  // Each segment has its own marks, so they do not depend on the threads.
  void compare_rest(const NearBlock& block, uint64_t from) const {
    std::atomic<size_t> next = 0;
    work_side_by_side(static_cast<size_t>(search_.threads), [&](size_t) {
      for (size_t s = next++; s < segments_.size(); s = next++) {
        const NearRecords near = segments_.near(s);
        SegmentMarks marks = segments_.marks(s);
        bool changed = false;
        for_each(s, near, marks, from, [&](uint32_t i, const NearRecord& record) {
          const auto both = near.shingles(record);
          const uint32_t before = marks.first[i];
          if (const auto found = block.find({record.bands, both.first(record.source), both.subspan(record.source)}, marks.first[i]))
            set(marks, i, *found);
          changed |= marks.marked(i) || marks.first[i] != before;
        });
        if (changed) segments_.save_marks(s, marks);
      }
    });
  }

  static void set(SegmentMarks& marks, uint32_t i, uint32_t first) {
    marks.rules[i] = static_cast<uint8_t>(Rule::near_copy);
    marks.first[i] = first;
  }

  const Segments& segments_;
  const NearSearch search_;
  const size_t most_;  // pairs of a block, if they had no shingles
};

}  // namespace

void mark_near_copies(const Segments& segments, const NearSearch& search) { NearCopies(segments, search).mark(); }

}  // namespace starling
