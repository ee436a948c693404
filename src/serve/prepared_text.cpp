#include "serve/prepared_text.h"

#include <algorithm>

#include "base/error.h"
#include "text/parts.h"

namespace starling {

PreparedText::PreparedText(const std::string& text, TextFormat format, const std::string& language, const Vocabulary& vocabulary,
                           int64_t most_tokens)
    : document_(text, format == TextFormat::html ? DocumentFormat::html : DocumentFormat::text, language) {
  for (const std::string& sentence : document_.sentences()) {
    for (std::string& part : parts_that_fit(sentence, vocabulary, most_tokens)) parts_.push_back(std::move(part));
    ends_.push_back(parts_.size());
  }
}

std::string PreparedText::assemble(std::span<const Candidates> translations, size_t rank) const {
  CHECK(translations.size() == parts_.size(), "{} translations of {} sentences", translations.size(), parts_.size());
  std::vector<AlignedText> whole;
  size_t begin = 0;
  for (const size_t end : ends_) {
    std::vector<AlignedText> of_parts;
    for (size_t i = begin; i < end; ++i) {
      const Candidates& c = translations[i];
      of_parts.push_back({c.empty() ? "" : c[std::min(rank, c.size() - 1)].text, {}});
    }
    whole.push_back(joined_parts(std::span(parts_).subspan(begin, end - begin), of_parts));
    begin = end;
  }
  return document_.assemble(whole);
}

}  // namespace starling
