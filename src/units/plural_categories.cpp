#include "units/plural_categories.h"

#include <algorithm>

#include "text/language_codes.h"
#include "text/languages.h"

namespace starling {
namespace {

struct PluralFamily {
  std::string_view languages, categories;  // with a space around each
};
// Of CLDR 48, cardinal numbers; other languages have one and other.
constexpr PluralFamily kPluralFamilies[] = {
    {" bm bo dz hnj id ig ii in ja jbo jv jw kde kea km ko lkt lo ms my nqo osa sah ses sg su th to tpi vi wo yo yue zh ", " other "},
    {" ca es fr it lld pt scn vec ", " one many other "},
    {" bs cnr hr mo ro sh shi sr ", " one few other "},
    {" be cs lt pl ru sk uk ", " one few many other "},
    {" he iu iw naq sat se sma smi smj smn sms ", " one two other "},
    {" dsb gd hsb sl ", " one two few other "},
    {" br ga gv mt sgs ", " one two few many other "},
    {" blo cv ksh lag lv prg ", " zero one other "},
    {" ar ars cy kw ", " zero one two few many other "},
};

bool contains_word(std::string_view words, std::string_view word) {
  return words.find(" " + std::string(word) + " ") != std::string_view::npos;
}

}  // namespace

bool is_plural_category(std::string_view word) { return std::ranges::count(kPluralCategories, word) > 0; }

std::vector<std::string_view> plural_categories_of(std::string_view language) {
  std::string code = main_language(language);
  if (code.empty()) return {};
  if (const std::string two = two_letter_language(code); !two.empty()) code = two;
  std::string_view categories = " one other ";
  for (const PluralFamily& family : kPluralFamilies)
    if (contains_word(family.languages, code)) categories = family.categories;
  std::vector<std::string_view> all;
  for (const std::string_view category : kPluralCategories)
    if (contains_word(categories, category)) all.push_back(category);
  return all;
}

std::vector<std::string_view> missing_categories(std::span<const std::string_view> categories, std::span<const std::string> there) {
  std::vector<std::string_view> missing;
  for (const std::string_view category : categories)
    if (std::ranges::count(there, category) == 0) missing.push_back(category);
  return missing;
}

}  // namespace starling
