#include "serve/translation_stream.h"

#include <algorithm>

#include "base/error.h"

namespace starling {

std::string TranslationStream::add(size_t part, PartTranslation translation) {
  translations_[part] = std::move(translation);
  there_[part] = true;
  AlignedText more;
  for (; next_ < document_.sentences().size(); ++next_) {
    const Range parts = parts_.parts_of(next_);
    if (!std::all_of(there_.begin() + parts.begin, there_.begin() + parts.end, [](bool there) { return there; })) break;
    const auto of_sentence = std::span(translations_).subspan(static_cast<size_t>(parts.begin), static_cast<size_t>(parts.count()));
    AlignedText sentence = parts_.join_sentence(next_, of_sentence, source_, target_, document_.needs_links(next_));
    if (!first_.empty()) sentence = linked_through(first_[next_], std::move(sentence));
    document_.append_sentence(more, next_, sentence);
    for (PartTranslation& t : of_sentence) t = {};
  }
  sent_ += more.text.size();
  return std::move(more.text);
}

std::string TranslationStream::add_token(size_t part, int32_t token) {
  if (tokens_.empty()) tokens_.resize(translations_.size());
  tokens_[part].push_back(token);
  if (parts_.sentence_of(part) != next_ || parts_.parts_of(next_).begin != static_cast<int64_t>(part) || document_.needs_links(next_))
    return "";
  constexpr size_t kLongestGap = 200;  // bytes of kept text in front of the sentence, which each preview repeats
  if (document_.kept_before(next_) > kLongestGap) return "";
  AlignedText begin;
  document_.append_sentence(begin, next_, {target_.decode(tokens_[part]), {}});
  return std::move(begin.text);
}

std::string TranslationStream::rest(const std::string& whole) {
  CHECK(sent_ <= whole.size(), "{} bytes of a text of {} were sent", sent_, whole.size());
  std::string more = whole.substr(sent_);
  sent_ = whole.size();
  next_ = document_.sentences().size();
  return more;
}

}  // namespace starling
