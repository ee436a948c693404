#include "decode/forbidden_tokens.h"

#include <algorithm>

namespace starling {
namespace {

void sort_each_once(std::vector<int32_t>& tokens, size_t first) {
  const auto begin = tokens.begin() + static_cast<ptrdiff_t>(first);
  std::sort(begin, tokens.end());
  tokens.erase(std::unique(begin, tokens.end()), tokens.end());
}

}  // namespace

ForbiddenTokens::ForbiddenTokens(std::span<const std::vector<int32_t>> sequences, int64_t no_repeat_ngram) : ngram_(no_repeat_ngram) {
  for (const std::vector<int32_t>& sequence : sequences) {
    if (sequence.size() == 1) always_.push_back(sequence[0]);
    if (sequence.size() > 1) sequences_.push_back(sequence);
  }
  sort_each_once(always_, 0);
}

bool ForbiddenTokens::always(int32_t token) const { return std::binary_search(always_.begin(), always_.end(), token); }

void ForbiddenTokens::append_after(std::span<const int32_t> prefix, std::vector<int32_t>& tokens) const {
  const size_t first = tokens.size();
  for (const std::vector<int32_t>& sequence : sequences_) {
    const size_t before = sequence.size() - 1;
    if (prefix.size() >= before && std::equal(sequence.begin(), sequence.end() - 1, prefix.end() - static_cast<ptrdiff_t>(before)))
      tokens.push_back(sequence.back());
  }
  if (ngram_ > 0) {
    const auto before = static_cast<size_t>(ngram_) - 1;
    for (size_t i = 0; i + before < prefix.size(); ++i)
      if (std::equal(prefix.end() - static_cast<ptrdiff_t>(before), prefix.end(), prefix.begin() + static_cast<ptrdiff_t>(i)))
        tokens.push_back(prefix[i + before]);
  }
  sort_each_once(tokens, first);
}

int64_t ForbiddenTokens::most_after(int64_t length) const {
  return static_cast<int64_t>(sequences_.size()) + (ngram_ > 0 ? std::max<int64_t>(length - ngram_ + 1, 0) : 0);
}

}  // namespace starling
