// Fits the regression of confidence (decode/confidence.h) on translations and their references, and measures how good it is on others.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "decode/confidence.h"
#include "decode/translator.h"

namespace starling {

// A word of a translation whose reference is known.
struct JudgedWord {
  WordFeatures features;
  double log_probability = 0;  // mean of its pieces, nats: what a calibration should tell right from wrong better than
  bool right = false;
};
using JudgedSentence = std::vector<JudgedWord>;

// Returns which words of a translation its reference confirms: those that TER's alignment matches with an equal word, moved or not. Words
// are compared without the punctuation at their ends.
std::vector<bool> confirmed_words(std::string_view translation, std::span<const TextWord> words, std::string_view reference,
                                  std::span<const TextWord> reference_words);

// Judges a translation's words.
JudgedSentence judge(const Hypothesis& hypothesis, const Vocabulary& target, const std::string& reference);

// Fits the regression by maximum likelihood with a small ridge. Weights of all features but `pieces` are at least 0, so that a word whose
// pieces become more probable never becomes less sure. Throws DataError unless there are at least 100 words that are right and 100 that are
// not.
ConfidenceModel fit_confidence(std::span<const JudgedSentence> sentences);

// Predictions of outcomes, 0 to 1, in ten groups of equal width by the prediction.
struct Reliability {
  struct Group {
    int64_t count = 0;
    double predicted = 0, observed = 0;  // means; 0 of an empty group
  };
  std::vector<Group> groups;
  double error = 0;  // expected calibration error: the mean distance of the two, weighted by count
};
Reliability reliability(std::span<const double> predicted, std::span<const double> observed);

// Returns the probability that a random right one has a higher value than a random wrong one, ties counting half; 0.5 if there are no two
// kinds.
double area_under_curve(std::span<const double> values, const std::vector<bool>& right);

struct ConfidenceQuality {
  int64_t sentences = 0, words = 0;  // without sentences that have no words
  double right = 0;                  // share of the words
  Reliability of_words, of_sentences;
  double auc = 0, auc_of_log_probability = 0;  // of words
  double correlation = 0;                      // Pearson's, of the sentences' confidence and their shares of right words
};
ConfidenceQuality measure_confidence(const ConfidenceModel& model, std::span<const JudgedSentence> sentences);
// The same for the sentences that fit_confidence() takes: each half of them with a regression that was fitted on the other one.
ConfidenceQuality cross_measured_confidence(std::span<const JudgedSentence> sentences);

}  // namespace starling
