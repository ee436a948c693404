#include "cleaning/held_out.h"

#include <span>

#include "base/hash64.h"
#include "cleaning/repair.h"

namespace starling {
namespace {

constexpr double kLongEnough = 25;  // characters, mean of both sides, above which one side is enough to be held out
constexpr uint64_t kSourceSeed = 1, kTargetSeed = 2, kPairSeed = 3;

uint64_t hash_of(std::string_view text, uint64_t seed) { return hash64(std::as_bytes(std::span(text)), seed); }

}  // namespace

CopyKeys::CopyKeys(const JudgedSide& s, const JudgedSide& t)
    : source(hash_of(s.copy_key, kSourceSeed)),
      target(hash_of(t.copy_key, kTargetSeed)),
      pair(hash_of(s.copy_key + "\n" + t.copy_key, kPairSeed)) {}

HeldOut::HeldOut(const std::vector<CorpusFiles>& texts, bool repair) {
  for (const CorpusFiles& text : texts) {
    PairReader reader(text);
    for (std::string_view s, t; reader.next(s, t);) {
      RepairCounts ignored{};
      const std::string source = repair ? repaired(s, ignored) : std::string(s), target = repair ? repaired(t, ignored) : std::string(t);
      const CopyKeys keys{JudgedSide(source), JudgedSide(target)};
      keys_.insert({keys.source, keys.target, keys.pair});
    }
  }
}

bool HeldOut::has(const JudgedSide& s, const JudgedSide& t, const CopyKeys& keys) const {
  return keys_.contains(keys.pair) ||
         ((s.length() + t.length()) / 2 > kLongEnough && (keys_.contains(keys.source) || keys_.contains(keys.target)));
}

bool HeldOut::has(const JudgedSide& line) const {
  return line.length() > kLongEnough &&
         (keys_.contains(hash_of(line.copy_key, kSourceSeed)) || keys_.contains(hash_of(line.copy_key, kTargetSeed)));
}

}  // namespace starling
