// Changes of training sentences that make a model robust: capitals, typing errors, several sentences in one line. They are drawn again in
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

/// Return the text in capitals, or with the first letter of each word as a capital. Words with something else than letters and the usual
/// marks around them (numbers, tags, addresses) stay as they are.
std::string upper_case_utf8(std::string_view text);
std::string title_case_utf8(std::string_view text);
/// Returns the text with one typing error for about every ten letters in such words, at least one if there is any: two letters exchanged,
/// one left out, doubled or replaced by a neighbour on the (English) keyboard, or a space between two of them left out.
std::string with_typos(std::string_view text, Random& random);

class TextNoise {
 public:
  /// The vocabularies must outlive it. tags: the tokens in front of each source, by corpus.
  TextNoise(const NoiseShares& shares, const Vocabulary& source, const Vocabulary& target, std::vector<std::vector<int32_t>> tags,
            int64_t max_length);

  /// Changes the letters of the last pair of a batch, of the given corpus. Returns whether it is to be joined to the pair before it.
  bool change_last(Batch& batch, int64_t corpus, Random& random) const;
  /// Joins the last pair of a batch to the one before, which must be of the same corpus, unless that would become too long.
  void join_last(Batch& batch, int64_t corpus) const;

 private:
  using Change = std::string (*)(std::string_view text, Random& random);
  // Returns the last sentence of a side after a change; empty if it must stay.
  std::vector<int32_t> changed(const PackedTokens& side, const Vocabulary& vocabulary, size_t prefix, Change change, Random& random) const;
  size_t prefix_of(const PackedTokens& source, int64_t corpus) const;

  NoiseShares shares_;
  const Vocabulary &source_, &target_;
  std::vector<std::vector<int32_t>> tags_;
  int64_t max_length_;
};

}  // namespace starling
