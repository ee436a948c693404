#include "evaluation/unknown_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/vocabulary_format.h"

namespace starling {
namespace {

void add(const PackedTokens& tokens, int32_t unknown, UnknownText& counts) {
  const auto found = std::count(tokens.tokens.begin(), tokens.tokens.end(), unknown);
  counts.pieces += static_cast<int64_t>(tokens.tokens.size()) - 1;
  counts.unknown += found;
  ++counts.sentences;
  counts.affected += found > 0;
}

double percent(int64_t part, int64_t whole) { return whole > 0 ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 0; }

double coverage(const Vocabulary& vocabulary) {
  const auto made = vocabulary_format::settings(vocabulary.bytes());
  return made ? made->character_coverage : 1;
}

// Formats a percentage with two digits, from 10 on as a whole number.
std::string digits(double percentage) { return percentage < 10 ? fmt::format("{:.2g}", percentage) : fmt::format("{:.0f}", percentage); }

std::string cure(const Vocabularies& vocabularies, const std::string& owner) {
  if (!owner.empty()) return fmt::format("the vocabulary comes from {} and cannot change", owner);
  const double least = std::min(coverage(vocabularies.source()), coverage(vocabularies.target()));
  if (least < 1)
    return fmt::format("to cover more of them, start a new run with a higher vocab.character-coverage than {:g} (1 covers all)", least);
  return "to cover them, start a new run that trains its vocabulary on this text, without vocab.source and vocab.target";
}

}  // namespace

UnknownTexts count_unknown(const TokenStore& store, const Vocabularies& vocabularies) {
  constexpr int64_t kMost = 65536;
  UnknownTexts counts;
  const int64_t looked_at = std::min(store.size(), kMost);
  for (int64_t i = 0; i < looked_at; ++i) {
    PackedTokens source, target;
    store.append(store.size() * i / looked_at, source, target);
    add(source, vocabularies.source().unk(), counts.source);
    add(target, vocabularies.target().unk(), counts.target);
  }
  return counts;
}

std::string unknown_line(const UnknownTexts& counts, const Vocabularies& vocabularies, const std::string& owner) {
  const auto& [source, target] = counts;
  if (source.unknown + target.unknown == 0) return "";
  const double sources = percent(source.affected, source.sentences), targets = percent(target.affected, target.sentences);
  return fmt::format(
      "{}the vocabulary does not know characters in {} % of the source sentences and {} % of the target sentences ({} % and "
      "{} % of the pieces), which the model cannot read or write; {}",
      std::max(sources, targets) >= 1 ? "warning: " : "", digits(sources), digits(targets), digits(percent(source.unknown, source.pieces)),
      digits(percent(target.unknown, target.pieces)), cure(vocabularies, owner));
}

}  // namespace starling
