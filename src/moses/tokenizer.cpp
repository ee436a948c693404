#include <algorithm>
#include <array>

#include "base/utf8.h"
#include "moses/moses.h"
#include "moses/rewriting.h"

namespace starling::moses {
namespace {

constexpr std::string_view kNumericOnly = "#NUMERIC_ONLY#";

constexpr std::array<std::pair<char32_t, std::u32string_view>, 8> kEscapes{{{'&', U"&amp;"},
                                                                            {'|', U"&#124;"},
                                                                            {'<', U"&lt;"},
                                                                            {'>', U"&gt;"},
                                                                            {'\'', U"&apos;"},
                                                                            {'"', U"&quot;"},
                                                                            {'[', U"&#91;"},
                                                                            {']', U"&#93;"}}};

std::string utf8(const Letter* begin, const Letter* end) {
  std::string text;
  append_letters(text, begin, end);
  return text;
}

std::vector<std::string_view> words_of(std::string_view line) {
  constexpr std::string_view kSpaces = " \t\r";
  std::vector<std::string_view> words;
  for (size_t at = 0; (at = line.find_first_not_of(kSpaces, at)) != std::string_view::npos;) {
    const size_t end = std::min(line.find_first_of(kSpaces, at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

void escape(Letters& text) {
  rewrite(text, [&](size_t i, Letters& out) -> size_t {
    const auto found = std::find_if(kEscapes.begin(), kEscapes.end(), [&](const auto& e) { return e.first == text[i].c; });
    if (found == kEscapes.end()) return 0;
    append(out, found->second, &text[i], 1);
    return 1;
  });
}

// Puts spaces on both sides of a letter.
void set_apart(Letters& out, const Letter& letter) {
  append_space(out, letter);
  out.push_back(letter);
  append_space(out, letter);
}

// Several full stops stay together, behind a space, and before one if they do not end the text.
void join_full_stops(Letters& text) {
  rewrite(text, [&](size_t i, Letters& out) -> size_t {
    size_t end = i;
    while (end < text.size() && text[end].c == '.') ++end;
    if (end < i + 2) return 0;
    append_space(out, text[i]);
    for (size_t k = i; k < end; ++k) out.push_back({kDotOfSeveral, text[k].begin, text[k].end});
    if (end < text.size()) append_space(out, text[end]);
    return end - i;
  });
}

// Calls each(begin, end) for the runs of a text that are not spaces.
template <class Each>
void each_word(const Letters& text, const Each& each) {
  const Letter *at = text.data(), *const end = at + text.size();
  const auto space = [](const Letter& l) { return l.c != kDotOfSeveral && is_unicode_space(l.c); };
  while ((at = std::find_if_not(at, end, space)) != end) {
    const Letter* const stop = std::find_if(at, end, space);
    each(at, stop);
    at = stop;
  }
}

}  // namespace

Tokenizer::Tokenizer(Options options) : options_(std::move(options)), classes_(options_.language, options_.perl) {
  const auto add = [&](std::string_view word, bool before_number) {
    if (!word.empty()) (before_number ? before_numbers_ : abbreviations_).emplace_back(word);
  };
  const std::string own = options_.own_abbreviations ? abbreviations(options_.language) : "";
  for (const std::string_view word : words_of(own)) add(word[0] == '#' ? word.substr(1) : word, word[0] == '#');
  for (size_t begin = 0; begin < options_.abbreviations.size();) {
    const size_t end = std::min(options_.abbreviations.find('\n', begin), options_.abbreviations.size());
    const std::vector<std::string_view> parts = words_of(std::string_view(options_.abbreviations).substr(begin, end - begin));
    const bool before_number = parts.size() == 2 && parts[1] == kNumericOnly;
    if (before_number || (parts.size() == 1 && !parts[0].starts_with('#'))) add(parts[0], before_number);  // others are no single words
    begin = end + 1;
  }
  for (auto* list : {&abbreviations_, &before_numbers_}) std::sort(list->begin(), list->end());
}

void Tokenizer::split_apostrophes(Letters& text) const {
  if (!has(text, '\'')) return;
  const std::string& language = options_.language;
  const auto alpha = [&](char32_t c) { return classes_.alphabetic(c); };
  const auto other = [&](char32_t c) { return !classes_.alphabetic(c); };
  // Sets an apostrophe apart from its neighbours, on the sides that are said.
  const auto split = [&](const auto& first, const auto& second, bool before, bool after) {
    rewrite(text, [&](size_t i, Letters& out) -> size_t {
      if (i + 2 >= text.size() || text[i + 1].c != '\'' || !first(text[i].c) || !second(text[i + 2].c)) return 0;
      out.push_back(text[i]);
      if (before) append_space(out, text[i + 1]);
      out.push_back(text[i + 1]);
      if (after) append_space(out, text[i + 2]);
      out.push_back(text[i + 2]);
      return 3;
    });
  };
  const bool french = language == "fr" || language == "it" || (options_.perl && (language == "ga" || language == "ca"));
  const bool glottal = options_.perl && (language == "so" || language == "tdt");
  if (language == "en") {
    split(other, other, true, true);
    split([&](char32_t c) { return other(c) && !classes_.number(c); }, alpha, true, true);
    split(alpha, other, true, true);
    split(alpha, alpha, true, false);
    split([&](char32_t c) { return classes_.number(c); }, [](char32_t c) { return c == 's'; }, true, false);
  } else if (french || glottal) {
    split(other, other, true, true);
    split(other, alpha, true, true);
    split(alpha, other, true, true);
    if (french) split(alpha, alpha, false, true);
  } else {
    replace(text, U"'", U" ' ");
  }
}

// Whether the full stop at the end of a word, begin to end without it, belongs to the word.
bool Tokenizer::keeps_full_stop(const Letter* begin, const Letter* end, const Letter* next, bool last) const {
  if (last && options_.perl) return false;
  const bool dotted = std::any_of(begin, end, [](const Letter& l) { return l.c == '.'; });
  if (dotted && std::any_of(begin, end, [&](const Letter& l) { return classes_.alphabetic(l.c); })) return true;
  const std::string word = utf8(begin, end);
  const bool before_number = std::binary_search(before_numbers_.begin(), before_numbers_.end(), word);
  if (!before_number && std::binary_search(abbreviations_.begin(), abbreviations_.end(), word)) return true;
  if (last) return false;
  return classes_.small(next->c) || (before_number && next->c >= '0' && next->c <= '9');
}

void Tokenizer::split_full_stops(Letters& text) const {
  if (!has(text, '.')) return;
  std::vector<std::pair<const Letter*, const Letter*>> words;
  each_word(text, [&](const Letter* begin, const Letter* end) { words.emplace_back(begin, end); });
  Letters out;
  for (size_t i = 0; i < words.size(); ++i) {
    const auto [begin, end] = words[i];
    const bool last = i + 1 == words.size();
    const bool splits = end - begin > 1 && end[-1].c == '.' && !keeps_full_stop(begin, end - 1, last ? nullptr : words[i + 1].first, last);
    out.insert(out.end(), begin, end - (splits ? 1 : 0));
    if (splits) append_space(out, end[-1]), out.push_back(end[-1]);
    append_space(out, Letter{' ', end[-1].end, end[-1].end});
  }
  text = std::move(out);
}

std::vector<Token> Tokenizer::tokens(std::string_view line) const {
  Letters text = letters_of(line);
  const std::string& language = options_.language;
  if (options_.words) {
    if (options_.plain_asian_marks) replace_asian_marks(text);
    if (options_.normalise_marks) normalise(text);
    squeeze_spaces(text, true);
    std::erase_if(text, [](const Letter& l) { return l.c < ' '; });
    strip(text);
    // Marks inside words: the colon of Finnish and Swedish, the middle dot of Catalan, the apostrophe of Tetun.
    const char32_t inner = !options_.perl                         ? 0
                           : language == "fi" || language == "sv" ? U':'
                           : language == "ca"                     ? U'·'
                           : language == "tdt"                    ? U'\''
                                                                  : 0;
    rewrite(text, [&](size_t i, Letters& out) -> size_t {
      const char32_t c = text[i].c;
      const bool stays = c == ' ' || c == '.' || c == '\'' || c == '`' || c == ',' || c == '-' || c == inner || classes_.alphanumeric(c);
      if (!stays) set_apart(out, text[i]);
      return !stays;
    });
    if (inner != 0)
      rewrite(text, [&](size_t i, Letters& out) -> size_t {
        if (text[i].c != inner || (i + 1 < text.size() && classes_.small(text[i + 1].c))) return 0;
        set_apart(out, text[i]);
        return 1;
      });
    if (options_.split_hyphens)
      rewrite(text, [&](size_t i, Letters& out) -> size_t {
        if (i + 2 >= text.size() || text[i + 1].c != '-') return 0;
        if (!classes_.alphanumeric(text[i].c) || !classes_.alphanumeric(text[i + 2].c)) return 0;
        out.push_back(text[i]);
        append_space(out, text[i + 1]);
        append(out, U"@-@", &text[i + 1], 1);
        append_space(out, text[i + 2]);
        return 2;
      });
    join_full_stops(text);
    if (has(text, ',')) {
      const auto number = [&](size_t i) { return classes_.number(text[i].c); };
      const auto comma = [&](size_t i) { return i < text.size() && text[i].c == ','; };
      rewrite(text, [&](size_t i, Letters& out) -> size_t {
        if (!comma(i + 1) || number(i)) return 0;
        out.push_back(text[i]);
        set_apart(out, text[i + 1]);
        return 2;
      });
      rewrite(text, [&](size_t i, Letters& out) -> size_t {
        if (!comma(i) || i + 1 == text.size() || number(i + 1)) return 0;
        set_apart(out, text[i]);
        out.push_back(text[i + 1]);
        return 2;
      });
      if (text.size() > 1 && comma(text.size() - 1) && number(text.size() - 2)) {
        const Letter mark = text.back();
        text.pop_back();
        set_apart(text, mark);
      }
    }
    split_apostrophes(text);
    split_full_stops(text);
    strip(text);
    if (text.size() > 1 && text.back().c == '\'' && text[text.size() - 2].c == '.') {  // at the end, after a word that keeps neither
      const Letter stop = text[text.size() - 2], mark = text.back();
      text.resize(text.size() - 2);
      set_apart(text, stop);
      text.push_back(mark);
    }
    escape(text);
  }
  std::vector<Token> tokens;
  each_word(text, [&](const Letter* begin, const Letter* end) { tokens.push_back({utf8(begin, end), Letters(begin, end)}); });
  return tokens;
}

}  // namespace starling::moses
