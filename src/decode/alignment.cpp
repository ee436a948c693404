#include "decode/alignment.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/error.h"

namespace starling {
namespace {

// Attention without that of a prefix which is not shown.
std::span<const std::vector<float>> shown_attention(const Hypothesis& h) {
  const size_t shown = h.tokens.size() + (h.end >= 0 ? 1 : 0);
  return std::span(h.attention).last(std::min(shown, h.attention.size()));
}

Links links_of(const Hypothesis& h, double threshold) {
  Links links;
  const auto attention = shown_attention(h);
  CHECK((threshold > 0 ? attention.size() : h.alignment.size()) >= h.tokens.size(), "{} tokens, alignment of {}, attention of {}",
        h.tokens.size(), h.alignment.size(), attention.size());
  for (size_t t = 0; t < h.tokens.size(); ++t) {
    const auto to = static_cast<int32_t>(t);
    if (threshold == 0) links.emplace_back(h.alignment[t], to);
    for (size_t s = 0; threshold > 0 && s < attention[t].size(); ++s)
      if (attention[t][s] > threshold) links.emplace_back(static_cast<int32_t>(s), to);
  }
  return links;
}

std::string links_text(const LinkedSide& source, const LinkedSide& target, const Links& links, AlignmentUnit unit) {
  std::set<std::pair<int64_t, int64_t>> pairs;
  const bool words = unit == AlignmentUnit::words;
  const std::vector<int64_t> from_words = words ? word_of_bytes(source.text) : std::vector<int64_t>(),
                             to_words = words ? word_of_bytes(target.text) : std::vector<int64_t>();
  for (const auto& [from_piece, to_piece] : links) {
    const auto s = static_cast<size_t>(from_piece), t = static_cast<size_t>(to_piece);
    if (s >= source.pieces.ids.size() || t >= target.pieces.ids.size()) continue;  // their ends
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
  return links_line(pairs);
}

}  // namespace

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
                           AlignmentUnit unit, double threshold) {
  DecodedLine decoded = target.decode_with_bytes(hypothesis.tokens);
  const EncodedLine pieces{hypothesis.tokens, std::move(decoded.bytes)};
  return links_text({line, source}, {decoded.text, pieces}, links_of(hypothesis, threshold), unit);
}

std::string alignment_text(const LinkedSide& source, const LinkedSide& target, std::span<const int32_t> alignment, AlignmentUnit unit) {
  Links links;
  for (size_t t = 0; t < alignment.size(); ++t) links.emplace_back(alignment[t], static_cast<int32_t>(t));
  return links_text(source, target, links, unit);
}

std::string soft_alignment_text(const Hypothesis& hypothesis) {
  std::string text;
  for (const std::vector<float>& row : shown_attention(hypothesis))
    text += fmt::format("{}{:g}", text.empty() ? "" : " ", fmt::join(row, ","));
  return text;
}

std::vector<double> unit_scores(const Hypothesis& hypothesis, const Vocabulary& target, AlignmentUnit unit) {
  const std::vector<float>& scores = hypothesis.log_probabilities;
  if (unit == AlignmentUnit::pieces) return {scores.begin(), scores.end()};
  const DecodedLine line = target.decode_with_bytes(hypothesis.tokens);
  const std::vector<int64_t> words = word_of_bytes(line.text);
  const int64_t count = words.empty() ? 0 : *std::max_element(words.begin(), words.end()) + 1;
  std::vector<double> sums(static_cast<size_t>(count)), pieces(sums.size());
  for (size_t t = 0; t < hypothesis.tokens.size() && t < scores.size(); ++t) {
    if (line.bytes[t].count() == 0) continue;
    const int64_t word = words[static_cast<size_t>(line.bytes[t].end - 1)];  // a piece may begin with the space before its word
    if (word < 0) continue;
    sums[static_cast<size_t>(word)] += scores[t];
    ++pieces[static_cast<size_t>(word)];
  }
  for (size_t w = 0; w < sums.size(); ++w) sums[w] /= std::max(pieces[w], 1.0);
  return sums;
}

}  // namespace starling
