// Named and numeric entities. The names are those of HTML 4, which editors and programs write; other names stay as they are.
#include <unordered_map>

#include "base/ascii.h"
#include "document/html.h"
#include "text/unicode.h"

namespace starling {
namespace {

struct Named {
  std::string_view name;
  char32_t value;
};

// Consecutive code points by name, "" where a name is missing.
struct Run {
  char32_t first;
  std::string_view names;  // separated by spaces; - for none
};

constexpr Run kRuns[] = {
    {0xA0,
     "nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn sup2 sup3 acute micro para middot cedil "
     "sup1 "
     "ordm raquo frac14 frac12 frac34 iquest Agrave Aacute Acirc Atilde Auml Aring AElig Ccedil Egrave Eacute Ecirc Euml Igrave Iacute "
     "Icirc Iuml "
     "ETH Ntilde Ograve Oacute Ocirc Otilde Ouml times Oslash Ugrave Uacute Ucirc Uuml Yacute THORN szlig agrave aacute acirc atilde auml "
     "aring "
     "aelig ccedil egrave eacute ecirc euml igrave iacute icirc iuml eth ntilde ograve oacute ocirc otilde ouml divide oslash ugrave "
     "uacute ucirc "
     "uuml yacute thorn yuml"},
    {0x391,
     "Alpha Beta Gamma Delta Epsilon Zeta Eta Theta Iota Kappa Lambda Mu Nu Xi Omicron Pi Rho - Sigma Tau Upsilon Phi Chi Psi Omega"},
    {0x3B1,
     "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigmaf sigma tau upsilon phi chi psi omega"},
    {0x2018, "lsquo rsquo sbquo - ldquo rdquo bdquo - dagger Dagger bull - - - hellip"},
};

constexpr Named kNames[] = {
    {"amp", '&'},       {"lt", '<'},         {"gt", '>'},       {"quot", '"'},     {"apos", '\''},     {"OElig", 0x152},
    {"oelig", 0x153},   {"Scaron", 0x160},   {"scaron", 0x161}, {"Yuml", 0x178},   {"fnof", 0x192},    {"circ", 0x2C6},
    {"tilde", 0x2DC},   {"thetasym", 0x3D1}, {"upsih", 0x3D2},  {"piv", 0x3D6},    {"ensp", 0x2002},   {"emsp", 0x2003},
    {"thinsp", 0x2009}, {"zwnj", 0x200C},    {"zwj", 0x200D},   {"lrm", 0x200E},   {"rlm", 0x200F},    {"ndash", 0x2013},
    {"mdash", 0x2014},  {"permil", 0x2030},  {"prime", 0x2032}, {"Prime", 0x2033}, {"lsaquo", 0x2039}, {"rsaquo", 0x203A},
    {"oline", 0x203E},  {"frasl", 0x2044},   {"euro", 0x20AC},  {"image", 0x2111}, {"weierp", 0x2118}, {"real", 0x211C},
    {"trade", 0x2122},  {"alefsym", 0x2135}, {"larr", 0x2190},  {"uarr", 0x2191},  {"rarr", 0x2192},   {"darr", 0x2193},
    {"harr", 0x2194},   {"crarr", 0x21B5},   {"lArr", 0x21D0},  {"uArr", 0x21D1},  {"rArr", 0x21D2},   {"dArr", 0x21D3},
    {"hArr", 0x21D4},   {"forall", 0x2200},  {"part", 0x2202},  {"exist", 0x2203}, {"empty", 0x2205},  {"nabla", 0x2207},
    {"isin", 0x2208},   {"notin", 0x2209},   {"ni", 0x220B},    {"prod", 0x220F},  {"sum", 0x2211},    {"minus", 0x2212},
    {"lowast", 0x2217}, {"radic", 0x221A},   {"prop", 0x221D},  {"infin", 0x221E}, {"ang", 0x2220},    {"and", 0x2227},
    {"or", 0x2228},     {"cap", 0x2229},     {"cup", 0x222A},   {"int", 0x222B},   {"there4", 0x2234}, {"sim", 0x223C},
    {"cong", 0x2245},   {"asymp", 0x2248},   {"ne", 0x2260},    {"equiv", 0x2261}, {"le", 0x2264},     {"ge", 0x2265},
    {"sub", 0x2282},    {"sup", 0x2283},     {"nsub", 0x2284},  {"sube", 0x2286},  {"supe", 0x2287},   {"oplus", 0x2295},
    {"otimes", 0x2297}, {"perp", 0x22A5},    {"sdot", 0x22C5},  {"lceil", 0x2308}, {"rceil", 0x2309},  {"lfloor", 0x230A},
    {"rfloor", 0x230B}, {"lang", 0x2329},    {"rang", 0x232A},  {"loz", 0x25CA},   {"spades", 0x2660}, {"clubs", 0x2663},
    {"hearts", 0x2665}, {"diams", 0x2666},
};

std::unordered_map<std::string_view, char32_t> all_names() {
  std::unordered_map<std::string_view, char32_t> all;
  for (const Named& n : kNames) all.emplace(n.name, n.value);
  for (const Run& run : kRuns) {
    char32_t value = run.first;
    for (const std::string_view name : split_on_space(run.names)) all.emplace(name, value++);
  }
  all.erase("-");
  return all;
}

// Returns 0 if the name is unknown.
char32_t named(std::string_view name) {
  static const std::unordered_map<std::string_view, char32_t> all = all_names();
  const auto found = all.find(name);
  return found == all.end() ? 0 : found->second;
}

// Returns the code point of "#65" or "#x41"; 0 if it is malformed or not a character.
char32_t numbered(std::string_view digits) {
  const bool hexadecimal = digits.size() > 1 && (digits[0] == 'x' || digits[0] == 'X');
  if (hexadecimal) digits.remove_prefix(1);
  char32_t value = 0;
  if (digits.empty() || digits.size() > 8) return 0;
  for (const char c : digits) {
    const int digit = c >= '0' && c <= '9'                  ? c - '0'
                      : hexadecimal && c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : hexadecimal && c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                            : -1;
    if (digit < 0) return 0;
    value = value * (hexadecimal ? 16 : 10) + static_cast<char32_t>(digit);
    if (value > 0x10FFFF) return 0;
  }
  const bool control = value < 0x20 && value != '\t' && value != '\n' && value != '\r';
  return control || (value >= 0xD800 && value <= 0xDFFF) ? 0 : value;
}

constexpr size_t kLongestEntity = 32;

}  // namespace

HtmlEntity html_entity(std::string_view text) {
  const size_t end = text.substr(0, kLongestEntity + 2).find(';');
  if (end == std::string_view::npos || end < 2) return {};
  const std::string_view name = text.substr(1, end - 1);
  for (size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    const bool fits = is_ascii_letter_or_digit(c) || (i == 0 && c == '#');
    if (!fits) return {};
  }
  const char32_t value = name.front() == '#' ? numbered(name.substr(1)) : named(name);
  HtmlEntity entity{"", end + 1};
  if (value != 0) append_utf8(entity.text, value);
  return entity;
}

}  // namespace starling
