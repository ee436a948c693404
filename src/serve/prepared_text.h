// A text of a request on its way through translation: taken apart into sentences, put together from what they became.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "serve/api.h"
#include "serve/cache.h"

namespace starling {

class PreparedText {
 public:
  PreparedText(const std::string& text, TextFormat format, const std::string& language);
  // What is to be translated, in order.
  const std::vector<std::string>& sentences() const { return sentences_; }
  // The text with its sentences' translations of a rank (0: the best); of a sentence that has fewer the last.
  std::string assemble(std::span<const Candidates> translations, size_t rank) const;

 private:
  std::vector<std::string> between_;  // what stands before each sentence, and behind the last
  std::vector<std::string> sentences_;
};

}  // namespace starling
