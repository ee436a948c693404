// chrF: F-score over character n-grams, without white space, and, for chrF++, word n-grams; recall counts twice as much as precision. Both
// are averaged over the orders that both sides have (sacreBLEU's "eff:yes"), after summing counts over the corpus. With several
// references, a sentence contributes the counts of the reference that gives it the best sentence F-score.
#include <fmt/format.h>

#include <string>

#include "metrics/metrics.h"
#include "metrics/metrics_common.h"
#include "metrics/ngrams.h"
#include "text/unicode.h"

namespace starling {

namespace {

constexpr int kCharacterOrder = 6, kBeta = 2;
using Tokens = std::vector<detail::Fingerprint>;

struct Prepared {
  Tokens characters, words;
};

struct OrderCounts {
  std::int64_t hypothesis = 0, reference = 0, matches = 0;
};
using AllOrders = std::vector<OrderCounts>;  // the character orders, then the word orders

bool is_ascii_punctuation(char32_t c) {
  return (c >= U'!' && c <= U'/') || (c >= U':' && c <= U'@') || (c >= U'[' && c <= U'`') || (c >= U'{' && c <= U'~');
}

void append_word(Tokens& words, std::u32string_view word) { words.push_back(std::hash<std::u32string_view>{}(word)); }

// Splits one punctuation mark off a word: the last character if it is one, otherwise the first.
void append_split_word(Tokens& words, std::u32string_view word) {
  if (word.size() > 1 && is_ascii_punctuation(word.back())) {
    append_word(words, word.substr(0, word.size() - 1));
    append_word(words, word.substr(word.size() - 1));
  } else if (word.size() > 1 && is_ascii_punctuation(word.front())) {
    append_word(words, word.substr(0, 1));
    append_word(words, word.substr(1));
  } else {
    append_word(words, word);
  }
}

Prepared prepare(std::string_view sentence, bool with_words, bool lowercase) {
  std::u32string text = decode_utf8(sentence);
  if (lowercase) text = to_lower(text);
  Prepared out;
  out.characters.reserve(text.size());
  for (const char32_t c : text) {
    if (!is_unicode_space(c)) out.characters.push_back(c);
  }
  if (with_words) {
    for (const std::u32string_view word : split_on_space(text)) append_split_word(out.words, word);
  }
  return out;
}

// Adds the counts of orders 1..max_order at counts[first...].
void count_orders(const Tokens& hypothesis, const Tokens& reference, int max_order, detail::ClippedCounts& allowed, OrderCounts* counts) {
  allowed.clear((hypothesis.size() + reference.size()) * max_order);
  allowed.begin_reference();
  detail::for_each_ngram(reference, max_order, [&](int, detail::Fingerprint ngram) { allowed.add(ngram); });
  detail::for_each_ngram(hypothesis, max_order, [&](int n, detail::Fingerprint ngram) { counts[n - 1].matches += allowed.take(ngram); });
  for (int n = 1; n <= max_order; ++n) {
    counts[n - 1].reference = detail::ngram_count(reference.size(), n);
    // A sentence whose reference has no n-grams of an order cannot lower that order's precision.
    counts[n - 1].hypothesis = counts[n - 1].reference > 0 ? detail::ngram_count(hypothesis.size(), n) : 0;
  }
}

AllOrders count_sentence(const Prepared& hypothesis, const Prepared& reference, int word_order, detail::ClippedCounts& allowed) {
  AllOrders counts(kCharacterOrder + word_order);
  count_orders(hypothesis.characters, reference.characters, kCharacterOrder, allowed, counts.data());
  count_orders(hypothesis.words, reference.words, word_order, allowed, counts.data() + kCharacterOrder);
  return counts;
}

double f_score(const AllOrders& counts) {
  double precision = 0, recall = 0;
  int orders = 0;
  for (const OrderCounts& order : counts) {
    if (order.hypothesis == 0 || order.reference == 0) continue;
    precision += static_cast<double>(order.matches) / static_cast<double>(order.hypothesis);
    recall += static_cast<double>(order.matches) / static_cast<double>(order.reference);
    ++orders;
  }
  if (precision + recall == 0) return 0;
  precision /= orders;
  recall /= orders;
  const double factor = kBeta * kBeta;
  return 100 * ((1 + factor) * precision * recall / (factor * precision + recall));
}

void append_orders(const AllOrders& counts, std::vector<double>& rows) {
  for (const OrderCounts& order : counts) {
    for (const std::int64_t n : {order.hypothesis, order.reference, order.matches}) rows.push_back(static_cast<double>(n));
  }
}

AllOrders orders_of_sums(std::span<const double> sums) {
  AllOrders counts(sums.size() / 3);
  for (std::size_t n = 0; n < counts.size(); ++n) {
    const auto at = [&](std::size_t k) { return static_cast<std::int64_t>(sums[3 * n + k]); };
    counts[n] = {at(0), at(1), at(2)};
  }
  return counts;
}

}  // namespace

CountedMetric detail::count_chrf(Sentences hypotheses, const ReferenceLists& references, int word_order, bool lowercase) {
  check_corpus(hypotheses, references);
  CountedMetric counted{.width = 3 * static_cast<std::size_t>(kCharacterOrder + word_order)};
  ClippedCounts allowed;
  const auto prepared = [&](const std::string& sentence) { return prepare(sentence, word_order > 0, lowercase); };
  for (std::size_t i = 0; i < hypotheses.size(); ++i) {
    const Prepared hypothesis = prepared(hypotheses[i]);
    AllOrders best;
    double best_score = -1;
    for (const Sentences& list : references) {
      AllOrders counts = count_sentence(hypothesis, prepared(list[i]), word_order, allowed);
      if (const double score = f_score(counts); score > best_score) {
        best_score = score;
        best = std::move(counts);
      }
    }
    append_orders(best, counted.counts);
  }
  counted.score = [](std::span<const double> sums) { return f_score(orders_of_sums(sums)); };
  counted.corpus = {fmt::format("chrF{}{}", kBeta, std::string(static_cast<std::size_t>(word_order), '+')), counted.score(counted.sums()),
                    fmt::format("nrefs:{}|case:{}|eff:yes|nc:{}|nw:{}|space:no|{}", references.size(), lowercase ? "lc" : "mixed",
                                kCharacterOrder, word_order, version_part()),
                    ""};
  return counted;
}

}  // namespace starling
