#include "evaluation/confidence_fit.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <unordered_map>

#include "base/utf8.h"
#include "metrics/metrics.h"
#include "text/unicode.h"

namespace starling {
namespace {

constexpr size_t kFeatures = kWordFeatures.size();
constexpr size_t kPieces = 2;  // the feature whose weight may have any sign
static_assert(std::string_view(kWordFeatures[kPieces]) == "pieces");

// Returns a word without the punctuation at its ends, unless it is nothing else.
std::string core(std::string_view word) {
  if (invalid_utf8_offset(word)) return std::string(word);
  const std::u32string all = decode_utf8(word);
  size_t begin = 0, end = all.size();
  while (begin < end && character_class(all[begin]) == CharacterClass::punctuation) ++begin;
  while (end > begin && character_class(all[end - 1]) == CharacterClass::punctuation) --end;
  return begin == end ? std::string(word) : encode_utf8(std::u32string_view(all).substr(begin, end - begin));
}

using Vector = std::vector<double>;
using Matrix = std::vector<Vector>;

// Solves A x = b for a positive definite A by Gaussian elimination.
Vector solve(Matrix a, Vector b) {
  const size_t n = b.size();
  for (size_t i = 0; i < n; ++i)
    for (size_t k = i + 1; k < n; ++k) {
      const double factor = a[k][i] / a[i][i];
      for (size_t j = i; j < n; ++j) a[k][j] -= factor * a[i][j];
      b[k] -= factor * b[i];
    }
  for (size_t i = n; i-- > 0;) {
    for (size_t j = i + 1; j < n; ++j) b[i] -= a[i][j] * b[j];
    b[i] /= a[i][i];
  }
  return b;
}

struct Scale {
  double mean = 0, deviation = 1, least = 0, most = 0;
};

Scale scale_of(std::span<const JudgedWord* const> words, size_t feature) {
  Scale s;
  s.least = s.most = words.front()->features[feature];
  double squares = 0;
  for (const JudgedWord* w : words) {
    const double x = w->features[feature];
    s.mean += x / static_cast<double>(words.size());
    s.least = std::min(s.least, x), s.most = std::max(s.most, x);
  }
  for (const JudgedWord* w : words) squares += (w->features[feature] - s.mean) * (w->features[feature] - s.mean);
  s.deviation = std::sqrt(squares / static_cast<double>(words.size()));
  if (s.deviation < 1e-9) s.deviation = 1;  // all alike: the ridge makes the weight 0
  return s;
}

// Newton's method on the likelihood of standardised features: returns the intercept and the weights of the features that are used.
Vector fit_weights(std::span<const JudgedWord* const> words, std::span<const Scale> scales, std::span<const size_t> used) {
  constexpr double kRidge = 1;           // as strong as a prior with deviation 1 on weights of standardised features
  constexpr double kOfIntercept = 1e-6;  // keeps it finite where all words are right, or none, as in a half of a text
  constexpr int kMostSteps = 100;
  const size_t n = used.size() + 1;
  Vector weights(n, 0.0), x(n, 1.0);
  for (int step = 0; step < kMostSteps; ++step) {
    Vector gradient(n, 0.0);
    Matrix curvature(n, Vector(n, 0.0));
    for (const JudgedWord* w : words) {
      for (size_t i = 1; i < n; ++i) x[i] = (w->features[used[i - 1]] - scales[used[i - 1]].mean) / scales[used[i - 1]].deviation;
      const double p = 1 / (1 + std::exp(-std::inner_product(x.begin(), x.end(), weights.begin(), 0.0)));
      for (size_t i = 0; i < n; ++i) {
        gradient[i] += (w->right - p) * x[i];
        for (size_t j = 0; j < n; ++j) curvature[i][j] += p * (1 - p) * x[i] * x[j];
      }
    }
    for (size_t i = 1; i < n; ++i) gradient[i] -= kRidge * weights[i], curvature[i][i] += kRidge;
    gradient[0] -= kOfIntercept * weights[0], curvature[0][0] += kOfIntercept;
    const Vector change = solve(std::move(curvature), std::move(gradient));
    double largest = 0;
    for (size_t i = 0; i < n; ++i) {
      // Newton's steps may overshoot where the likelihood is flat.
      weights[i] += std::clamp(change[i], -2.0, 2.0);
      largest = std::max(largest, std::abs(change[i]));
    }
    if (largest < 1e-10) break;
  }
  return weights;
}

double pearson(std::span<const double> a, std::span<const double> b) {
  const auto n = static_cast<double>(a.size());
  const double mean_a = std::accumulate(a.begin(), a.end(), 0.0) / n, mean_b = std::accumulate(b.begin(), b.end(), 0.0) / n;
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    ab += (a[i] - mean_a) * (b[i] - mean_b);
    aa += (a[i] - mean_a) * (a[i] - mean_a);
    bb += (b[i] - mean_b) * (b[i] - mean_b);
  }
  return aa > 0 && bb > 0 ? ab / std::sqrt(aa * bb) : 0;
}

}  // namespace

