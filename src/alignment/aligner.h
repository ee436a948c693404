// Word alignment, trained on parallel text: t(target word | source word), by IBM model 1, model 2 with fast_align's diagonal prior, or the
// HMM. Threads do not change a bit of the result.
#pragma once

#include <array>
#include <functional>
#include <span>
#include <vector>

#include "alignment/hmm.h"
#include "alignment/translation_table.h"
#include "text/links.h"

namespace starling {

enum class AlignmentModel : uint8_t { hmm, diagonal, model1 };
constexpr auto words(AlignmentModel) { return std::array{"hmm", "diagonal", "model1"}; }

struct AlignerOptions {
  AlignmentModel model = AlignmentModel::hmm;
  int iterations = 5;  // the last of which only aligns, so that one fewer learn; the HMM's first half of these by the diagonal model
  bool null_word = true;
  double null_probability = 0.08;     // of the null word with the diagonal prior
  double hmm_null_probability = 0.2;  // and in the HMM
  double tension = 4;                 // of the diagonal prior, at first
  bool optimize_tension = true;
  double alpha = 0.01;  // of the Dirichlet prior of t(.|e); 0: none
  bool slips = false;   // to get fast_align's numbers: its tension, with two positions mistaken, and every probability, however small
  int threads = 1;
};

// What the word pairs say of a text.
struct AlignerStatistics {
  AlignmentModel model = AlignmentModel::model1;  // of this iteration
  double log_likelihood = 0;                      // nats, all target words
  double bits = 0;                                // cross-entropy of a target word
  double null_share = 0;                          // posterior of the null word
  double feature = 0;                             // posterior mean of h, but of the HMM
  double tension = 0;                             // after what was learnt from it
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

  // Takes what another aligner has learnt; `tension` and `jumps` are for the models that have them.
  Aligner(TranslationTable table, double tension, const JumpDistribution& jumps, const AlignerOptions& options);

  // Links each target word, in order, to its most probable source word; of equal ones to the null word, then to the first. Words that were
  // not seen in training are as improbable as at first. The HMM takes long sentences in pieces of 2^20 pairs of words: a word knows all
  // before, and what comes later in its piece.
  AlignedPair align(const NumberedPair& pair) const;
  // Returns what an iteration that learns nothing more finds in the text.
  AlignerStatistics statistics(std::span<const NumberedPair> text);
  // Returns log t(target | source); of a pair that was never seen together, that of the first iteration.
  double log_translation(uint32_t source, uint32_t target) const;
  const TranslationTable& table() const { return table_; }
  double tension() const { return tension_; }
  const JumpDistribution& jumps() const { return jumps_; }

 private:
  struct Pass;
  struct Word;
  // Calls done(word) for each target word in turn; the HMM adds to `counts`, if there are any.
  template <class Done>
  void visit(const NumberedPair& pair, JumpCounts* counts, Done done) const;
  template <class Done>
  void visit_alone(const NumberedPair& pair, Done done) const;
  template <class Done>
  void visit_chain(const NumberedPair& pair, JumpCounts* counts, Done done) const;
  AlignerStatistics expect(std::span<const NumberedPair> text, bool count);
  void optimize_tension(std::span<const NumberedPair> text, double feature);

  AlignerOptions options_;
  AlignmentModel model_;  // that of the present iteration
  TranslationTable table_;
  double tension_;
  JumpDistribution jumps_;
};

}  // namespace starling
