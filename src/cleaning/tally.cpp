#include "cleaning/tally.h"

#include <algorithm>

#include "base/hash64.h"

namespace starling {
namespace {

constexpr size_t kExamples = 5;                              // of each rule
constexpr size_t kSampledPairs = 4000, kFewestSampled = 20;  // of all corpora, of each

void add_example(std::vector<CleanExample>& examples, const JudgedPair& pair, bool alone, const std::string& of) {
  CleanExample example{pair.line, shortened(pair.source, kShownBytes), shortened(pair.target, kShownBytes), alone, of};
  if (examples.size() < kExamples) {
    examples.push_back(std::move(example));
  } else if (alone) {  // says more than one that would be dropped anyway
    const auto other = std::find_if(examples.begin(), examples.end(), [](const CleanExample& e) { return !e.alone; });
    if (other != examples.end()) *other = std::move(example);
  }
}

}  // namespace

void Tally::Sample::offer(uint32_t number, const JudgedPair& pair, const std::string& of) {
  const uint64_t hash = hash64_of(number);
  if (chosen_.size() == size_) {
    if (hash >= highest_.top()) return;
    chosen_.erase(highest_.top());
    highest_.pop();
  }
  highest_.push(hash);
  // A text that is too long is not taken apart: it may be very long.
  const CopyKeys keys = pair.broken.has(Rule::length) ? CopyKeys() : CopyKeys(JudgedSide(pair.source), JudgedSide(pair.target));
  SampledPair& chosen = chosen_.emplace(hash, std::pair(number, SampledPair{pair, keys})).first->second.second;
  chosen.of = of;
  for (std::string* side : {&chosen.source, &chosen.target}) *side = shortened(*side, kShownBytes);
}

std::vector<SampledPair> Tally::Sample::in_order() const {
  std::map<uint32_t, const SampledPair*> by_number;
  for (const auto& [hash, chosen] : chosen_) by_number.emplace(chosen.first, &chosen.second);
  std::vector<SampledPair> pairs;
  for (const auto& [number, pair] : by_number) pairs.push_back(*pair);
  return pairs;
}

Tally::Tally(CleanReport& report)
    : report_(report),
      samples_(report.corpora.size(), Sample(std::max(kSampledPairs / std::max<size_t>(report.corpora.size(), 1), kFewestSampled))) {}

void Tally::take(const JudgedPair& pair, const std::string& of) {
  CorpusCleaning& corpus = report_.corpora[pair.corpus];
  samples_[pair.corpus].offer(number_++, pair, of);
  ++corpus.pairs;
  for (size_t i = 0; i < kRepairs; ++i) corpus.repaired[i] += (pair.repairs >> i & 1) + (pair.repairs >> (kRepairs + i) & 1);
  if (!pair.broken.any()) {
    ++corpus.kept;
    return;
  }
  for (size_t r = 0; r < kRules; ++r) {
    const auto rule = static_cast<Rule>(r);
    if (!pair.broken.has(rule)) continue;
    const bool alone = pair.broken.only(rule);
    ++corpus.dropped[r];
    corpus.alone[r] += alone;
    add_example(corpus.examples[r], pair, alone, of);
  }
}

void Tally::add_samples() const {
  for (size_t i = 0; i < samples_.size(); ++i) report_.corpora[i].sample = samples_[i].in_order();
}

}  // namespace starling
