#include "cleaning/copy_search.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "cleaning/score_order.h"

namespace starling {
namespace {

struct Place {
  uint64_t hash = 0;  // 0: free
  uint32_t number = 0;
  union {
    uint32_t count = 0;
    float score;
  };
};
constexpr uint64_t kFewestPlaces = uint64_t{1} << 16;

// How full a table may be.
uint64_t keys_in(uint64_t places) { return places * 7 / 10; }

uint64_t places_for(uint64_t table_bytes, uint64_t keys) {
  uint64_t places = std::max(kFewestPlaces, std::bit_floor(table_bytes / sizeof(Place)));
  while (places > kFewestPlaces && keys_in(places / 2) >= keys) places /= 2;
  return places;
}

}  // namespace

// The keys whose high bits choose this one of several tables.
class CopySearch::Table {
 public:
  Table(uint64_t places, uint64_t tables) : places_(places), tables_(tables) {}
  void start(uint64_t number) {
    table_ = number;
    if (number > 0) std::fill(places_.begin(), places_.end(), Place());
  }
  bool has(uint64_t hash) const { return ((hash >> 32) * tables_) >> 32 == table_; }
  // Returns the place of a key, and whether it is new.
  std::pair<Place&, bool> at(uint64_t hash) {
    if (hash == 0) hash = 1;
    size_t at = hash & (places_.size() - 1);
    while (places_[at].hash != 0 && places_[at].hash != hash) at = (at + 1) & (places_.size() - 1);
    const bool is_new = places_[at].hash == 0;
    places_[at].hash = hash;
    return {places_[at], is_new};
  }
  const std::vector<Place>& places() const { return places_; }

