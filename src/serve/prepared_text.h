// A text of a request on its way through translation: taken apart into sentences, put together from what they became.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "serve/api.h"
#include "serve/cache.h"
#include "text/document.h"
#include "text/vocabulary.h"

namespace starling {

class PreparedText {
 public:
  // No sentence has more than `most_tokens` pieces of the vocabulary: longer ones become several.
  PreparedText(const std::string& text, TextFormat format, const std::string& language, const Vocabulary& vocabulary, int64_t most_tokens);
  // What is to be translated, in order.
  const std::vector<std::string>& sentences() const { return parts_; }
  // The text with its sentences' translations of a rank (0: the best); of a sentence that has fewer the last.
  std::string assemble(std::span<const Candidates> translations, size_t rank) const;

 private:
  Document document_;
  std::vector<std::string> parts_;
  std::vector<size_t> ends_;  // parts up to the end of each of the document's sentences
};

}  // namespace starling
