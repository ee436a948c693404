// BLEU's tokenizers. 13a is the one of the script mteval-v13a, a chain of rewriting passes; the order of the passes and the
// fact that a pass never looks again at what it has consumed are part of its definition, so each pass is one function here.
// The passes work on bytes: every character they look for is ASCII, and no byte of a longer UTF-8 sequence is.
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "text/metrics.h"
#include "text/unicode.h"

namespace starling {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_period_or_comma(char c) { return c == '.' || c == ','; }

// ASCII punctuation that always stands alone: all but apostrophe, comma, hyphen and period. (The space is in the set, too.)
bool is_separate(char c) {
  return (c >= ' ' && c <= '&') || (c >= '(' && c <= '+') || c == '/' || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
         (c >= '{' && c <= '~');
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) text.replace(at, from.size(), to);
}

std::string isolate_punctuation(std::string_view in) {
  std::string out;
  out.reserve(2 * in.size());
  for (const char c : in) {
    if (is_separate(c)) {
      out += {' ', c, ' '};
    } else {
      out += c;
    }
  }
  return out;
}

// A pass over pairs of neighbours: a pair that matches is rewritten and consumed, otherwise one byte is copied.
template <typename Matches, typename Rewrite>
std::string rewrite_pairs(std::string_view in, Matches matches, Rewrite rewrite) {
  std::string out;
  out.reserve(in.size() + in.size() / 2);
  std::size_t i = 0;
  while (i < in.size()) {
    if (i + 1 < in.size() && matches(in[i], in[i + 1])) {
      rewrite(out, in[i], in[i + 1]);
      i += 2;
    } else {
      out += in[i++];
    }
  }
  return out;
}

// What 13a and zh share. Periods and commas stay inside numbers only; a hyphen leaves the digit before it.
std::string split_western(std::string_view sentence) {
  std::string text = isolate_punctuation(sentence);
  const auto second_alone = [](std::string& out, char a, char b) { out += {a, ' ', b, ' '}; };
  const auto first_alone = [](std::string& out, char a, char b) { out += {' ', a, ' ', b}; };
  text = rewrite_pairs(
      text, [](char a, char b) { return !is_digit(a) && is_period_or_comma(b); }, second_alone);
  text = rewrite_pairs(
      text, [](char a, char b) { return is_period_or_comma(a) && !is_digit(b); }, first_alone);
  return rewrite_pairs(
      text, [](char a, char b) { return is_digit(a) && b == '-'; }, second_alone);
}

std::string tokenize_13a(std::string_view sentence) {
  std::string text(sentence);
  replace_all(text, "<skipped>", "");
  replace_all(text, "-\n", "");
  replace_all(text, "\n", " ");
  // One after the other, so "&amp;lt;" ends as "<".
  replace_all(text, "&quot;", "\"");
  replace_all(text, "&amp;", "&");
  replace_all(text, "&lt;", "<");
  replace_all(text, "&gt;", ">");
  return split_western(" " + text + " ");
}

std::string tokenize_characters(std::string_view sentence) {
  std::string out;
  out.reserve(2 * sentence.size());
  for (std::size_t i = 0; i < sentence.size();) {
    const int length = std::max(1, decode_utf8_at(sentence.substr(i)).length);
    out.append(sentence, i, length);
    out += ' ';
    i += length;
  }
  return out;
}

struct Range {
  char32_t first, last;
};

// The code points that tokenizer zh sets apart. 2001 to 2A6D holds dashes, quotes, arrows and no Chinese: sacreBLEU writes CJK
// extension B with a four-digit escape and so means these in its place, and scores must follow what it does. Extension B
// (beyond FFFF) therefore is not in the list.
constexpr Range kChineseRanges[] = {
    {0x2001, 0x2A6D},  // see above
    {0x2E80, 0x2EFF},  // radicals
    {0x2F00, 0x2FDF},  // Kangxi radicals
    {0x2FF0, 0x303F},  // description characters, punctuation
    {0x3100, 0x312F},  // Bopomofo
    {0x31A0, 0x31BF},  // Bopomofo extended
    {0x31C0, 0x31EF},  // strokes
    {0x3200, 0x33FF},  // enclosed letters, compatibility
    {0x3400, 0x4DB5},  // CJK extension A
    {0x4E00, 0x9FBB},  // CJK unified ideographs
    {0xF900, 0xFA2D},  // compatibility ideographs
    {0xFA30, 0xFA6A},  //
    {0xFA70, 0xFAD9},  //
    {0xFE10, 0xFE1F},  // vertical forms
    {0xFE30, 0xFE4F},  // compatibility forms
    {0xFF00, 0xFFEF},  // full-width and half-width forms
};

bool is_chinese(char32_t c) {
  for (const Range& range : kChineseRanges) {
    if (c >= range.first && c <= range.last) return true;
  }
  return false;
}

// Unlike 13a, zh neither decodes entities nor pads the line, so a period at the very beginning stays with the digit after it.
std::string tokenize_chinese(std::string_view sentence) {
  std::string out;
  std::size_t begin = 0;
  while (begin < sentence.size()) {
    const auto [value, length] = decode_utf8_at(sentence.substr(begin));
    if (length == 0 || !is_unicode_space(value)) break;
    begin += length;
  }
  const std::string_view text = without_trailing_space(sentence.substr(begin));
  for (std::size_t i = 0; i < text.size();) {
    const auto [value, bytes] = decode_utf8_at(text.substr(i));
    const int length = std::max(1, bytes);
    const bool apart = is_chinese(value);
    if (apart) out += ' ';
    out.append(text, i, length);
    if (apart) out += ' ';
    i += length;
  }
  return split_western(out);
}

}  // namespace

BleuTokenizer bleu_tokenizer_from(std::string_view name) {
  for (const auto tokenizer : {BleuTokenizer::mteval_13a, BleuTokenizer::none, BleuTokenizer::character, BleuTokenizer::chinese}) {
    if (name == name_of(tokenizer)) return tokenizer;
  }
  throw ConfigError(fmt::format("unknown BLEU tokenizer '{}'; choose from 13a, none, char, zh", name));
}

std::string_view name_of(BleuTokenizer tokenizer) {
  switch (tokenizer) {
    case BleuTokenizer::mteval_13a:
      return "13a";
    case BleuTokenizer::none:
      return "none";
    case BleuTokenizer::character:
      return "char";
    case BleuTokenizer::chinese:
      return "zh";
  }
  CHECK(false, "tokenizer {}", static_cast<int>(tokenizer));
}

std::string tokenize_for_bleu(std::string_view sentence, BleuTokenizer tokenizer) {
  const std::string_view text = without_trailing_space(sentence);
  switch (tokenizer) {
    case BleuTokenizer::mteval_13a:
      return tokenize_13a(text);
    case BleuTokenizer::none:
      return std::string(text);
    case BleuTokenizer::character:
      return tokenize_characters(text);
    case BleuTokenizer::chinese:
      return tokenize_chinese(text);
  }
  CHECK(false, "tokenizer {}", static_cast<int>(tokenizer));
}

}  // namespace starling