std::vector<bool> confirmed_words(std::string_view translation, std::span<const TextWord> words, std::string_view reference,
                                  std::span<const TextWord> reference_words) {
  std::unordered_map<std::string, uint32_t> numbers;
  const auto numbered = [&](std::string_view text, std::span<const TextWord> all) {
    std::vector<uint32_t> out;
    for (const TextWord& w : all) {
      std::string word = core(text.substr(static_cast<size_t>(w.bytes.begin), static_cast<size_t>(w.bytes.count())));
      out.push_back(numbers.try_emplace(std::move(word), static_cast<uint32_t>(numbers.size())).first->second);
    }
    return out;
  };
  const std::vector<uint32_t> ours = numbered(translation, words), theirs = numbered(reference, reference_words);
  return matched_words(ours, theirs);
}

JudgedSentence judge(const Hypothesis& h, const Vocabulary& target, const std::string& reference) {
  const DecodedLine line = target.decode_with_bytes(h.tokens);
  const EncodedLine pieces = target.encode_with_bytes(reference);
  const std::vector<TextWord> words = words_of_pieces(line.text, line.bytes);
  const std::vector<bool> right = confirmed_words(line.text, words, reference, words_of_pieces(reference, pieces.bytes));
  const std::vector<WordFeatures> features = word_features(h, words);
  JudgedSentence judged;
  for (size_t i = 0; i < words.size(); ++i) {
    double sum = 0;
    for (const size_t piece : words[i].pieces) sum += h.log_probabilities[piece];
    judged.push_back({features[i], sum / static_cast<double>(words[i].pieces.size()), right[i]});
  }
  return judged;
}

namespace {

std::vector<const JudgedWord*> words_of(std::span<const JudgedSentence> sentences, size_t first = 0, size_t step = 1) {
  std::vector<const JudgedWord*> words;
  for (size_t i = first; i < sentences.size(); i += step)
    for (const JudgedWord& w : sentences[i]) words.push_back(&w);
  return words;
}

ConfidenceModel fit(std::span<const JudgedWord* const> words) {
  std::array<Scale, kFeatures> scales;
  for (size_t f = 0; f < kFeatures; ++f) scales[f] = scale_of(words, f);
  std::vector<size_t> used(kFeatures);
  std::iota(used.begin(), used.end(), 0);
  Vector weights;
  while (true) {
    weights = fit_weights(words, scales, used);
    size_t lowest = 0;  // of the weights that must not be below 0
    for (size_t i = 1; i < weights.size(); ++i)
      if (used[i - 1] != kPieces && weights[i] < 0 && (lowest == 0 || weights[i] < weights[lowest])) lowest = i;
    if (lowest == 0) break;
    used.erase(used.begin() + static_cast<ptrdiff_t>(lowest) - 1);
  }
  ConfidenceModel model{.intercept = weights[0]};
  for (size_t f = 0; f < kFeatures; ++f) model.terms[f] = {0, scales[f].least, scales[f].most};
  for (size_t i = 0; i < used.size(); ++i) {
    const Scale& s = scales[used[i]];
    model.terms[used[i]].weight = weights[i + 1] / s.deviation;
    model.intercept -= weights[i + 1] * s.mean / s.deviation;
  }
  return model;
}

ConfidenceQuality measure(std::span<const JudgedSentence> sentences,
                          const std::function<const ConfidenceModel&(size_t sentence)>& model_of) {
  ConfidenceQuality q;
  Vector values, log_probabilities, outcomes, of_sentences, shares;
  std::vector<bool> right;
  for (size_t i = 0; i < sentences.size(); ++i) {
    const JudgedSentence& s = sentences[i];
    if (s.empty()) continue;
    double sum = 0, rights = 0;
    for (const JudgedWord& w : s) {
      values.push_back(model_of(i).word(w.features));
      log_probabilities.push_back(w.log_probability);
      outcomes.push_back(w.right);
      right.push_back(w.right);
      sum += values.back(), rights += w.right;
    }
    of_sentences.push_back(sum / static_cast<double>(s.size()));
    shares.push_back(rights / static_cast<double>(s.size()));
  }
  q.sentences = std::ssize(shares), q.words = std::ssize(values);
  q.right = std::accumulate(outcomes.begin(), outcomes.end(), 0.0) / static_cast<double>(std::max<int64_t>(q.words, 1));
  q.of_words = reliability(values, outcomes);
  q.of_sentences = reliability(of_sentences, shares);
  q.auc = area_under_curve(values, right);
  q.auc_of_log_probability = area_under_curve(log_probabilities, right);
  q.correlation = shares.empty() ? 0 : pearson(of_sentences, shares);
  return q;
}

}  // namespace

