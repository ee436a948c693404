// Subword regularisation: splits the words of training text into pieces at random instead of in the best way, differently each time.
// Unigram vocabularies sample a segmentation by its probability (Kudo 2018), BPE drops merges (Provilkov et al. 2020). Both work as
// SentencePiece's sampling does, but with our random numbers, so that a resumed run draws the same segmentations.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/random.h"
#include "text/links.h"
#include "text/vocabulary.h"

namespace starling {

class SubwordSampler {
 public:
  /// Takes a vocabulary of type unigram or bpe; throws ConfigError for another. `alpha` is SentencePiece's: with unigram, the probability
  /// of a segmentation is raised to this power (1: as the vocabulary estimates it; less: more varied); with bpe, it is the probability that
  /// a merge is dropped.
  SubwordSampler(const Vocabulary& vocabulary, double alpha);

  /// Samples a segmentation of the text that `ids` stand for. Control symbols, unknown and user-defined pieces and bytes stay as they are.
  /// Safe to call from several threads.
  std::vector<int32_t> sample(std::span<const int32_t> ids, Random& random) const;

  /// Returns for each of the tokens before which tokens of a segmentation of the same text overlap it: the first and the last one.
  std::vector<TokenRange> places(std::span<const int32_t> before, std::span<const int32_t> now) const;

 private:
  struct Piece {
    std::string_view text;
    float score;
    bool ordinary;
  };
  int32_t find(std::string_view text) const;  // the id of an ordinary piece, or -1
  void cut(std::string_view text, Random& random, std::vector<int32_t>& to) const;
  void cut_unigram(std::string_view text, const std::vector<size_t>& ends, Random& random, std::vector<int32_t>& to) const;
  void cut_bpe(std::string_view text, const std::vector<size_t>& ends, Random& random, std::vector<int32_t>& to) const;

  double alpha_;
  bool bpe_;
  std::string bytes_;  // of the vocabulary; the pieces are views of it
  std::vector<Piece> pieces_;
  std::unordered_map<std::string_view, int32_t> ids_;  // of ordinary pieces
  size_t longest_ = 0;                                 // bytes of the longest piece
};

}  // namespace starling
