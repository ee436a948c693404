#include "data/text_noise.h"

#include <algorithm>
#include <span>

#include "base/utf8.h"
#include "data/last_sentence.h"
#include "text/unicode.h"

namespace starling {
namespace {

bool is_letter(char32_t c) { return letter_case(c) != LetterCase::none; }

// Calls change(begin, end) for each word that has letters, and nothing beside them but marks that stand around words.
template <class Text, class Change>
void each_plain_word(const Text& text, Change change) {
  constexpr std::u32string_view kMarks = U".,;:!?'\"()-…–—„“”‚‘’«»¿¡";
  for (size_t begin = 0, end; begin < text.size(); begin = end + 1) {
    end = std::min(text.find(U' ', begin), text.size());
    const auto word = std::u32string_view(text).substr(begin, end - begin);
    const bool plain = std::all_of(word.begin(), word.end(), [&](char32_t c) { return is_letter(c) || kMarks.find(c) != kMarks.npos; });
    if (plain && std::any_of(word.begin(), word.end(), is_letter)) change(begin, end);
  }
}

// A neighbour on a QWERTY keyboard; the letter itself for others.
char32_t neighbour(char32_t letter, Random& random) {
  static constexpr std::u32string_view kRows[] = {U"qwertyuiop", U"asdfghjkl", U"zxcvbnm"};
  const char32_t lower = to_lower(std::u32string(1, letter))[0];
  for (const std::u32string_view row : kRows)
    if (const size_t at = row.find(lower); at != row.npos) {
      const bool left = at + 1 == row.size() || (at > 0 && random.below(2) == 0);
      const char32_t other = row[left ? at - 1 : at + 1];
      return lower == letter ? other : to_upper(std::u32string(1, other))[0];
    }
  return letter;
}

// One try, at a place of a plain word or the space behind one; returns whether something has changed.
bool make_typo(std::u32string& text, size_t at, Random& random) {
  if (text[at] == U' ') {
    text.erase(at, 1);
    return true;
  }
  if (!is_letter(text[at])) return false;
  const std::u32string before = text;
  switch (random.below(4)) {
    case 0:
      if (at + 1 < text.size() && is_letter(text[at + 1])) std::swap(text[at], text[at + 1]);
      break;
    case 1:
      text.erase(at, 1);
      break;
    case 2:
      text.insert(at, 1, text[at]);
      break;
    case 3:
      text[at] = neighbour(text[at], random);
      break;
  }
  return text != before;
}

std::string upper(std::string_view text, Random& /*random*/) { return upper_case_utf8(text); }
std::string titled(std::string_view text, Random& /*random*/) { return title_case_utf8(text); }

}  // namespace

std::string upper_case_utf8(std::string_view text) {
  std::u32string letters = decode_utf8(text);
  each_plain_word(letters,
                  [&](size_t begin, size_t end) { letters.replace(begin, end - begin, to_upper(letters.substr(begin, end - begin))); });
  return encode_utf8(letters);
}

std::string title_case_utf8(std::string_view text) {
  std::u32string letters = decode_utf8(text);
  each_plain_word(letters, [&](size_t begin, size_t end) {
    while (begin < end && !is_letter(letters[begin])) ++begin;
    letters[begin] = to_upper(letters.substr(begin, 1))[0];
  });
  return encode_utf8(letters);
}

std::string with_typos(std::string_view text, Random& random) {
  constexpr size_t kLettersPerTypo = 10;
  constexpr int kTries = 20;
  std::u32string letters = decode_utf8(text);
  for (size_t count = letters.size() / kLettersPerTypo + 1; count > 0; --count) {
    std::vector<size_t> places;
    each_plain_word(letters, [&](size_t begin, size_t end) {
      const size_t before = places.empty() ? letters.size() : places.back();
      if (begin > 0 && before + 2 == begin) places.push_back(begin - 1);  // a space between two plain words
      for (size_t at = begin; at < end; ++at) places.push_back(at);
    });
    for (int tries = 0; !places.empty() && tries < kTries; ++tries)
      if (make_typo(letters, places[random.below(places.size())], random)) break;
  }
  return encode_utf8(letters);
}

TextNoise::TextNoise(const NoiseShares& shares, const Vocabulary& source, const Vocabulary& target, std::vector<std::vector<int32_t>> tags,
                     int64_t max_length)
    : shares_(shares), source_(source), target_(target), tags_(std::move(tags)), max_length_(max_length) {}

size_t TextNoise::prefix_of(const PackedTokens& source, int64_t corpus) const {
  const std::vector<int32_t>& tag = tags_.at(static_cast<size_t>(corpus));
  const std::span<const int32_t> last = last_sentence(source);
  return tag.size() < last.size() && std::equal(tag.begin(), tag.end(), last.begin()) ? tag.size() : 0;
}

bool TextNoise::change_last(Batch& batch, int64_t corpus, Random& random) const {
  const size_t prefix = prefix_of(batch.source, corpus);
  const double letters = random.uniform();
  const bool typos = random.uniform() < shares_.typos, joined = random.uniform() < shares_.merge;
  if (letters < shares_.upper_case + shares_.title_case) {  // both sides or none
    const Change change = letters < shares_.upper_case ? upper : titled;
    const std::vector<int32_t> source = changed(batch.source, source_, prefix, change, random),
                               target = changed(batch.target, target_, 0, change, random);
    if (!source.empty() && !target.empty() && !std::ranges::equal(source, last_sentence(batch.source)))
      replace_last_sentence(batch.source, source), replace_last_sentence(batch.target, target);
  }
  if (typos)
    if (const std::vector<int32_t> source = changed(batch.source, source_, prefix, with_typos, random); !source.empty())
      replace_last_sentence(batch.source, source);
  return joined;
}

std::vector<int32_t> TextNoise::changed(const PackedTokens& side, const Vocabulary& vocabulary, size_t prefix, Change change,
                                        Random& random) const {
  const std::span<const int32_t> all = last_sentence(side), words = all.subspan(prefix, all.size() - prefix - 1);
  const std::string text = vocabulary.decode(words);
  if (!std::ranges::equal(vocabulary.encode_as_it_stands(text), words)) return {};
  std::vector<int32_t> tokens(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(prefix));
  const std::vector<int32_t> now = vocabulary.encode_as_it_stands(change(text, random));
  if (now.empty()) return {};
  tokens.insert(tokens.end(), now.begin(), now.end());
  tokens.push_back(all.back());
  return static_cast<int64_t>(tokens.size()) > max_length_ ? std::vector<int32_t>() : tokens;
}

// The pair before loses its ends, and this one its tag.
void TextNoise::join_last(Batch& batch, int64_t corpus) const {
  const size_t prefix = prefix_of(batch.source, corpus);
  const size_t last = batch.sample_ids.size() - 1;
  const auto length = [&](const PackedTokens& side, size_t b) { return static_cast<size_t>(side.offsets[b + 1] - side.offsets[b]); };
  const size_t source = length(batch.source, last - 1) - 1 + length(batch.source, last) - prefix,
               target = length(batch.target, last - 1) - 1 + length(batch.target, last);
  if (static_cast<int64_t>(std::max(source, target)) > max_length_) return;
  const auto join = [&](PackedTokens& side, size_t left_out) {
    const auto begin = side.tokens.begin() + side.offsets[last] - 1;
    side.tokens.erase(begin, begin + 1 + static_cast<std::ptrdiff_t>(left_out));
    side.offsets.erase(side.offsets.end() - 2);
    side.offsets.back() = static_cast<int32_t>(side.tokens.size());
  };
  if (!batch.weights.empty()) {  // the mean over the target tokens
    const auto first = static_cast<float>(length(batch.target, last - 1)), second = static_cast<float>(length(batch.target, last));
    batch.weights[last - 1] = (first * batch.weights[last - 1] + second * batch.weights[last]) / (first + second);
    batch.weights.pop_back();
  }
  join(batch.source, prefix);
  join(batch.target, 0);
  batch.sample_ids.pop_back();
}

}  // namespace starling
