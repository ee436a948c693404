// Letters and their scripts, from the blocks of Unicode that hold letters of one script.
#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/utf8.h"
#include "text/language_match.h"
#include "text/script.h"
#include "text/unicode.h"

namespace starling {
namespace {

struct ScriptBlock {
  char32_t first, last;
  std::string_view script;
};
constexpr ScriptBlock kScriptBlocks[] = {
    {0x0041, 0x024F, "Latn"}, {0x0250, 0x02AF, "Latn"}, {0x02B0, 0x02B8, "Latn"}, {0x0370, 0x0373, "Grek"}, {0x0376, 0x03E1, "Grek"},
    {0x0400, 0x052F, "Cyrl"}, {0x0531, 0x058F, "Armn"}, {0x0591, 0x05F4, "Hebr"}, {0x0600, 0x06FF, "Arab"}, {0x0700, 0x074F, "Syrc"},
    {0x0750, 0x077F, "Arab"}, {0x0780, 0x07B1, "Thaa"}, {0x08A0, 0x08FF, "Arab"}, {0x0900, 0x097F, "Deva"}, {0x0980, 0x09FE, "Beng"},
    {0x0A01, 0x0A76, "Guru"}, {0x0A81, 0x0AFF, "Gujr"}, {0x0B01, 0x0B77, "Orya"}, {0x0B82, 0x0BFA, "Taml"}, {0x0C00, 0x0C7F, "Telu"},
    {0x0C80, 0x0CF3, "Knda"}, {0x0D00, 0x0D7F, "Mlym"}, {0x0D81, 0x0DF4, "Sinh"}, {0x0E01, 0x0E5B, "Thai"}, {0x0E81, 0x0EDF, "Laoo"},
    {0x0F00, 0x0FDA, "Tibt"}, {0x1000, 0x109F, "Mymr"}, {0x10A0, 0x10FF, "Geor"}, {0x1100, 0x11FF, "Hang"}, {0x1200, 0x139F, "Ethi"},
    {0x1780, 0x17F9, "Khmr"}, {0x1800, 0x18AA, "Mong"}, {0x1C80, 0x1C88, "Cyrl"}, {0x1C90, 0x1CBF, "Geor"}, {0x1D00, 0x1D25, "Latn"},
    {0x1D6B, 0x1D77, "Latn"}, {0x1D79, 0x1DBE, "Latn"}, {0x1E00, 0x1EFF, "Latn"}, {0x1F00, 0x1FFE, "Grek"}, {0x2C60, 0x2C7F, "Latn"},
    {0x2D00, 0x2D2D, "Geor"}, {0x2D80, 0x2DDE, "Ethi"}, {0x2DE0, 0x2DFF, "Cyrl"}, {0x3005, 0x3007, "Hani"}, {0x3041, 0x309F, "Hira"},
    {0x30A1, 0x30FF, "Kana"}, {0x3131, 0x318E, "Hang"}, {0x31F0, 0x31FF, "Kana"}, {0x3400, 0x4DBF, "Hani"}, {0x4E00, 0x9FFF, "Hani"},
    {0xA640, 0xA69F, "Cyrl"}, {0xA722, 0xA7FF, "Latn"}, {0xA960, 0xA97C, "Hang"}, {0xAB30, 0xAB64, "Latn"}, {0xAC00, 0xD7FB, "Hang"},
    {0xF900, 0xFAD9, "Hani"}, {0xFB00, 0xFB06, "Latn"}, {0xFB13, 0xFB17, "Armn"}, {0xFB1D, 0xFB4F, "Hebr"}, {0xFB50, 0xFDFF, "Arab"},
    {0xFE70, 0xFEFC, "Arab"}, {0xFF21, 0xFF5A, "Latn"}, {0xFF66, 0xFF9F, "Kana"}, {0xFFA0, 0xFFDC, "Hang"}, {0x20000, 0x323AF, "Hani"}};

// Languages by script; the others that have a code are written in Latin letters.
struct ScriptLanguages {
  std::string_view script, languages;
};
constexpr ScriptLanguages kScriptLanguages[] = {
    {"Cyrl", "ab av ba be bg bua ce chm cv kk kv ky mk mn mhr mrj myv os ru sah sr tg tt tyv udm uk"},
    {"Arab", "ar arz ary ckb fa ks ps sd ug ur"},
    {"Deva", "awa bho hi kok mai mr ne sa"},
    {"Beng", "as bn"},
    {"Hebr", "he yi"},
    {"Grek", "el"},
    {"Armn", "hy"},
    {"Geor", "ka"},
    {"Ethi", "am ti"},
    {"Guru", "pa"},
    {"Gujr", "gu"},
    {"Orya", "or"},
    {"Taml", "ta"},
    {"Telu", "te"},
    {"Knda", "kn"},
    {"Mlym", "ml"},
    {"Sinh", "si"},
    {"Thai", "th"},
    {"Laoo", "lo"},
    {"Tibt", "bo dz"},
    {"Mymr", "my shn"},
    {"Khmr", "km"},
    {"Thaa", "dv"},
    {"Jpan", "ja"},
    {"Hani", "zh yue lzh wuu"},
    {"Kore", "ko"}};

// Languages that are written in two, unless a code says in which.
constexpr std::pair<std::string_view, std::array<std::string_view, 2>> kTwoScripts[] = {{"sr", {"Cyrl", "Latn"}}, {"uz", {"Latn", "Cyrl"}},
                                                                                        {"kk", {"Cyrl", "Latn"}}, {"az", {"Latn", "Cyrl"}},
                                                                                        {"ku", {"Latn", "Arab"}}, {"pa", {"Guru", "Arab"}}};

}  // namespace

bool is_alphabetic(char32_t c) {
  if (c < 0x80) return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  const utf8proc_property_t& p = *utf8proc_get_property(static_cast<utf8proc_int32_t>(c));
  switch (p.category) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_NL:
      return true;
    case UTF8PROC_CATEGORY_MC:
      return p.combining_class == 0;
    case UTF8PROC_CATEGORY_MN:  // vowels count, but not signs that silence them or stand above any letter
      return (p.combining_class == 0 && !p.ignorable) || (p.combining_class >= 10 && p.combining_class <= 36) ||
             (p.combining_class >= 84 && p.combining_class <= 132);
    case UTF8PROC_CATEGORY_SO:
      return c >= 0x24B6 && c <= 0x24E9;  // letters in circles
    default:
      return false;
  }
}

std::string_view letter_script(char32_t c) {
  const ScriptBlock* const block = entry_of(kScriptBlocks, c);
  return block != nullptr && is_alphabetic(c) ? block->script : std::string_view();
}

std::vector<std::string_view> scripts_of_language(std::string_view code) {
  const std::string own = language_script(code), comparable = comparable_language(code);
  const std::string_view main = std::string_view(comparable).substr(0, comparable.find('-'));
  std::string_view script = main.size() < 2 ? std::string_view() : "Latn";
  if (!own.empty()) script = own;
  for (const ScriptLanguages& s : kScriptLanguages)
    if (const auto all = split_on_space(s.languages); own.empty() && std::find(all.begin(), all.end(), main) != all.end())
      script = s.script;
  for (const auto& [language, both] : kTwoScripts)
    if (code == language) return {both.begin(), both.end()};
  if (script == "Jpan") return {"Hira", "Kana", "Hani"};
  if (script == "Kore") return {"Hang", "Hani"};
  if (script == "Hans" || script == "Hant") return {"Hani"};
  for (const ScriptBlock& block : kScriptBlocks)
    if (block.script == script) return {block.script};  // which outlives this
  return {};
}

}  // namespace starling
