#include <algorithm>
#include <array>
#include <map>

#include "base/utf8.h"
#include "moses/moses.h"
#include "moses/rewriting.h"

namespace starling::moses {
namespace {

constexpr std::array<std::pair<std::u32string_view, std::u32string_view>, 11> kEscaped{{{U"&bar;", U"|"},
                                                                                        {U"&#124;", U"|"},
                                                                                        {U"&lt;", U"<"},
                                                                                        {U"&gt;", U">"},
                                                                                        {U"&bra;", U"["},
                                                                                        {U"&ket;", U"]"},
                                                                                        {U"&quot;", U"\""},
                                                                                        {U"&apos;", U"'"},
                                                                                        {U"&#91;", U"["},
                                                                                        {U"&#93;", U"]"},
                                                                                        {U"&amp;", U"&"}}};

using Word = std::u32string;

bool has_letter(std::u32string_view set, char32_t c) { return set.find(c) != std::u32string_view::npos; }

// In lower case, as far as the words that are looked for here have letters with another.
Word in_lower_case(Word word) {
  for (char32_t& c : word)
    if ((c >= 'A' && c <= 'Z') || c == U'Ä' || c == U'Ö') c += 'a' - 'A';
  return word;
}

bool only(const Word& word, std::u32string_view of) { return word.find_first_not_of(of) == Word::npos; }

bool is_opening(const Word& word, bool perl) {
  return std::all_of(word.begin(), word.end(), [&](char32_t c) { return is_currency(c, perl) || has_letter(U"([{¿¡", c); });
}

bool is_whole_number(const Word& word) { return only(word, U"0123456789"); }

// The Czech particle -li, and words such as e-mail.
bool follows_czech_hyphen(const Word& word) {
  const Word lower = in_lower_case(word);
  return lower == U"li" || lower.starts_with(U"mail");
}

// Endings of Finnish nouns, which follow an abbreviation and a colon: EU:ssa.
bool is_finnish_ending(const Word& word) {
  constexpr std::u32string_view kCases[] = {U"n",   U"a",   U"ä",   U"ssa", U"ssä", U"sta", U"stä", U"hun", U"hyn",
                                            U"han", U"hän", U"hön", U"un",  U"yn",  U"an",  U"än",  U"ön",  U"seen",
                                            U"lla", U"llä", U"lta", U"ltä", U"lle", U"ksi", U"kse", U"tta", U"ine"};
  constexpr std::u32string_view kOwners[] = {U"", U"ni", U"si", U"mme", U"nne", U"nsa"};
  constexpr std::u32string_view kParticles[] = {U"", U"ko", U"kö", U"han", U"hän", U"pa", U"pä", U"kaan", U"kään", U"kin"};
  const Word lower = in_lower_case(word.substr(0, 1)) + word.substr(std::min<size_t>(1, word.size()));
  for (const auto& ending : kCases)
    for (const auto& owner : kOwners)
      for (const auto& particle : kParticles)
        if (lower == std::u32string(ending) + std::u32string(owner) + std::u32string(particle)) return true;
  return false;
}

}  // namespace

Detokenizer::Detokenizer(Options options) : options_(std::move(options)), classes_(options_.language, options_.perl) {}

Letters Detokenizer::text(const Letters& tokens) const {
  Letters all = tokens;
  const std::string& language = options_.language;
  if (has(all, '@')) {  // with a space on both sides, which the ends of the text have too
    all.insert(all.begin(), Letter{' ', 0, 0});
    all.push_back(Letter{' ', 0, 0});
    replace(all, U" @-@ ", U"-");
  }
  if (has(all, '&'))
    for (const auto& [from, by] : kEscaped) replace(all, from, by);
  std::vector<Word> words;
  std::vector<Letters> letters;
  for (size_t begin = 0; begin < all.size(); ++begin) {
    if (is_unicode_space(all[begin].c)) continue;
    Letters& word = letters.emplace_back();
    Word& plain = words.emplace_back();
    for (; begin < all.size() && !is_unicode_space(all[begin].c); ++begin) word.push_back(all[begin]), plain += all[begin].c;
  }

  Letters out;
  bool space = true;  // in front of the next word
  std::map<Word, int> quotes;
  const auto take = [&](const Letters& word, bool before, bool after) {
    if (before && !out.empty()) append_space(out, word.front());
    out.insert(out.end(), word.begin(), word.end());
    space = after;
  };
  const auto alpha = [&](char32_t c) { return classes_.alphabetic(c); };
  for (size_t i = 0; i < words.size(); ++i) {
    const Word& word = words[i];
    const bool last = i + 1 == words.size();
    const auto elided = [&] { return word.size() > 1 && word.back() == '\'' && alpha(word[word.size() - 2]); };
    // sacremoses looks at the last words of the text in place of those before this one.
    const auto decimal = [&] {
      if (i < 2) return false;
      const Word& whole = options_.perl ? words[i - 2] : words[words.size() - 2];
      const Word& mark = options_.perl ? words[i - 1] : words.back();
      return is_whole_number(whole) && (mark == U"." || mark == U",") && is_whole_number(word);
    };
    if (is_asian(word.front(), options_.perl) && (options_.perl || language != "ko")) {
      const bool joined = i > 0 && is_asian(words[i - 1].back(), options_.perl) && language != "ko";
      take(letters[i], !joined && space, true);
    } else if (is_opening(word, options_.perl)) {
      take(letters[i], space, false);
    } else if (only(word, U",.?!:;\\%}])")) {
      take(letters[i], language == "fr" && word.size() == 1 && has_letter(U"?!:;\\%", word[0]), true);
    } else if (language == "en" && i > 0 && word.size() > 1 && word[0] == '\'' && alpha(word[1]) &&
               (!options_.perl || classes_.alphanumeric(words[i - 1].back()))) {
      take(letters[i], false, true);
    } else if (language == "cs" && decimal()) {
      take(letters[i], false, true);
    } else if ((language == "fr" || language == "it" || (!options_.perl && language == "ga")) && !last && elided() &&
               alpha(words[i + 1].front())) {
      take(letters[i], space, false);
    } else if (language == "cs" && i + (options_.perl ? 3 : 2) < words.size() && (options_.perl ? alpha(word.back()) : elided()) &&
               (words[i + 1] == U"-" || words[i + 1] == U"–") && follows_czech_hyphen(words[i + 2])) {
      take(letters[i], space, false);
      take(letters[++i], false, false);
    } else if (only(word, U"'\"„“`")) {
      const Word kind = only(word, U"„“”") ? Word(U"\"") : word;
      int& count = quotes[kind];
      if (language == "cs" && word == U"„") count = 0;
      if (language == "cs" && word == U"“") count = 1;
      const bool possessive = language == "en" && word == U"'" && i > 0 && words[i - 1].back() == 's';
      if (count % 2 == 0 && !possessive) {
        take(letters[i], space, false);
        ++count;
      } else {
        count += count % 2;
        take(letters[i], false, true);
      }
    } else if (options_.perl && language == "fi" && i > 0 && words[i - 1].back() == ':' && is_finnish_ending(word)) {
      Letters lower = letters[i];
      const Word small = in_lower_case(word);
      for (size_t k = 0; k < lower.size(); ++k) lower[k].c = small[k];
      take(lower, false, true);
    } else {
      take(letters[i], space, true);
    }
  }
  return out;
}

}  // namespace starling::moses
