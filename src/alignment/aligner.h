// Word alignment by IBM model 1, or by model 2 with fast_align's diagonal prior, trained on parallel text: t(target word | source word).
// Expected counts are whole numbers of 2^-32, so that their sums do not depend on the order in which threads add to them.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "alignment/word_pairs.h"
#include "text/links.h"

namespace starling {

struct AlignerOptions {
  int iterations = 5;    // the last of which only aligns, so that one fewer learn
  bool diagonal = true;  // false: model 1
  bool null_word = true;
  double null_probability = 0.08;  // of the null word; with the diagonal prior only
  double tension = 4;              // at first
  bool optimize_tension = true;
  double alpha = 0.01;  // of the Dirichlet prior of t(.|e); 0: none
  bool slips = false;   // compute the tension as fast_align does, with two positions mistaken, to get its numbers
  int threads = 1;
};

// What the word pairs say of a text.
struct AlignerStatistics {
  double log_likelihood = 0;  // nats, all target words
  double bits = 0;            // cross-entropy of a target word
  double null_share = 0;      // posterior of the null word
  double feature = 0;         // posterior mean of h
  double tension = 0;         // after what was learnt from it
};

// Links, and the mean log-probability of a target word, nats, null word included: how parallel a pair is.
struct AlignedPair {
  Links links;
  double log_probability = 0;
};

class Aligner {
 public:
  // Trains on the text. `told` is called after each iteration that learns.
  Aligner(std::span<const NumberedPair> text, const AlignerOptions& options,
          const std::function<void(const AlignerStatistics&)>& told = {});

  // Takes what another aligner has learnt.
  Aligner(WordPairs pairs, std::vector<float> probabilities, double tension, const AlignerOptions& options);

  // Links each target word, in order, to its most probable source word; of equal ones to the null word, then to the first. Words that were
  // not seen in training are as improbable as at first.
  AlignedPair align(const NumberedPair& pair) const;
  // Returns what an iteration that learns nothing more finds in the text.
  AlignerStatistics statistics(std::span<const NumberedPair> text);
  // Returns log t(target | source); of a pair that was never seen together, that of the first iteration.
  double log_translation(uint32_t source, uint32_t target) const;
  const WordPairs& pairs() const { return pairs_; }
  float probability(size_t place) const { return probabilities_[place]; }  // of a pair
  double tension() const { return tension_; }

 private:
  struct Pass;
  // Calls each(j, i, p) with the joint probability of target word j and source word i, 0 being the null word, for all of them, then done(j,
  // sum).
  template <class Each, class Done>
  void visit(const NumberedPair& pair, Each each, Done done) const;
  AlignerStatistics expect(std::span<const NumberedPair> text, bool count);
  void maximize();
  void optimize_tension(std::span<const NumberedPair> text, double feature);

  AlignerOptions options_;
  WordPairs pairs_;
  std::vector<float> probabilities_;           // empty at first: all are equal
  std::vector<std::atomic<uint64_t>> counts_;  // expected, in units of 2^-32
  double tension_;
};

}  // namespace starling
