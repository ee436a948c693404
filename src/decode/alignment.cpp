#include "decode/alignment.h"

#include <set>

#include "base/error.h"

namespace starling {
AlignedText align(const EncodedLine& source, const Vocabulary& target, const Hypothesis& hypothesis) {
  CHECK(hypothesis.alignment.size() >= hypothesis.tokens.size(), "{} tokens, alignment of {}", hypothesis.tokens.size(),
        hypothesis.alignment.size());
  DecodedLine line = target.decode_with_bytes(hypothesis.tokens);
  AlignedText aligned{std::move(line.text), {}};
  for (size_t t = 0; t < hypothesis.tokens.size(); ++t) {
    const auto from = static_cast<size_t>(hypothesis.alignment[t]);
    if (from < source.bytes.size() && source.bytes[from].count() > 0 && line.bytes[t].count() > 0)
      aligned.links.push_back({source.bytes[from], line.bytes[t]});
  }
  return aligned;
}

std::string alignment_text(const EncodedLine& source, std::string_view line, const Vocabulary& target, const Hypothesis& hypothesis,
                           AlignmentUnit unit) {
  CHECK(hypothesis.alignment.size() >= hypothesis.tokens.size(), "{} tokens, alignment of {}", hypothesis.tokens.size(),
        hypothesis.alignment.size());
  DecodedLine decoded = target.decode_with_bytes(hypothesis.tokens);
  const EncodedLine pieces{hypothesis.tokens, std::move(decoded.bytes)};
  return alignment_text({line, source}, {decoded.text, pieces}, hypothesis.alignment, unit);
}

std::string alignment_text(const LinkedSide& source, const LinkedSide& target, std::span<const int32_t> alignment, AlignmentUnit unit) {
  std::set<std::pair<int64_t, int64_t>> pairs;
  const bool words = unit == AlignmentUnit::words;
  const std::vector<int64_t> from_words = words ? word_of_bytes(source.text) : std::vector<int64_t>(),
                             to_words = words ? word_of_bytes(target.text) : std::vector<int64_t>();
  for (size_t t = 0; t < target.pieces.ids.size() && t < alignment.size(); ++t) {
    const auto s = static_cast<size_t>(alignment[t]);
    if (s >= source.pieces.ids.size()) continue;  // its end
    if (!words) {
      pairs.emplace(s, t);
      continue;
    }
    const Range from = source.pieces.bytes[s], to = target.pieces.bytes[t];
    if (from.count() == 0 || to.count() == 0) continue;
    // A piece may begin with the space before its word.
    const int64_t source_word = from_words[static_cast<size_t>(from.end - 1)], target_word = to_words[static_cast<size_t>(to.end - 1)];
    if (source_word >= 0 && target_word >= 0) pairs.emplace(source_word, target_word);
  }
  std::string text;
  for (const auto& [s, t] : pairs) text += fmt::format("{}{}-{}", text.empty() ? "" : " ", s, t);
  return text;
}

}  // namespace starling
