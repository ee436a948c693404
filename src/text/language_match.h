// Which of the languages that models have is meant by the code of a client, which may be spelled in another way, say more, or say less.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace starling {

/// Whether two codes are the same but for their case: "pt-br" is "pt-BR".
bool same_language(std::string_view a, std::string_view b);

/// A code in one spelling, to compare it with others: small letters, hyphens for underscores, pt-br and zh-hant for LibreTranslate's pb and
/// zt, and today's code for one that was replaced ("iw" is he). Not a code to show to people.
std::string comparable_language(std::string_view code);

/// The script that the language of a code is written in, as "Hant": the one that it names, else the usual one of the language in that
/// country. "" for languages that have one script only.
std::string language_script(std::string_view code);

inline constexpr int kSameLanguageOnly = 100;

/// How well the language `has` does for the language `asked`: 0 for the same code, little more for another spelling of it and for one that
/// says less (en for en-US), kSameLanguageOnly where just the main language and the script are the same (pt-BR for pt). Nothing for others.
std::optional<int> language_distance(std::string_view asked, std::string_view has);

}  // namespace starling
