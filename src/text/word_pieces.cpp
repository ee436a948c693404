#include "text/word_pieces.h"

#include <algorithm>

#include "base/utf8.h"
#include "text/vocabulary_fields.h"

namespace starling::moses {
namespace {

using vocabulary_format::append_field;
using vocabulary_format::Field;
using vocabulary_format::Fields;

constexpr std::string_view kGoesOn = "@@";
constexpr uint32_t kFlags = 1, kLanguage = 2, kCodes = 3, kAbbreviations = 4;

// Flags, by the bit.
struct Flag {
  bool Options::*option;
  uint64_t bit;
};
constexpr Flag kOptions[] = {{&Options::perl, 1},          {&Options::normalise_marks, 2}, {&Options::plain_asian_marks, 4},
                             {&Options::split_hyphens, 8}, {&Options::words, 16},          {&Options::own_abbreviations, 32}};

}  // namespace

std::string message_of(const Settings& settings) {
  std::string message;
  uint64_t flags = 0;
  for (const auto& [option, bit] : kOptions)
    if (settings.text.*option) flags |= bit;
  append_field(message, kFlags, flags);
  append_field(message, kLanguage, settings.text.language);
  append_field(message, kCodes, settings.codes);
  append_field(message, kAbbreviations, settings.text.abbreviations);
  return message;
}

std::optional<Settings> settings_of(std::string_view model) {
  std::optional<Settings> settings;
  Fields fields(model);
  for (Field field; fields.next(field);) {
    if (field.number != vocabulary_format::kWordPieces) continue;
    settings.emplace();
    Fields inner(field.bytes);
    for (Field f; inner.next(f);) {
      if (f.number == kFlags)
        for (const auto& [option, bit] : kOptions) settings->text.*option = (f.value & bit) != 0;
      if (f.number == kLanguage) settings->text.language = f.bytes;
      if (f.number == kCodes) settings->codes = f.bytes;
      if (f.number == kAbbreviations) settings->text.abbreviations = f.bytes;
    }
  }
  return settings;
}

WordPieces::WordPieces(Settings settings, const std::string& name)
    : settings_(std::move(settings)), tokenizer_(settings_.text), detokenizer_(settings_.text) {
  if (!settings_.codes.empty()) codes_.emplace(settings_.codes, name);
}

std::vector<Piece> WordPieces::pieces(std::string_view line) const {
  std::vector<Piece> all;
  int64_t done = 0;  // bytes that belong to pieces
  const auto add = [&](const Letter* begin, const Letter* end, bool last) {
    Piece& piece = all.emplace_back();
    append_letters(piece.text, begin, end);
    if (!last) piece.text += kGoesOn;
    Range range{begin->begin, begin->end};
    for (const Letter* letter = begin; letter != end; ++letter) {
      range.begin = std::min<int64_t>(range.begin, letter->begin);
      range.end = std::max<int64_t>(range.end, letter->end);
    }
    piece.bytes = {std::max(range.begin, done), std::max(range.end, done)};
    done = piece.bytes.end;
  };
  for (const Token& token : tokenizer_.tokens(line)) {
    const Letter* at = token.letters.data();
    const Letter* const end = at + token.letters.size();
    if (!codes_) {
      add(at, end, true);
      continue;
    }
    std::u32string word;
    for (const Letter& letter : token.letters) word += letter.c == kDotOfSeveral ? U'.' : letter.c;
    for (const size_t size : codes_->cut(word)) {
      add(at, at + size, at + size == end);
      at += size;
    }
  }
  return all;
}

JoinedText WordPieces::join(std::span<const std::string> pieces) const {
  Letters letters;
  for (size_t i = 0; i < pieces.size(); ++i) {
    std::string_view text = pieces[i];
    if (text.empty()) continue;
    const bool goes_on = codes_ && text.ends_with(kGoesOn);
    if (goes_on) text.remove_suffix(kGoesOn.size());
    const auto number = static_cast<int32_t>(i);
    for (const Letter& letter : letters_of(text)) letters.push_back({letter.c, number, number + 1});
    if (!goes_on) letters.push_back({' ', number + 1, number + 1});
  }
  Letters text;
  if (settings_.text.words) {
    text = detokenizer_.text(letters);
  } else {
    text = std::move(letters);
    if (!text.empty() && text.back().c == ' ') text.pop_back();
  }
  JoinedText joined{"", std::vector<Range>(pieces.size(), Range{-1, -1})};
  int64_t space = -1;  // where one begins that belongs to what follows
  for (const Letter& letter : text) {
    const int64_t begin = space >= 0 ? space : std::ssize(joined.text);
    append_letters(joined.text, &letter, &letter + 1);
    const bool gap = letter.begin == letter.end;
    space = gap ? begin : -1;
    if (gap) continue;
    for (auto i = static_cast<size_t>(letter.begin); i < static_cast<size_t>(letter.end); ++i) {
      Range& bytes = joined.bytes[i];
      if (bytes.begin < 0) bytes.begin = begin;
      bytes.end = std::ssize(joined.text);
    }
  }
  int64_t end = 0;
  for (Range& bytes : joined.bytes) {
    if (bytes.begin < 0) bytes = {end, end};
    bytes = {std::max(bytes.begin, end), std::max(bytes.end, end)};
    end = bytes.end;
  }
  return joined;
}

}  // namespace starling::moses
