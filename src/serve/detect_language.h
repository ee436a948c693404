// English names of language codes, and which language a text is in.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace starling {

// The English name of a BCP 47 code ("de", "pt-BR"), of its main language ("pt-PT"), or the code itself.
std::string language_name(const std::string& code);

struct Detected {
  std::string language;
  double confidence = 0;  // 0 to 100
};

// The languages of a text among `known`, the likeliest first; never empty unless `known` is: a text that gives no hint is in the first one
// with confidence 0. Invalid UTF-8 gives no hint. Markup and addresses look like English: leave them out (Document::words()).
std::vector<Detected> detect_languages(std::string_view text, std::span<const std::string> known);

}  // namespace starling
