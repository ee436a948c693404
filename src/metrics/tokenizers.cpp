// BLEU's tokenizers and the table of names. 13a is the tokenizer of the script mteval-v13a, intl that of mteval-v14. The pieces of a
// SentencePiece model (spBLEU; Goyal et al., 2022) serve as words in every language; the models that sacreBLEU calls flores101 and
// flores200 are not part of Starling, so the user names the file.
#include "metrics/tokenizers.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/error.h"
#include "base/files.h"
#include "base/sha256.h"
#include "metrics/mecab.h"
#include "metrics/western_tokenizer.h"
#include "text/unicode.h"
#include "text/vocabulary.h"

namespace starling {

namespace {

using detail::decode_entities;
using detail::replace_all;
using detail::set_apart;
using detail::split_pairs;
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

// The code points that tokenizer zh separates with spaces. The range 2001 to 2A6D contains dashes, quotes and arrows but no Chinese:
// sacreBLEU writes CJK extension B with a four-digit escape and thereby gets this range instead, and scores must follow it. Extension B
// (beyond FFFF) is therefore not in the list.
constexpr CodePoints kChinese[] = {
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

// Unlike 13a, zh neither decodes entities nor pads the line, so a period at the very beginning stays with the digit after it.
std::string tokenize_chinese(std::string_view sentence) {
  const std::u32string text = decode_utf8(sentence);
  const auto begin = std::find_if_not(text.begin(), text.end(), is_unicode_space);
  return split_western(set_apart({begin, text.end()}, [](char32_t c) { return entry_of(kChinese, c) != nullptr; }));
}

// Punctuation stands alone unless there are numbers (of any script) on both sides, or a number before it at the end; symbols always do.
// Entities are left as they are.
std::string tokenize_international(std::string_view sentence) {
  const auto number = [](char32_t c) { return character_class(c) == CharacterClass::number; };
  const auto punctuation = [](char32_t c) { return character_class(c) == CharacterClass::punctuation; };
  std::u32string text = decode_utf8(sentence);
  text = split_pairs(text, detail::Alone::second, [&](char32_t a, char32_t b) { return !number(a) && punctuation(b); });
  text = split_pairs(text, detail::Alone::first, [&](char32_t a, char32_t b) { return punctuation(a) && !number(b); });
  return set_apart(text, [](char32_t c) { return character_class(c) == CharacterClass::symbol; });
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

// Returns "flores101" or "flores200" for a file with sacreBLEU's file name for that model and its number of pieces; otherwise "spm-" and
// the first eight digits of the file's SHA-256.
std::string signature_of(const std::string& path, const Vocabulary& model) {
  constexpr int64_t kFloresPieces = 256000;
  if (model.size() == kFloresPieces && file_name(path) == "sacrebleu_tokenizer_spm.model") return "flores101";
  if (model.size() == kFloresPieces && file_name(path) == "flores200sacrebleuspm") return "flores200";
  return "spm-" + sha256_hex(model.bytes()).substr(0, 8);
}

BleuTokenizer sentencepiece_tokenizer(const std::string& path) {
  const auto model = std::make_shared<const Vocabulary>(Vocabulary::load(path));
  return {signature_of(path, *model),
          [model](std::string_view sentence) { return fmt::format("{}", fmt::join(model->pieces(sentence), " ")); }};
}

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
