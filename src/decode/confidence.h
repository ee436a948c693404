// Confidence: how probably each word of a translation is right, from the log-probabilities that the search gives its pieces. A logistic
// regression turns these into probabilities; `starling calibrate` fits it on a development text and keeps it as confidence.json in the
// model's directory. What a word is and what "right" means: docs/guides/confidence.md.
#pragma once

#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "decode/search.h"
#include "storage/publication.h"
#include "text/vocabulary.h"

namespace starling {

// A word of a text, and its pieces.
struct TextWord {
  Range bytes;
  std::vector<size_t> pieces;
};
// Returns the words of a text whose pieces stand for these bytes of it: what stands between spaces, or, where that has letters of a script
// that is written without spaces, each of its pieces.
std::vector<TextWord> words_of_pieces(std::string_view text, std::span<const Range> pieces);

// What is known about a word: for each name a number that grows with the word's probability, except `pieces`.
constexpr std::array kWordFeatures{
    "certainty",  // -log(1 - p + 0.005) of the word's least probable piece
    "worst",      // log-probability of that piece, nats
    "pieces",     // logarithm of the number of pieces
    "sentence",   // mean log-probability of all pieces of the translation and of its end, nats
    "before",     // certainty of the word before; the first word has a certain one before it
    "after",      // of the word behind; behind the last one is the end of the sentence
};
using WordFeatures = std::array<double, kWordFeatures.size()>;

// Returns the features of a translation's words, whose pieces have Hypothesis::log_probabilities.
std::vector<WordFeatures> word_features(const Hypothesis& hypothesis, std::span<const TextWord> words);

// How sure a translation is, 0 to 1.
struct Confidence {
  struct Word {
    Range bytes;       // of the translation's text
    double value = 0;  // the probability that the word is right
  };
  // The mean of the words: the share of them that is expected to be right. 1 for the empty translation of a blank source, 0 for another
  // translation without words.
  double sentence = 0;
  std::vector<Word> words;
};

// A fitted regression.
struct ConfidenceModel {
  // A feature counts as the nearest number between the least and the largest one that the regression was fitted on.
  struct Term {
    double weight = 0, from = 0, to = 0;
  };
  double intercept = 0;
  std::array<Term, kWordFeatures.size()> terms{};
  nlohmann::ordered_json fitted_on;  // where the numbers come from, for people

  double word(const WordFeatures& features) const;
  Confidence of(const Hypothesis& hypothesis, const Vocabulary& target) const;
};

constexpr const char* kConfidenceFile = "confidence.json";
// `digest` identifies the model that the regression belongs to, model_digest().
Part confidence_part(const ConfidenceModel& model, const std::string& digest);
// Reads what confidence_part() wrote. Throws DataError, beginning with `path`, if it is damaged or belongs to another model.
ConfidenceModel read_confidence(FileSystem& files, const std::string& path, const std::string& digest);
// Returns a hash of the weights that stay floats in a model of 8-bit weights, which so has the hash of the model that it was made from.
std::string model_digest(FileSystem& files, const std::string& weights);

// The regression of a model directory, or why there is none: a whole sentence that says what to do.
struct FoundConfidence {
  std::optional<ConfidenceModel> model;
  std::string why_not;
  // Throws ConfigError with the reason if there is none.
  const ConfidenceModel& require() const;
};
FoundConfidence find_confidence(FileSystem& files, const std::string& directory);

}  // namespace starling
