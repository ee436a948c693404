// Changes of training sentences that make a model robust: capitals, typing errors, several sentences in one line. They are drawn anew in
// every epoch, from the seed alone, so that a resumed run sees the same. The stored tokens are decoded, changed and encoded again; a
// sentence that its tokens do not give back exactly, such as one with unknown characters, stays as it is, and so does one that would become
// too long.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/batch.h"
#include "base/random.h"
#include "text/vocabulary.h"

namespace starling {

// Shares of the pairs, 0 to 1.
struct NoiseShares {
  double upper_case = 0, title_case = 0;  // of both sides
  double typos = 0;                       // in the source
  double merge = 0;                       // pairs that are joined to the one before them in the batch
  bool any() const { return upper_case > 0 || title_case > 0 || typos > 0 || merge > 0; }
};

/// Returns the text with the first letter of each word as a capital, and the rest as it is.
std::string title_case_utf8(std::string_view text);
/// Returns the text with one typing error for about every ten letters, at least one: two letters exchanged, one left out, doubled or
/// replaced by a neighbour on the keyboard, or a space left out.
std::string with_typos(std::string_view text, Random& random);

class TextNoise {
 public:
  /// The vocabularies must outlive it. tags: the tokens in front of each source, by corpus.
  TextNoise(const NoiseShares& shares, const Vocabulary& source, const Vocabulary& target, std::vector<std::vector<int32_t>> tags,
            int64_t max_length);

  /// Changes the last pair of a batch, of the given corpus; `before` is that of the pair before it, or -1. Returns whether it was joined to
  /// that.
  bool change_last(Batch& batch, int64_t corpus, int64_t before, Random& random) const;

 private:
  using Change = std::string (*)(std::string_view text, Random& random);
  void change_side(PackedTokens& side, const Vocabulary& vocabulary, size_t prefix, Change change, Random& random) const;
  bool join_last(Batch& batch, size_t prefix) const;
  size_t prefix_of(const PackedTokens& source, int64_t corpus) const;

  NoiseShares shares_;
  const Vocabulary &source_, &target_;
  std::vector<std::vector<int32_t>> tags_;
  int64_t max_length_;
};

}  // namespace starling
