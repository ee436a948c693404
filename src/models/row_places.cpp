#include "models/row_places.h"

#include <iterator>

namespace starling {

int64_t RowPlaces::take(int64_t n) {
  CHECK(n > 0, "{} rows", n);
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    const auto [first, rows] = *it;
    if (rows < n) continue;
    free_.erase(it);
    if (rows > n) free_.emplace(first + n, rows - n);
    return first;
  }
  end_ += n;
  return end_ - n;
}

void RowPlaces::give_back(int64_t first, int64_t n) {
  if (n == 0) return;
  CHECK(first >= 0 && n > 0 && first + n <= end_, "rows [{}, {}) of {}", first, first + n, end_);
  auto after = free_.lower_bound(first);
  CHECK(after == free_.end() || first + n <= after->first, "rows from {} are free already", first);
  if (after != free_.end() && after->first == first + n) {
    n += after->second;
    after = free_.erase(after);
  }
  if (after != free_.begin()) {
    const auto before = std::prev(after);
    CHECK(before->first + before->second <= first, "rows from {} are free already", first);
    if (before->first + before->second == first) {
      first = before->first;
      n += before->second;
      free_.erase(before);
    }
  }
  if (first + n == end_)
    end_ = first;
  else
    free_.emplace(first, n);
}

Places take_places(RowPlaces& rows, std::vector<int32_t>& length, const PackedTokens& source, int64_t padded) {
  const int64_t first = rows.take(padded), tokens = source.count();
  const int64_t end = rows.end();
  rows.give_back(first + tokens, padded - tokens);  // free as soon as they are written
  Places places{first, end - rows.end(), {}};
  length.resize(std::max(length.size(), static_cast<size_t>(first + tokens)));
  for (int64_t b = 0; b < source.sentences(); ++b) {
    const int32_t number = static_cast<int32_t>(first) + source.offsets[b];
    length[number] = source.offsets[b + 1] - source.offsets[b];
    CHECK(length[number] > 0, "source {} of {} has no tokens", b + 1, source.sentences());
    places.numbers.push_back(number);
  }
  return places;
}

void PrefixRows::step(std::span<const int32_t> parent) {
  std::vector<int32_t> rows, index, offsets{0};
  for (const int32_t p : parent)
    if (p >= 0) ++children_[rows_[p]];
  for (const int32_t row : rows_) release(row);
  for (const int32_t p : parent) {
    const int32_t row = take(p < 0 ? -1 : rows_[p]);
    if (p >= 0) index.insert(index.end(), index_.begin() + offsets_[p], index_.begin() + offsets_[p + 1]);
    index.push_back(row);
    rows.push_back(row);
    offsets.push_back(static_cast<int32_t>(index.size()));
  }
  rows_.swap(rows);
  index_.swap(index);
  offsets_.swap(offsets);
}

int32_t PrefixRows::take(int32_t parent) {
  int32_t row = static_cast<int32_t>(parent_.size());
  if (free_.empty()) {
    parent_.push_back(parent);
    children_.push_back(0);
    return row;
  }
  row = free_.back();
  free_.pop_back();
  parent_[row] = parent;
  children_[row] = 0;
  return row;
}

void PrefixRows::release(int32_t row) {
  while (row >= 0 && children_[row] == 0) {
    free_.push_back(row);
    row = parent_[row];
    if (row >= 0) --children_[row];
  }
}

}  // namespace starling
