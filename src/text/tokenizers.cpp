// BLEU's tokenizers that need nothing but the text, and the table of names. 13a is the one of the script mteval-v13a, intl that of
// mteval-v14.
#include "text/tokenizers.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "text/mecab.h"
#include "text/sentencepiece_tokenizer.h"
#include "text/unicode.h"
#include "text/western_tokenizer.h"

namespace starling {

namespace {

using detail::decode_entities;
using detail::replace_all;
using detail::split_western;

std::string tokenize_13a(std::string_view sentence) {
  std::string text(sentence);
  replace_all(text, "<skipped>", "");
  replace_all(text, "-\n", "");
  replace_all(text, "\n", " ");
  decode_entities(text);
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

// Passes over pairs of neighbours: a pair that matches is rewritten and consumed, otherwise one character is copied.
template <typename Matches, typename Rewrite>
std::u32string rewrite_pairs(std::u32string_view in, Matches matches, Rewrite rewrite) {
  std::u32string out;
  out.reserve(in.size() + in.size() / 2);
  for (std::size_t i = 0; i < in.size();) {
    if (i + 1 < in.size() && matches(character_class(in[i]), character_class(in[i + 1]))) {
      rewrite(out, in[i], in[i + 1]);
      i += 2;
    } else {
      out += in[i++];
    }
  }
  return out;
}

// Punctuation stands alone unless there are numbers (of any script) on both sides, or a number before it at the end; symbols always do.
// Entities are left as they are.
std::string tokenize_international(std::string_view sentence) {
  constexpr CharacterClass kNumber = CharacterClass::number, kPunctuation = CharacterClass::punctuation;
  std::u32string text = rewrite_pairs(
      decode_utf8(sentence), [](CharacterClass a, CharacterClass b) { return a != kNumber && b == kPunctuation; },
      [](std::u32string& out, char32_t a, char32_t b) {
        out += {a, U' ', b, U' '};
      });
  text = rewrite_pairs(
      text, [](CharacterClass a, CharacterClass b) { return a == kPunctuation && b != kNumber; },
      [](std::u32string& out, char32_t a, char32_t b) {
        out += {U' ', a, U' ', b};
      });
  std::string out;
  out.reserve(2 * sentence.size());
  for (const char32_t c : text) {
    const bool apart = character_class(c) == CharacterClass::symbol;
    if (apart) out += ' ';
    append_utf8(out, c);
    if (apart) out += ' ';
  }
  return out;
}

struct Named {
  const char* name;
  std::string (*split)(std::string_view);
};
constexpr Named kPlain[] = {{"13a", tokenize_13a},
                            {"intl", tokenize_international},
                            {"char", tokenize_characters},
                            {"zh", tokenize_chinese},
                            {"none", [](std::string_view sentence) { return std::string(sentence); }}};

constexpr std::string_view kSentencePiece = "spm:";

}  // namespace

BleuTokenizer::BleuTokenizer() : BleuTokenizer("13a", tokenize_13a) {}

BleuTokenizer::BleuTokenizer(std::string name, Function split) : name_(std::move(name)), split_(std::move(split)) {}

std::string BleuTokenizer::operator()(std::string_view sentence) const { return split_(without_trailing_space(sentence)); }

BleuTokenizer bleu_tokenizer_from(std::string_view name) {
  for (const Named& plain : kPlain) {
    if (name == plain.name) return {plain.name, plain.split};
  }
  if (name == "ja-mecab") return mecab_tokenizer();
  if (name.starts_with(kSentencePiece)) return sentencepiece_tokenizer(std::string(name.substr(kSentencePiece.size())));
  throw ConfigError(fmt::format("unknown tokenizer '{}'; choose from 13a, intl, char, zh, ja-mecab, none, spm:FILE", name));
}

void check_tokenizer_name(std::string_view name, std::string_view option) {
  const bool plain = std::any_of(std::begin(kPlain), std::end(kPlain), [&](const Named& n) { return name == n.name; });
  const bool model = name.starts_with(kSentencePiece) && name.size() > kSentencePiece.size();
  if (name == "auto" || name == "ja-mecab" || plain || model) return;
  throw ConfigError(
      fmt::format("{} is '{}'; choose auto, 13a, intl, char, zh, ja-mecab, none, or spm:FILE with a SentencePiece model", option, name));
}

}  // namespace starling
