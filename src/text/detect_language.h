// Provides English names of language codes and detects the language of a text.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace starling {

// Returns the English name of a BCP 47 code ("de", "pt-BR"), else the name of its main language ("pt-PT"), else the code itself.
std::string language_name(const std::string& code);

struct Detected {
  std::string language;
  double confidence = 0;  // 0 to 100
};

// Returns the languages of a text among `known`, most likely first. The result is empty only if `known` is: a text without evidence is
// assigned to the first language with confidence 0. Invalid UTF-8 is no evidence. Markup and addresses look like English, so leave them out
// (Document::words()).
std::vector<Detected> detect_languages(std::string_view text, std::span<const std::string> known);

/// Returns the code of the language that a text is most likely in; "" without evidence.
std::string likely_language(std::string_view text);

/// Returns whether a text is clearly in another language than these. `other`: the language that is most often between them, such as that of
/// the translations, for which less evidence is enough; "" if none is.
bool is_clearly_in_another_language(std::string_view text, std::span<const std::string> languages, std::string_view other);

}  // namespace starling
