#include "text/detect_language.h"

#include <cld2/public/compact_lang_det.h>
#include <cld2/public/encodings.h>

#include <algorithm>
#include <map>

#include "base/utf8.h"
#include "text/language_match.h"
#include "text/languages.h"
#include "text/unicode.h"

namespace starling {
namespace {

const std::map<std::string_view, const char*>& names() {
  static const std::map<std::string_view, const char*> kNames{{"af", "Afrikaans"},
                                                              {"am", "Amharic"},
                                                              {"ar", "Arabic"},
                                                              {"as", "Assamese"},
                                                              {"ast", "Asturian"},
                                                              {"az", "Azerbaijani"},
                                                              {"be", "Belarusian"},
                                                              {"bg", "Bulgarian"},
                                                              {"bn", "Bengali"},
                                                              {"br", "Breton"},
                                                              {"bs", "Bosnian"},
                                                              {"ca", "Catalan"},
                                                              {"cs", "Czech"},
                                                              {"cy", "Welsh"},
                                                              {"da", "Danish"},
                                                              {"de", "German"},
                                                              {"el", "Greek"},
                                                              {"en", "English"},
                                                              {"eo", "Esperanto"},
                                                              {"es", "Spanish"},
                                                              {"et", "Estonian"},
                                                              {"eu", "Basque"},
                                                              {"fa", "Persian"},
                                                              {"fi", "Finnish"},
                                                              {"fil", "Filipino"},
                                                              {"fo", "Faroese"},
                                                              {"fr", "French"},
                                                              {"fy", "Frisian"},
                                                              {"ga", "Irish"},
                                                              {"gd", "Scottish Gaelic"},
                                                              {"gl", "Galician"},
                                                              {"gu", "Gujarati"},
                                                              {"ha", "Hausa"},
                                                              {"he", "Hebrew"},
                                                              {"hi", "Hindi"},
                                                              {"hr", "Croatian"},
                                                              {"ht", "Haitian"},
                                                              {"hu", "Hungarian"},
                                                              {"hy", "Armenian"},
                                                              {"id", "Indonesian"},
                                                              {"ig", "Igbo"},
                                                              {"is", "Icelandic"},
                                                              {"it", "Italian"},
                                                              {"ja", "Japanese"},
                                                              {"jv", "Javanese"},
                                                              {"ka", "Georgian"},
                                                              {"kk", "Kazakh"},
                                                              {"km", "Khmer"},
                                                              {"kn", "Kannada"},
                                                              {"ko", "Korean"},
                                                              {"ku", "Kurdish"},
                                                              {"ky", "Kyrgyz"},
                                                              {"la", "Latin"},
                                                              {"lb", "Luxembourgish"},
                                                              {"lo", "Lao"},
                                                              {"lt", "Lithuanian"},
                                                              {"lv", "Latvian"},
                                                              {"mg", "Malagasy"},
                                                              {"mi", "Maori"},
                                                              {"mk", "Macedonian"},
                                                              {"ml", "Malayalam"},
                                                              {"mn", "Mongolian"},
                                                              {"mr", "Marathi"},
                                                              {"ms", "Malay"},
                                                              {"mt", "Maltese"},
                                                              {"my", "Burmese"},
                                                              {"nb", "Norwegian Bokmål"},
                                                              {"ne", "Nepali"},
                                                              {"nl", "Dutch"},
                                                              {"nn", "Norwegian Nynorsk"},
                                                              {"no", "Norwegian"},
                                                              {"oc", "Occitan"},
                                                              {"or", "Odia"},
                                                              {"pa", "Punjabi"},
                                                              {"pl", "Polish"},
                                                              {"ps", "Pashto"},
                                                              {"pt", "Portuguese"},
                                                              {"pt-BR", "Portuguese (Brazil)"},
                                                              {"ro", "Romanian"},
                                                              {"ru", "Russian"},
                                                              {"si", "Sinhala"},
                                                              {"sk", "Slovak"},
                                                              {"sl", "Slovenian"},
                                                              {"so", "Somali"},
                                                              {"sq", "Albanian"},
                                                              {"sr", "Serbian"},
                                                              {"su", "Sundanese"},
                                                              {"sv", "Swedish"},
                                                              {"sw", "Swahili"},
                                                              {"ta", "Tamil"},
                                                              {"te", "Telugu"},
                                                              {"tg", "Tajik"},
                                                              {"th", "Thai"},
                                                              {"ti", "Tigrinya"},
                                                              {"tk", "Turkmen"},
                                                              {"tl", "Tagalog"},
                                                              {"tr", "Turkish"},
                                                              {"tt", "Tatar"},
                                                              {"ug", "Uyghur"},
                                                              {"uk", "Ukrainian"},
                                                              {"ur", "Urdu"},
                                                              {"uz", "Uzbek"},
                                                              {"vi", "Vietnamese"},
                                                              {"wo", "Wolof"},
                                                              {"xh", "Xhosa"},
                                                              {"yi", "Yiddish"},
                                                              {"yo", "Yoruba"},
                                                              {"zh", "Chinese"},
                                                              {"zh-Hans", "Chinese (simplified)"},
                                                              {"zh-Hant", "Chinese (traditional)"},
                                                              {"zu", "Zulu"}};
  return kNames;
}

std::string main_subtag(std::string_view code) { return main_language(comparable_language(code)); }

// Returns the codes among `known` that a language of the detector stands for; for Chinese, those with the same script if there are any.
std::vector<std::string> known_codes(std::string_view detected, std::span<const std::string> known) {
  if (known.size() == 1 && known.front() == detected) return {known.front()};  // nearly always where one is asked about
  std::vector<std::string> exact, main;
  for (const std::string& k : known) {
    if (main_subtag(k) != main_subtag(detected)) continue;
    main.push_back(k);
    if (language_distance(detected, k)) exact.push_back(k);
  }
  return exact.empty() ? main : exact;
}

// The detector's result for a text. `hint` lists codes, separated by commas, that the detector should favour, or is null.
struct Guess {
  bool is_known = false;  // its first language is one of the known ones
  bool reliable = false;  // in the detector's own opinion
  std::string first;      // code of its first language, known or not; "" without evidence
  double score = 0;       // score of its first language: how typical the text is of it
  std::vector<Detected> languages;
};
Guess guess(std::string_view text, std::span<const std::string> known, const char* hint) {
  constexpr int kBestEffort = 0x4000;  // kCLDFlagBestEffort: answer for short texts too
  CLD2::Language languages[3] = {CLD2::UNKNOWN_LANGUAGE, CLD2::UNKNOWN_LANGUAGE, CLD2::UNKNOWN_LANGUAGE};  // if it refuses the text
  int percents[3] = {0, 0, 0}, bytes = 0, valid = 0;
  double scores[3];
  bool reliable = false;
  const CLD2::CLDHints hints{hint, nullptr, CLD2::UNKNOWN_ENCODING, CLD2::UNKNOWN_LANGUAGE};
  CLD2::ExtDetectLanguageSummaryCheckUTF8(text.data(), static_cast<int>(text.size()), true, &hints, kBestEffort, languages, percents,
                                          scores, nullptr, &bytes, &reliable, &valid);
  Guess g;
  g.reliable = reliable;
  if (languages[0] != CLD2::UNKNOWN_LANGUAGE && percents[0] > 0) g.first = CLD2::LanguageCode(languages[0]);
  for (int i = 0; i < 3; ++i) {
    if (languages[i] == CLD2::UNKNOWN_LANGUAGE || percents[i] <= 0) continue;
    const std::vector<std::string> codes = known_codes(CLD2::LanguageCode(languages[i]), known);
    for (const std::string& code : codes) g.languages.push_back({code, static_cast<double>(percents[i])});
    if (i == 0) {
      g.is_known = !codes.empty();
      g.score = scores[i];
    }
  }
  std::stable_sort(g.languages.begin(), g.languages.end(),
                   [](const Detected& a, const Detected& b) { return a.confidence > b.confidence; });
  return g;
}

}  // namespace

std::string language_name(const std::string& code) {
  for (const std::string& wanted : {code, comparable_language(code), main_subtag(code)})
    for (const auto& [known, name] : names())
      if (same_language(known, wanted)) return name;
  return code;
}

namespace {

// Returns the beginning of a text, of which more would add time and no certainty.
std::string_view enough_of(std::string_view text) {
  constexpr size_t kMostBytes = 64 << 10;
  if (text.size() <= kMostBytes) return text;
  size_t size = kMostBytes;
  while (size > 0 && is_continuation(static_cast<unsigned char>(text[size]))) --size;
  return text.substr(0, size);
}

}  // namespace

std::string likely_language(std::string_view text) { return guess(enough_of(text), {}, nullptr).first; }

bool is_clearly_in_another_language(std::string_view text, std::span<const std::string> languages, std::string_view other) {
  // Words of interfaces and names are in many languages; their letters are not where they are other than Latin ones.
  constexpr size_t kFewestWords = 4, kFewestBytes = 24;
  text = enough_of(text);
  const Guess plain = guess(text, languages, nullptr);
  if (plain.is_known || plain.first.empty()) return false;
  const auto is_latin = [](char32_t c) { return c < 0x250 || (c >= 0x1E00 && c < 0x2E00); };  // letters and marks
  if (std::ranges::all_of(decode_utf8(text), is_latin) && (text.size() < kFewestBytes || split_on_space(text).size() < kFewestWords))
    return false;
  for (const std::string& language : languages)
    if (guess(text, languages, main_subtag(language).c_str()).is_known) return false;
  return plain.reliable || (!other.empty() && main_subtag(plain.first) == main_subtag(other));
}

std::vector<Detected> detect_languages(std::string_view text, std::span<const std::string> known) {
  text = enough_of(text);
  Guess found = guess(text, known, nullptr);
  // Short texts are often taken for another language ("Ein Mann" for Norwegian), so a hint is tried then. It is not given at first, because
  // with a hint, words that are in none of the detector's tables count for the first language of the hint.
  if (!found.is_known) {
    constexpr size_t kMostHints = 4;  // the detector ignores longer lists
    Guess best;
    for (size_t first = 0; first < known.size(); first += kMostHints) {
      std::string hint;
      for (const std::string& k : known.subspan(first, std::min(kMostHints, known.size() - first)))
        hint += (hint.empty() ? "" : ",") + main_subtag(k);
      if (Guess likely = guess(text, known, hint.c_str()); likely.is_known && likely.score > best.score) best = std::move(likely);
    }
    if (best.is_known) found = std::move(best);
  }
  if (found.languages.empty() && !known.empty()) found.languages.push_back({known.front(), 0});
  return std::move(found.languages);
}

}  // namespace starling
