#include "alignment/word_pairs.h"

namespace starling {
namespace {

constexpr size_t kPart = size_t{1} << 24;  // occurrences that are sorted together

void sort_once(std::vector<uint64_t>& pairs) {
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
}

// The pairs of a text, in ascending order.
std::vector<uint64_t> pairs_of(std::span<const NumberedPair> text) {
  std::vector<uint64_t> all, part;
  const auto add = [&] {
    sort_once(part);
    std::vector<uint64_t> merged;
    merged.reserve(all.size() + part.size());
    std::set_union(all.begin(), all.end(), part.begin(), part.end(), std::back_inserter(merged));
    all.swap(merged);
    part.clear();
  };
  for (const NumberedPair& pair : text) {
    for (const uint32_t t : pair.target) {
      part.push_back(t);  // with the null word
      for (const uint32_t s : pair.source) part.push_back(uint64_t{s} << 32 | t);
    }
    if (part.size() > kPart) add();
  }
  add();
  return all;
}

}  // namespace

WordPairs::WordPairs(std::span<const NumberedPair> text) : WordPairs(pairs_of(text)) {}

WordPairs::WordPairs(const std::vector<uint64_t>& pairs) {
  begins_.assign((pairs.empty() ? kNullWord : pairs.back() >> 32) + 2, 0);
  targets_.reserve(pairs.size());
  for (const uint64_t pair : pairs) {
    ++begins_[(pair >> 32) + 1];
    targets_.push_back(static_cast<uint32_t>(pair));
  }
  for (size_t i = 1; i < begins_.size(); ++i) begins_[i] += begins_[i - 1];
}

}  // namespace starling
