#include "alignment/translation_table.h"

#include "base/error.h"

namespace starling {
namespace {

// The logarithmic derivative of the gamma function, to 1e-12.
double digamma(double x) {
  double result = 0;
  for (; x < 10; ++x) result -= 1 / x;
  const double y = 1 / (x * x);
  return result + std::log(x) - 0.5 / x - y * (1. / 12 - y * (1. / 120 - y * (1. / 252 - y * (1. / 240 - y / 132))));
}

}  // namespace

TranslationTable::TranslationTable(WordPairs pairs, std::vector<float> probabilities)
    : pairs_(std::move(pairs)), probabilities_(std::move(probabilities)) {
  CHECK(probabilities_.size() == pairs_.size(), "{} probabilities of {} pairs", probabilities_.size(), pairs_.size());
}

void TranslationTable::clear_counts() {
  for (auto& c : counts_) c.store(0, std::memory_order_relaxed);
}

void TranslationTable::finish(bool all) {
  std::vector<std::atomic<uint64_t>>().swap(counts_);
  if (all) return;
  for (float& p : probabilities_)
    if (p < kLeastKept) p = static_cast<float>(kFirst);
}

void TranslationTable::maximize(double alpha) {
  probabilities_.resize(pairs_.size());
  for (uint32_t e = 0; e < pairs_.sources(); ++e) {
    double total = 0;
    const auto counted = [&](size_t place) { return static_cast<double>(counts_[place].load(std::memory_order_relaxed)) / kUnit + alpha; };
    for (size_t k = pairs_.begin(e); k < pairs_.end(e); ++k) total += counted(k);
    if (total == 0) total = 1;
    const double normal = alpha > 0 ? digamma(total) : 0;
    for (size_t k = pairs_.begin(e); k < pairs_.end(e); ++k)
      probabilities_[k] = static_cast<float>(std::max(kLeast, alpha > 0 ? std::exp(digamma(counted(k)) - normal) : counted(k) / total));
  }
}

}  // namespace starling
