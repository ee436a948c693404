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
  std::set<std::pair<int64_t, int64_t>> pairs;
  if (unit == AlignmentUnit::pieces) {
    CHECK(hypothesis.alignment.size() >= hypothesis.tokens.size(), "{} tokens, alignment of {}", hypothesis.tokens.size(),
          hypothesis.alignment.size());
    for (size_t t = 0; t < hypothesis.tokens.size(); ++t)
      if (static_cast<size_t>(hypothesis.alignment[t]) < source.ids.size()) pairs.emplace(hypothesis.alignment[t], t);
  } else {
    const AlignedText aligned = align(source, target, hypothesis);
    const std::vector<int64_t> from = word_of_bytes(line), to = word_of_bytes(aligned.text);
    for (const auto& [s, t] : aligned.links) {  // a piece may begin with the space before its word
      const int64_t source_word = from[static_cast<size_t>(s.end - 1)], target_word = to[static_cast<size_t>(t.end - 1)];
      if (source_word >= 0 && target_word >= 0) pairs.emplace(source_word, target_word);
    }
  }
  std::string text;
  for (const auto& [s, t] : pairs) text += fmt::format("{}{}-{}", text.empty() ? "" : " ", s, t);
  return text;
}

}  // namespace starling