ConfidenceModel fit_confidence(std::span<const JudgedSentence> sentences) {
  constexpr int64_t kLeast = 100;  // of each kind: with fewer, the weights would be mostly chance
  const std::vector<const JudgedWord*> words = words_of(sentences);
  const int64_t right = std::count_if(words.begin(), words.end(), [](const JudgedWord* w) { return w->right; });
  const int64_t wrong = std::ssize(words) - right;
  if (right < kLeast || wrong < kLeast)
    throw DataError(
        fmt::format("of the {} words of the translations, {} are right and {} are wrong, but a calibration needs {} of each; use a longer "
                    "text{}",
                    words.size(), right, wrong, kLeast, right < wrong ? ", or a model that translates better" : ""));
  return fit(words);
}

Reliability reliability(std::span<const double> predicted, std::span<const double> observed) {
  CHECK(predicted.size() == observed.size(), "{} numbers, {} outcomes", predicted.size(), observed.size());
  constexpr size_t kGroups = 10;
  Reliability r{std::vector<Reliability::Group>(kGroups), 0};
  for (size_t i = 0; i < predicted.size(); ++i) {
    Reliability::Group& g = r.groups[std::min(static_cast<size_t>(predicted[i] * kGroups), kGroups - 1)];
    ++g.count, g.predicted += predicted[i], g.observed += observed[i];
  }
  for (Reliability::Group& g : r.groups) {
    if (g.count == 0) continue;
    r.error += std::abs(g.predicted - g.observed) / static_cast<double>(predicted.size());
    g.predicted /= static_cast<double>(g.count), g.observed /= static_cast<double>(g.count);
  }
  return r;
}

double area_under_curve(std::span<const double> values, const std::vector<bool>& right) {
  CHECK(values.size() == right.size(), "{} values, {} outcomes", values.size(), right.size());
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  double pairs = 0, wrong_below = 0, rights = 0;
  for (size_t i = 0; i < order.size();) {
    double right_here = 0, wrong_here = 0;
    const double value = values[order[i]];
    do (right[order[i]] ? right_here : wrong_here) += 1;
    while (++i < order.size() && values[order[i]] == value);
    pairs += right_here * (wrong_below + wrong_here / 2);
    wrong_below += wrong_here, rights += right_here;
  }
  return rights > 0 && wrong_below > 0 ? pairs / (rights * wrong_below) : 0.5;
}

ConfidenceQuality measure_confidence(const ConfidenceModel& model, std::span<const JudgedSentence> sentences) {
  return measure(sentences, [&](size_t) -> const ConfidenceModel& { return model; });
}

ConfidenceQuality cross_measured_confidence(std::span<const JudgedSentence> sentences) {
  std::vector<ConfidenceModel> models;
  for (const size_t half : {1, 0}) {
    const std::vector<const JudgedWord*> words = words_of(sentences, half, 2);
    models.push_back(words.empty() ? ConfidenceModel{} : fit(words));
  }
  return measure(sentences, [&](size_t i) -> const ConfidenceModel& { return models[i % 2]; });
}

}  // namespace starling
