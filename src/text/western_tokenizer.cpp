// The passes work on bytes: every character they look for is ASCII, and no byte of a longer UTF-8 sequence is.
#include "text/western_tokenizer.h"

namespace starling::detail {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_period_or_comma(char c) { return c == '.' || c == ','; }

// ASCII punctuation that always stands alone: all but apostrophe, comma, hyphen and period. (The space is in the set, too.)
bool is_separate(char c) {
  return (c >= ' ' && c <= '&') || (c >= '(' && c <= '+') || c == '/' || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
         (c >= '{' && c <= '~');
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

}  // namespace

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) text.replace(at, from.size(), to);
}

void decode_entities(std::string& text) {
  replace_all(text, "&quot;", "\"");
  replace_all(text, "&amp;", "&");
  replace_all(text, "&lt;", "<");
  replace_all(text, "&gt;", ">");
}

std::string split_western(std::string_view sentence, bool possessives) {
  std::string text = isolate_punctuation(sentence);
  if (possessives) replace_all(text, "'s ", " 's ");
  const auto second_alone = [](std::string& out, char a, char b) { out += {a, ' ', b, ' '}; };
  const auto first_alone = [](std::string& out, char a, char b) { out += {' ', a, ' ', b}; };
  text = rewrite_pairs(
      text, [](char a, char b) { return !is_digit(a) && is_period_or_comma(b); }, second_alone);
  text = rewrite_pairs(
      text, [](char a, char b) { return is_period_or_comma(a) && !is_digit(b); }, first_alone);
  return rewrite_pairs(
      text, [](char a, char b) { return is_digit(a) && b == '-'; }, second_alone);
}

}  // namespace starling::detail
