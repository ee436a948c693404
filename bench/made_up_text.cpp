#include "bench/made_up_text.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "base/random.h"

namespace starling {
namespace {

constexpr uint64_t kStems = 200'000;
constexpr double kMeanWords = 21, kSpread = 0.6;  // of a sentence: log-normal
constexpr int64_t kMostWords = 80;

struct Sounds {
  std::vector<const char*> onsets, vowels, codas, endings;
};

const Sounds& sounds_of(bool target) {
  static const Sounds kSource{{"b", "c", "d", "f", "g", "h", "l", "m", "n", "p", "r", "s", "t", "v", "w", "st", "tr", "pl", "ch", "th", ""},
                              {"a", "e", "i", "o", "u", "ea", "ou", "ai"},
                              {"", "", "", "n", "r", "s", "t", "l", "nd", "ck"},
                              {"", "", "", "", "s", "s", "ed", "ing", "er", "ly"}};
  static const Sounds kTarget{{"b", "d", "f", "g", "h", "k", "l", "m", "n", "p", "r", "s", "t", "w", "z", "sch", "st", "kr", "pf", ""},
                              {"a", "e", "i", "o", "u", "ä", "ö", "ü", "ei", "au"},
                              {"", "", "", "n", "r", "s", "t", "l", "ch", "ng"},
                              {"", "", "", "e", "en", "en", "er", "es", "te", "ung"}};
  return target ? kTarget : kSource;
}

const char* one_of(const std::vector<const char*>& choices, Random& random) { return choices[random.below(choices.size())]; }

// Frequent words are short, as in every language.
std::vector<std::string> stems(uint64_t seed, bool target) {
  Random random(seed, target ? 2 : 1);
  const Sounds& sounds = sounds_of(target);
  std::vector<std::string> words(kStems);
  for (uint64_t rank = 0; rank < kStems; ++rank) {
    const uint64_t least = rank < 2000 ? 1 : 2;
    for (uint64_t parts = least + random.below(2); parts > 0; --parts)
      words[rank].append(one_of(sounds.onsets, random)).append(one_of(sounds.vowels, random)).append(one_of(sounds.codas, random));
  }
  return words;
}

// Zipf's law with exponent 1: the logarithm of the rank is uniform.
uint64_t draw_rank(Random& random) {
  const double rank = std::exp(random.uniform() * std::log(static_cast<double>(kStems)));
  return std::min<uint64_t>(static_cast<uint64_t>(rank), kStems - 1);
}

void finish(std::string& line, char end) {
  if (line.back() == ',') line.pop_back();
  line[0] = static_cast<char>(line[0] >= 'a' && line[0] <= 'z' ? line[0] - 'a' + 'A' : line[0]);
  line += end;
}

}  // namespace

MadeUpText::MadeUpText(uint64_t seed) : seed_(seed), source_stems_(stems(seed, false)), target_stems_(stems(seed, true)) {}

void MadeUpText::pair(uint64_t index, std::string& source, std::string& target) const {
  Random random(seed_, (uint64_t{1} << 32) + index);
  const double length = kMeanWords * std::exp(kSpread * random.normal() - 0.5 * kSpread * kSpread);
  const int64_t words = std::clamp<int64_t>(std::lround(length), 3, kMostWords);
  source.clear();
  target.clear();
  std::string held;  // a target word that is emitted one position later
  for (int64_t i = 0; i < words; ++i) {
    if (i > 0) source += ' ';
    std::string other;
    if (random.below(33) == 0) {
      other = std::to_string(random.below(random.below(2) ? 100 : 10000));
      source += other;
    } else {
      const uint64_t rank = draw_rank(random);
      source.append(source_stems_[rank]).append(one_of(sounds_of(false).endings, random));
      other.append(target_stems_[rank]).append(one_of(sounds_of(true).endings, random));
    }
    if (random.below(14) == 0) {
      source += ',';
      other += ',';
    }
    if (random.below(8) == 0) std::swap(other, held);
    for (const std::string* word : {&other, &held}) {
      if (word->empty() || (word == &held && i + 1 < words)) continue;
      if (!target.empty()) target += ' ';
      target += *word;
    }
  }
  const char end = random.below(12) == 0 ? '?' : '.';
  finish(source, end);
  finish(target, end);
}

}  // namespace starling
