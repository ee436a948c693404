// Finds which of the models' languages a client's language code means; the code may be spelled differently or be more or less specific.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace starling {

/// Returns whether two codes are equal except for case: "pt-br" and "pt-BR".
bool same_language(std::string_view a, std::string_view b);

/// Returns a code in a normal form for comparisons: lower case, hyphens for underscores, pt-br and zh-hant for LibreTranslate's pb and zt,
/// and the current code for one that was replaced ("he" for "iw"). Not meant to be shown to people.
std::string comparable_language(std::string_view code);

/// Returns the script of a code's language, such as "Hant": the one that the code names, otherwise the usual one of the language in that
/// country. "" for languages with only one script.
std::string language_script(std::string_view code);

inline constexpr int kSameLanguageOnly = 100;

/// Returns how far the language `has` is from the language `asked`: 0 for the same code, slightly more for another spelling of it and for a
/// less specific one (en for en-US), kSameLanguageOnly if only the main language and the script agree (pt-BR for pt). nullopt for others.
std::optional<int> language_distance(std::string_view asked, std::string_view has);

}  // namespace starling
