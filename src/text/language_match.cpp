#include "text/language_match.h"

#include <algorithm>

#include "base/ascii.h"
#include "text/language_codes.h"
#include "text/unicode.h"

namespace starling {
namespace {

struct Renamed {
  std::string_view code, now;
};
constexpr Renamed kAliases[] = {{"pb", "pt-br"}, {"zt", "zh-hant"}};  // whole codes
// Main languages: codes that ISO 639 withdrew, and the codes that CLD2 uses for languages with two codes.
constexpr Renamed kMains[] = {{"iw", "he"}, {"in", "id"}, {"ji", "yi"}, {"jw", "jv"}, {"mo", "ro"}, {"nb", "no"}, {"fil", "tl"}};

// Languages written in several scripts: the usual script, and another one with the countries that use it. Taken from the likely subtags of
// Unicode's CLDR 42 (ICU 72), queried for each language and country.
struct Scripts {
  std::string_view language, script, elsewhere, countries;
};
constexpr Scripts kScripts[] = {{"az", "Latn", "Arab", "iq ir"},
                                {"az", "Latn", "Cyrl", "ru"},
                                {"bs", "Latn", "", ""},
                                {"ha", "Latn", "Arab", "cm sd"},
                                {"kk", "Cyrl", "Arab", "af cn ir mn"},
                                {"ks", "Arab", "", ""},
                                {"ku", "Latn", "Arab", "lb"},
                                {"ky", "Cyrl", "Arab", "cn"},
                                {"ky", "Cyrl", "Latn", "tr"},
                                {"mn", "Cyrl", "Mong", "cn"},
                                {"ms", "Latn", "Arab", "cc"},
                                {"pa", "Guru", "Arab", "pk"},
                                {"sd", "Arab", "Deva", "in"},
                                {"sr", "Cyrl", "Latn", "me ro ru tr"},
                                {"tg", "Cyrl", "Arab", "pk"},
                                {"ug", "Arab", "Cyrl", "kz mn"},
                                {"uz", "Latn", "Arab", "af"},
                                {"uz", "Latn", "Cyrl", "cn"},
                                {"yue", "Hant", "Hans", "cn"},
                                {"zh", "Hans", "Hant", "au bn gb gf hk id mo pa pf ph sr th tw us vn"}};

std::string_view main_of(std::string_view comparable) { return comparable.substr(0, comparable.find('-')); }

// Returns the subtag with this many letters after the main language; "" if there is none.
std::string_view part_of(std::string_view comparable, size_t letters) {
  for (size_t hyphen = comparable.find('-'); hyphen != std::string_view::npos; hyphen = comparable.find('-', hyphen + 1)) {
    const std::string_view part = comparable.substr(hyphen + 1, comparable.find('-', hyphen + 1) - hyphen - 1);
    if (part.size() == 1) break;  // extensions follow
    if (part.size() == letters && std::all_of(part.begin(), part.end(), [](char c) { return c >= 'a' && c <= 'z'; })) return part;
  }
  return "";
}

std::string script_of_comparable(std::string_view code) {
  const std::string_view main = main_of(code), country = part_of(code, 2);
  if (std::string script(part_of(code, 4)); !script.empty()) {
    script.front() = static_cast<char>(script.front() - 32);
    return script;
  }
  std::string_view usual;
  for (const Scripts& s : kScripts) {
    if (s.language != main) continue;
    usual = s.script;
    if (country.empty()) continue;
    for (const std::string_view each : split_on_space(s.countries))
      if (each == country) return std::string(s.elsewhere);
  }
  return std::string(usual);
}

}  // namespace

bool same_language(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return ascii_lower(x) == ascii_lower(y); });
}

std::string comparable_language(std::string_view code) {
  std::string all(code);
  for (char& c : all) c = c == '_' ? '-' : ascii_lower(c);
  for (const Renamed& r : kAliases)
    if (all == r.code) return std::string(r.now);
  if (const std::string two = two_letter_language(main_of(all)); !two.empty()) all.replace(0, 3, two);
  if (all == "pob") return "pt-br";  // as OPUS-MT calls it
  for (const Renamed& r : kMains)
    if (main_of(all) == r.code) return all.replace(0, r.code.size(), r.now);
  return all;
}

std::string language_script(std::string_view code) { return script_of_comparable(comparable_language(code)); }

std::optional<int> language_distance(std::string_view asked, std::string_view has) {
  if (same_language(asked, has)) return 0;
  const std::string a = comparable_language(asked), h = comparable_language(has);
  if (a == h) return 1;
  if (main_of(a) != main_of(h)) return std::nullopt;
  const std::string script = script_of_comparable(a), other = script_of_comparable(h);
  if (!script.empty() && !other.empty() && script != other) return std::nullopt;
  if (!a.starts_with(h + "-")) return kSameLanguageOnly;
  const auto dropped = std::count(a.begin() + static_cast<ptrdiff_t>(h.size()), a.end(), '-');
  return static_cast<int>(std::min<ptrdiff_t>(1 + dropped, kSameLanguageOnly - 1));
}

}  // namespace starling
