// Subword regularisation: the words of a training text are cut into pieces in other ways than the best one, each time anew. Unigram
// vocabularies draw a segmentation by its probability (Kudo 2018), BPE leaves merges out (Provilkov et al. 2020), both as SentencePiece's
// sampling does, but from random numbers of ours, so that a resumed run draws the same.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/random.h"
#include "text/vocabulary.h"

namespace starling {

class SubwordSampler {
 public:
  /// Of a vocabulary of type unigram or bpe. `alpha` is SentencePiece's: with unigram, a segmentation's probability is taken to this power
  /// (1: as the vocabulary believes, less: more varied); with bpe, each merge is left out with this probability. ConfigError otherwise.
  SubwordSampler(const Vocabulary& vocabulary, double alpha);

  /// Another segmentation of the text that `ids` stand for. Control symbols, unknown and user-defined pieces and bytes stay as they are.
  /// Safe to call from several threads.
  std::vector<int32_t> sample(std::span<const int32_t> ids, Random& random) const;

 private:
  struct Piece {
    std::string_view text;
    float score;
    bool ordinary;
  };
  int32_t find(std::string_view text) const;  // the ordinary piece, or -1
  void cut(std::string_view text, Random& random, std::vector<int32_t>& to) const;
  void cut_unigram(std::string_view text, const std::vector<size_t>& ends, Random& random, std::vector<int32_t>& to) const;
  void cut_bpe(std::string_view text, const std::vector<size_t>& ends, Random& random, std::vector<int32_t>& to) const;

  double alpha_;
  bool bpe_;
  std::string bytes_;  // of the vocabulary; the pieces look at it
  std::vector<Piece> pieces_;
  std::unordered_map<std::string_view, int32_t> ids_;  // of ordinary pieces
  size_t longest_ = 0;                                 // piece, bytes
};

}  // namespace starling
