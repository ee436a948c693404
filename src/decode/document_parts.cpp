#include "decode/document_parts.h"

#include <algorithm>

#include "base/error.h"
#include "decode/alignment.h"
#include "decode/framing.h"
#include "document/parts.h"
#include "text/listed_pieces.h"

namespace starling {

SentenceParts::SentenceParts(std::span<const std::string> sentences, const Vocabulary& source, int64_t most_tokens,
                             const std::function<void()>& between, const std::function<bool(size_t)>& begins_line)
    : sentences_(sentences.size()) {
  const bool typed = !source.listed().tags().empty();
  if (typed) most_tokens = std::max<int64_t>(most_tokens - 1, 1);  // for the tag
  std::string tag;
  for (size_t i = 0; i < sentences.size(); ++i) {
    std::vector<std::string> parts = parts_that_fit(sentences[i], source, most_tokens);
    cut_ += parts.size() > 1;
    if (!begins_line || begins_line(i)) tag.clear();
    for (std::string& part : parts) {
      std::string_view text = part;
      const int32_t own = source.take_tag(text);
      if (typed) tagged_.push_back(own < 0 && !tag.empty() ? fmt::format("{} {}", tag, part) : part);
      if (own >= 0 && source.listed().is_tag(own)) tag = source.piece(own);
      parts_.push_back(std::move(part));
      sentence_.push_back(i);
    }
    if (between) between();
  }
}

Range SentenceParts::parts_of(size_t sentence) const {
  const auto [begin, end] = std::equal_range(sentence_.begin(), sentence_.end(), sentence);
  return {begin - sentence_.begin(), end - sentence_.begin()};
}

AlignedText SentenceParts::join_sentence(size_t sentence, std::span<const PartTranslation> translations, const Vocabulary& source,
                                         const Vocabulary& target, bool links) const {
  const auto first = static_cast<size_t>(parts_of(sentence).begin);
  std::vector<AlignedText> of_parts;
  for (size_t i = 0; i < translations.size(); ++i) {
    const PartTranslation& t = translations[i];
    of_parts.push_back(links && !t.hypothesis.tokens.empty() ? align(text_tokens(parts_[first + i], source), target, t.hypothesis)
                                                             : AlignedText{t.text, {}});
  }
  return joined_parts(std::span(parts_).subspan(first, translations.size()), of_parts);
}

std::vector<AlignedText> SentenceParts::join(std::span<const PartTranslation> translations, const Vocabulary& source,
                                             const Vocabulary& target, const std::function<bool(size_t sentence)>& needs_links,
                                             const std::function<void()>& between) const {
  CHECK(translations.size() == parts_.size(), "{} translations of {} parts", translations.size(), parts_.size());
  std::vector<AlignedText> whole;
  for (size_t sentence = 0; sentence < sentences_; ++sentence) {
    const Range parts = parts_of(sentence);
    whole.push_back(join_sentence(sentence, translations.subspan(static_cast<size_t>(parts.begin), static_cast<size_t>(parts.count())),
                                  source, target, needs_links(sentence)));
    if (between) between();
  }
  return whole;
}

DocumentParts::DocumentParts(Document document, const Vocabulary& source, int64_t most_tokens, const std::function<void()>& between)
    : document_(std::move(document)),
      sentences_(document_.sentences(), source, most_tokens, between, [this](size_t s) { return document_.begins_line(s); }) {}

std::vector<AlignedText> DocumentParts::join(std::span<const PartTranslation> translations, const Vocabulary& source,
                                             const Vocabulary& target, bool all, const std::function<void()>& between) const {
  return sentences_.join(
      translations, source, target, [&](size_t sentence) { return all || document_.needs_links(sentence); }, between);
}

AlignedText DocumentParts::assemble_with_links(std::span<const PartTranslation> translations, const Vocabulary& source,
                                               const Vocabulary& target, bool all, const std::function<void()>& between) const {
  return document_.assemble_with_links(join(translations, source, target, all, between));
}

}  // namespace starling
