// The categories that languages have for numbers, as CLDR names them: one, few, other and so on. Programs crash, or show a wrong text,
// where a translation lacks one that its language needs.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace starling {

inline constexpr std::string_view kPluralCategories[] = {"zero", "one", "two", "few", "many", "other"};

bool is_plural_category(std::string_view word);
/// Returns the categories of a language, in the order of kPluralCategories; one and other for a language that is unknown, nothing for "".
std::vector<std::string_view> plural_categories_of(std::string_view language);
/// Returns those of the categories that are not there.
std::vector<std::string_view> missing_categories(std::span<const std::string_view> categories, std::span<const std::string> there);

}  // namespace starling
