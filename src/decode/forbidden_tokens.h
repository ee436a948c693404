// Tokens that must not continue a translation: pieces and sequences of pieces that it may not contain, and n-grams that it may not repeat.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace starling {

class ForbiddenTokens {
 public:
  ForbiddenTokens() = default;
  // The last token of each of the `sequences` is forbidden where the tokens before it stand just before; a sequence of one token, always.
  // With no_repeat_ngram > 0, so is every token that would make the last no_repeat_ngram tokens occur a second time.
  ForbiddenTokens(std::span<const std::vector<int32_t>> sequences, int64_t no_repeat_ngram);

  const std::vector<int32_t>& always() const { return always_; }  // ascending, each once
  bool always(int32_t token) const;
  bool depend_on_prefix() const { return !sequences_.empty() || ngram_ > 0; }
  // Appends the tokens that are forbidden after a prefix, beside those that always are, ascending, each once.
  void append_after(std::span<const int32_t> prefix, std::vector<int32_t>& tokens) const;
  // Returns the most tokens that append_after() appends for prefixes of up to `length` tokens.
  int64_t most_after(int64_t length) const;

 private:
  std::vector<int32_t> always_;
  std::vector<std::vector<int32_t>> sequences_;  // of two tokens or more
  int64_t ngram_ = 0;
};

}  // namespace starling