 private:
  std::vector<Place> places_;
  const uint64_t tables_;
  uint64_t table_ = 0;
};

CopyKey key_of_copies(const CleanJob& job) {
  return job.options.copies == CopyRule::targets && !job.monolingual ? &CopyKeys::target : &CopyKeys::pair;
}

CopySearch::CopySearch(const Segments& segments, uint64_t table_bytes)
    : segments_(segments), places_(places_for(table_bytes, segments.records())) {}

uint64_t CopySearch::tables() const { return std::max<uint64_t>(1, (segments_.records() + keys_in(places_) - 1) / keys_in(places_)); }

template <class Visit>
void CopySearch::for_each(const Visit& visit) const {
  for (size_t i = 0; i < segments_.size(); ++i) {
    const Segments::Records records = segments_.read_records(i);
    SegmentMarks marks = segments_.marks(i);
    visit(i, records.span(), marks);
  }
}

template <class Mark>
void CopySearch::mark_each(const Mark& mark) const {
  for_each([&](size_t segment, std::span<const CopyRecord> records, SegmentMarks& marks) {
    bool changed = false;
    for (const CopyRecord& record : records) {
      const uint32_t i = record.number - segments_.first(segment);
      if (marks.marked(i)) continue;
      const std::pair<Rule, uint32_t> found = mark(record);
      if (found.first == Rule::empty) continue;
      marks.rules[i] = static_cast<uint8_t>(found.first);
      marks.first[i] = found.second;
      changed = true;
    }
    if (changed) segments_.save_marks(segment, marks);
  });
}

void CopySearch::mark_scores_below(float limit) {
  mark_each([&](const CopyRecord& record) { return std::pair(record.score < limit ? Rule::score : Rule::empty, uint32_t{0}); });
}

void CopySearch::mark_duplicates(CopyKey key) {
  Table table(places_, tables());
  bool scored = false;
  for_each([&](size_t, std::span<const CopyRecord> records, const SegmentMarks&) {
    scored |= std::any_of(records.begin(), records.end(), [](const CopyRecord& r) { return !std::isinf(r.score); });
  });
  const auto note = [&](const CopyRecord& record) -> Place& {
    const auto [place, is_new] = table.at(record.keys.*key);
    if (is_new || record.score > place.score) {
      place.number = record.number;
      place.score = record.score;
    }
    return place;
  };
  for (uint64_t number = 0; number < tables(); ++number) {
    table.start(number);
    if (scored)  // the best may come later
      for_each([&](size_t segment, std::span<const CopyRecord> records, const SegmentMarks& marks) {
        for (const CopyRecord& record : records)
          if (table.has(record.keys.*key) && !marks.marked(record.number - segments_.first(segment))) note(record);
      });
    mark_each([&](const CopyRecord& record) {
      if (!table.has(record.keys.*key)) return std::pair(Rule::empty, uint32_t{0});
      const uint32_t best = note(record).number;
      return std::pair(best == record.number ? Rule::empty : Rule::duplicate, best);
    });
  }
}

void CopySearch::mark_frequent(CopyKey key, int64_t most) {
  Table table(places_, tables());
  for (uint64_t number = 0; number < tables(); ++number) {
    table.start(number);
    mark_each([&](const CopyRecord& record) {
      if (!table.has(record.keys.*key)) return std::pair(Rule::empty, uint32_t{0});
      return std::pair(++table.at(record.keys.*key).first.count > most ? Rule::frequent : Rule::empty, uint32_t{0});
    });
  }
}

// The highest score such that the weights of the pairs that have it or a higher one sum to at least `sum`: by the upper 16 bits of the
// scores' order first, then by the lower ones.
template <class Weight>
std::optional<float> CopySearch::limit_of(const Weight& weight, double sum) const {
  constexpr double kAll = std::numeric_limits<double>::infinity();
  std::optional<uint32_t> upper;
  for (int pass = 0; pass < 2; ++pass) {
    std::vector<double> sums(1 << 16);
    for_each([&](size_t segment, std::span<const CopyRecord> records, const SegmentMarks& marks) {
      for (const CopyRecord& r : records) {
        if (std::isinf(r.score) || marks.marked(r.number - segments_.first(segment))) continue;
        const uint32_t order = order_of(r.score);
        if (!upper)
          sums[order >> 16] += weight(r);
        else if (order >> 16 == *upper)
          sums[order & 0xFFFF] += weight(r);
      }
    });
    uint32_t bin = 1 << 16;
    std::optional<uint32_t> lowest;  // bin that has a pair
    while (bin > 0) {
      if (sums[--bin] == 0) continue;
      lowest = bin;
      if (sums[bin] >= sum) break;
      sum -= sums[bin];
      if (std::none_of(sums.begin(), sums.begin() + bin, [](double s) { return s > 0; })) sum = kAll;  // there are no more
    }
    if (!lowest) return std::nullopt;
    if (upper) return score_of(*upper << 16 | *lowest);
    upper = lowest;
  }
  return std::nullopt;
}

std::optional<float> CopySearch::score_of_best(double share) const {
  double all = 0;
  for_each([&](size_t segment, std::span<const CopyRecord> records, const SegmentMarks& marks) {
    for (const CopyRecord& r : records) all += !std::isinf(r.score) && !marks.marked(r.number - segments_.first(segment));
  });
  return limit_of([](const CopyRecord&) { return 1.0; }, std::max(1.0, std::round(share * all)));
}

std::optional<float> CopySearch::score_of_best_words(uint64_t words) const {
  return limit_of([](const CopyRecord& r) { return static_cast<double>(r.words); }, static_cast<double>(words));
}

std::vector<std::pair<uint32_t, uint32_t>> CopySearch::most_frequent(CopyKey key, size_t count) const {
  using Frequent = std::pair<uint32_t, uint32_t>;
  std::vector<Frequent> all;
  const auto better = [](const Frequent& a, const Frequent& b) { return std::pair(b.second, a.first) < std::pair(a.second, b.first); };
  const auto leave_best = [&] {
    const size_t most = std::min(count, all.size());
    std::partial_sort(all.begin(), all.begin() + static_cast<ptrdiff_t>(most), all.end(), better);
    all.resize(most);
  };
  Table table(places_, tables());
  for (uint64_t number = 0; number < tables(); ++number) {
    table.start(number);
    for_each([&](size_t, std::span<const CopyRecord> records, const SegmentMarks&) {
      for (const CopyRecord& record : records) {
        if (!table.has(record.keys.*key)) continue;
        const auto [place, is_new] = table.at(record.keys.*key);
        if (is_new) place.number = record.number;
        ++place.count;
      }
    });
    for (const Place& place : table.places()) {
      if (place.hash != 0 && place.count > 1) all.emplace_back(place.number, place.count);
      if (all.size() > 100 * count) leave_best();
    }
    leave_best();
  }
  return all;
}

}  // namespace starling
