// Moses's normalisation of punctuation, in its order: later rules see what earlier ones have made.
#include <array>

#include "moses/moses.h"
#include "moses/rewriting.h"

namespace starling::moses {
namespace {

using Rule = std::pair<std::u32string_view, std::u32string_view>;

constexpr std::array<Rule, 33> kFullWidth{{
    {U"，", U","},  {U"、", U","},  {U"”", U"\""}, {U"“", U"\""}, {U"∶", U":"},  {U"：", U":"}, {U"？", U"?"},
    {U"《", U"\""}, {U"》", U"\""}, {U"）", U")"}, {U"！", U"!"}, {U"（", U"("}, {U"；", U";"}, {U"」", U"\""},
    {U"「", U"\""}, {U"０", U"0"},  {U"１", U"1"}, {U"２", U"2"}, {U"３", U"3"}, {U"４", U"4"}, {U"５", U"5"},
    {U"６", U"6"},  {U"７", U"7"},  {U"８", U"8"}, {U"９", U"9"}, {U"～", U"~"}, {U"’", U"'"},  {U"…", U"..."},
    {U"━", U"-"},   {U"〈", U"<"},  {U"〉", U">"}, {U"【", U"["}, {U"】", U"]"},
}};

constexpr bool is_one(char32_t c, std::u32string_view of) { return of.find(c) != std::u32string_view::npos; }

// Where two letters stand, takes the second, or what stands for it, only.
template <class First, class Second>
void drop_between(Letters& text, const First& first, char32_t space, const Second& second, std::u32string_view by) {
  if (!has(text, space)) return;
  rewrite(text, [&](size_t i, Letters& out) -> size_t {
    if (i + 2 >= text.size() || !first(text[i].c) || text[i + 1].c != space || !second(text[i + 2].c)) return 0;
    out.push_back(text[i]);
    if (!by.empty()) append(out, by, &text[i + 1], 1);
    out.push_back(text[i + 2]);
    return 3;
  });
}

// "word", becomes "word,": English. A swap, of which both letters come from both places.
void marks_into_quotation(Letters& text) {
  rewrite(text, [&](size_t i, Letters& out) -> size_t {
    size_t end = i + 1;
    if (text[i].c != '"') return 0;
    while (end < text.size() && (text[end].c == ',' || text[end].c == '.')) ++end;
    if (end == i + 1) return 0;
    for (size_t k = i + 1; k < end; ++k) append(out, std::u32string(1, text[k].c), &text[i], end - i);
    append(out, U"\"", &text[i], end - i);
    return end - i;
  });
}

// "word." becomes "word". unless a tag follows: German, Spanish, French. The end of the text is like a tag to sacremoses; Perl sees the end
// of the line there.
void full_stops_out_of_quotation(Letters& text, bool perl) {
  rewrite(text, [&](size_t i, Letters& out) -> size_t {
    size_t quote = i;
    while (quote < text.size() && text[quote].c == '.') ++quote;
    if (quote == i) return 0;
    if (quote == text.size() || text[quote].c != '"') {  // nor does a match begin at a later one of these full stops
      out.insert(out.end(), text.begin() + static_cast<std::ptrdiff_t>(i), text.begin() + static_cast<std::ptrdiff_t>(quote));
      return quote - i;
    }
    size_t after = quote + 1;
    while (after < text.size() && is_unicode_space(text[after].c)) ++after;
    const bool ends = after == text.size(), tag = ends ? !perl : text[after].c == '<';
    if (tag && after == quote + 1) return 0;
    const size_t end = tag || ends ? after : after + 1;
    append(out, U"\"", &text[i], quote + 1 - i);
    for (size_t k = i; k < quote; ++k) append(out, U".", &text[i], quote + 1 - i);
    out.insert(out.end(), text.begin() + static_cast<std::ptrdiff_t>(quote) + 1, text.begin() + static_cast<std::ptrdiff_t>(end));
    return end - i;
  });
}

}  // namespace

void Tokenizer::replace_asian_marks(Letters& text) const {
  for (const char32_t stop : {U'。', U'．'})
    if (has(text, stop))
      rewrite(text, [&](size_t i, Letters& out) -> size_t {
        if (text[i].c != stop) return 0;
        size_t end = i + 1;
        while (end < text.size() && (options_.perl ? text[end].c == ' ' : is_unicode_space(text[end].c))) ++end;
        append(out, U". ", &text[i], end - i);
        return end - i;
      });
  for (const auto& [from, by] : kFullWidth) replace(text, from, by);
  replace(text, U"％", U"%");
  for (Letter& letter : text)
    if (is_control(letter.c)) letter.c = ' ';
}

void Tokenizer::normalise(Letters& text) const {
  const bool perl = options_.perl;
  const std::string& language = options_.language;
  const auto digit = [&](char32_t c) { return perl ? c >= '0' && c <= '9' : is_digit(c); };
  const auto any = [](std::u32string_view set) { return [set](char32_t c) { return is_one(c, set); }; };
  replace(text, U"\r", U"");
  replace(text, U"(", U" (");
  replace(text, U")", U") ");
  squeeze_spaces(text, false);
  drop_between(text, any(U")"), ' ', any(U".!:?;,"), U"");
  replace(text, U"( ", U"(");
  replace(text, U" )", U")");
  drop_between(text, digit, ' ', any(U"%"), U"");
  for (const auto& [from, by] : std::initializer_list<Rule>{{U" :", U":"},
                                                            {U" ;", U";"},
                                                            {U"`", U"'"},
                                                            {U"''", U" \" "},
                                                            {U"„", U"\""},
                                                            {U"“", U"\""},
                                                            {U"”", U"\""},
                                                            {U"–", U"-"},
                                                            {U"—", U" - "}})
    replace(text, from, by);
  squeeze_spaces(text, false);
  const auto latin = [](char32_t c) { return (c | 0x20) >= 'a' && (c | 0x20) <= 'z'; };
  replace(text, U"´", U"'");
  drop_between(text, latin, U'‘', latin, U"'");
  drop_between(text, latin, U'’', latin, U"'");
  replace(text, U"‘", U"'");
  replace(text, U"‚", U"'");
  replace(text, U"’", perl ? U"\"" : U"'");
  for (const auto& [from, by] : std::initializer_list<Rule>{{U"''", U"\""},
                                                            {U"…", U"..."},
                                                            {U"\u00A0«\u00A0", perl ? U" \"" : U"\""},
                                                            {U"«\u00A0", U"\""},
                                                            {U"«", U"\""},
                                                            {U"\u00A0»\u00A0", perl ? U"\" " : U"\""},
                                                            {U"\u00A0»", U"\""},
                                                            {U"»", U"\""},
                                                            {U"\u00A0%", U"%"},
                                                            {U"nº\u00A0", U"nº "},
                                                            {U"\u00A0:", U":"},
                                                            {U"\u00A0ºC", U" ºC"},
                                                            {U"\u00A0cm", U" cm"},
                                                            {U"\u00A0?", U"?"},
                                                            {U"\u00A0!", U"!"},
                                                            {U"\u00A0;", U";"},
                                                            {U",\u00A0", U", "}})
    replace(text, from, by);
  squeeze_spaces(text, false);
  const bool german = language == "de" || language == "es" || language == "fr", czech = language == "cs" || language == "cz";
  if (has(text, '"')) {
    if (language == "en") marks_into_quotation(text);
    if (german || (perl && language != "en" && !czech)) {
      replace(text, U",\"", U"\",");
      full_stops_out_of_quotation(text, perl);
    }
  }
  drop_between(text, digit, U'\u00A0', digit, german || czech ? U"," : U".");
  strip(text);
}

}  // namespace starling::moses
