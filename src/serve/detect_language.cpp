#include "serve/detect_language.h"

#include <cld2/public/compact_lang_det.h>
#include <cld2/public/encodings.h>

#include <algorithm>
#include <map>

namespace starling {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

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

// Up to its first hyphen, as the detector knows languages: it calls Hebrew iw and Norwegian no.
std::string primary(std::string_view code) {
  std::string all(code.substr(0, code.find('-')));
  std::transform(all.begin(), all.end(), all.begin(), lower);
  if (all == "iw") return "he";
  if (all == "nb") return "no";
  if (all == "fil") return "tl";
  return all;
}

}  // namespace

std::string language_name(const std::string& code) {
  for (const auto& [known, name] : names())
    if (same_language(known, code)) return name;
  return code;
}

bool same_language(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return lower(x) == lower(y); });
}

std::vector<Detected> detect_languages(const std::string& text, std::span<const std::string> known) {
  constexpr size_t kMostBytes = 64 << 10;  // more adds time, not certainty
  constexpr int kBestEffort = 0x4000;      // kCLDFlagBestEffort: an answer for short texts too
  CLD2::Language languages[3] = {CLD2::UNKNOWN_LANGUAGE, CLD2::UNKNOWN_LANGUAGE, CLD2::UNKNOWN_LANGUAGE};  // of text that it refuses
  int percents[3] = {0, 0, 0}, bytes = 0, valid = 0;
  double scores[3];
  bool reliable = false;
  const CLD2::CLDHints hints{nullptr, nullptr, CLD2::UNKNOWN_ENCODING, CLD2::UNKNOWN_LANGUAGE};
  size_t size = std::min(text.size(), kMostBytes);
  while (size > 0 && size < text.size() && (static_cast<unsigned char>(text[size]) & 0xC0) == 0x80) --size;
  CLD2::ExtDetectLanguageSummaryCheckUTF8(text.data(), static_cast<int>(size), true, &hints, kBestEffort, languages, percents, scores,
                                          nullptr, &bytes, &reliable, &valid);
  std::vector<Detected> found;
  for (int i = 0; i < 3; ++i) {
    if (languages[i] == CLD2::UNKNOWN_LANGUAGE || percents[i] <= 0) continue;
    const std::string code = primary(CLD2::LanguageCode(languages[i]));
    for (const std::string& k : known)
      if (primary(k) == code) found.push_back({k, static_cast<double>(percents[i])});
  }
  std::stable_sort(found.begin(), found.end(), [](const Detected& a, const Detected& b) { return a.confidence > b.confidence; });
  if (found.empty() && !known.empty()) found.push_back({known.front(), 0});
  return found;
}

}  // namespace starling
