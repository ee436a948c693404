#include "decode/document_parts.h"

#include "base/error.h"
#include "decode/alignment.h"
#include "document/parts.h"

namespace starling {

DocumentParts::DocumentParts(Document document, const Vocabulary& source, int64_t most_tokens, const std::function<void()>& between)
    : document_(std::move(document)) {
  const std::vector<std::string>& sentences = document_.sentences();
  for (size_t i = 0; i < sentences.size(); ++i) {
    std::vector<std::string> parts = parts_that_fit(sentences[i], source, most_tokens);
    cut_ += parts.size() > 1;
    for (std::string& part : parts) {
      parts_.push_back(std::move(part));
      sentence_.push_back(i);
    }
    if (between) between();
  }
}

AlignedText DocumentParts::assemble_with_links(std::span<const PartTranslation> translations, const Vocabulary& source,
                                               const Vocabulary& target, bool all, const std::function<void()>& between) const {
  CHECK(translations.size() == parts_.size(), "{} translations of {} parts", translations.size(), parts_.size());
  std::vector<AlignedText> whole;
  for (size_t begin = 0, end; begin < parts_.size(); begin = end) {
    std::vector<AlignedText> of_parts;
    for (end = begin; end < parts_.size() && sentence_[end] == sentence_[begin]; ++end) {
      const PartTranslation& t = translations[end];
      of_parts.push_back(all || needs_links(end) ? align(source.encode_with_bytes(parts_[end]), target, t.hypothesis)
                                                 : AlignedText{t.text, {}});
    }
    whole.push_back(joined_parts(std::span(parts_).subspan(begin, end - begin), of_parts));
    if (between) between();
  }
  return document_.assemble_with_links(whole);
}

}  // namespace starling
