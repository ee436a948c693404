#include "data/text_noise.h"

#include <algorithm>
#include <span>

#include "base/utf8.h"
#include "text/unicode.h"

namespace starling {
namespace {

// Whether a code point begins a word: the first one, or one behind a space.
bool begins_word(std::u32string_view text, size_t at) { return at == 0 || text[at - 1] == U' '; }

std::span<const int32_t> last_of(const PackedTokens& side) {
  return std::span(side.tokens).subspan(static_cast<size_t>(side.offsets[side.offsets.size() - 2]));
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

void make_typo(std::u32string& text, Random& random) {
  const size_t at = random.below(text.size());
  const bool letter = letter_case(text[at]) != LetterCase::none;
  if (text[at] == U' ') {
    text.erase(at, 1);
    return;
  }
  if (!letter) return;  // numbers and marks carry meaning that no reader could guess
  switch (random.below(4)) {
    case 0:
      if (at + 1 < text.size() && letter_case(text[at + 1]) != LetterCase::none) std::swap(text[at], text[at + 1]);
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
}

std::string upper(std::string_view text, Random& /*random*/) { return encode_utf8(to_upper(decode_utf8(text))); }
std::string titled(std::string_view text, Random& /*random*/) { return title_case_utf8(text); }

}  // namespace

std::string title_case_utf8(std::string_view text) {
  std::u32string letters = decode_utf8(text);
  for (size_t i = 0; i < letters.size(); ++i)
    if (begins_word(letters, i)) letters[i] = to_upper(std::u32string(1, letters[i]))[0];
  return encode_utf8(letters);
}

std::string with_typos(std::string_view text, Random& random) {
  constexpr size_t kLettersPerTypo = 10;
  std::u32string letters = decode_utf8(text);
  for (size_t count = letters.size() / kLettersPerTypo + 1; count > 0 && !letters.empty(); --count) make_typo(letters, random);
  return encode_utf8(letters);
}

TextNoise::TextNoise(const NoiseShares& shares, const Vocabulary& source, const Vocabulary& target, std::vector<std::vector<int32_t>> tags,
                     int64_t max_length)
    : shares_(shares), source_(source), target_(target), tags_(std::move(tags)), max_length_(max_length) {}

size_t TextNoise::prefix_of(const PackedTokens& source, int64_t corpus) const {
  const std::vector<int32_t>& tag = tags_.at(static_cast<size_t>(corpus));
  const std::span<const int32_t> last = last_of(source);
  return tag.size() < last.size() && std::equal(tag.begin(), tag.end(), last.begin()) ? tag.size() : 0;
}

bool TextNoise::change_last(Batch& batch, int64_t corpus, int64_t before, Random& random) const {
  const size_t prefix = prefix_of(batch.source, corpus);
  const double letters = random.uniform();
  const bool typos = random.uniform() < shares_.typos, joined = random.uniform() < shares_.merge;
  if (letters < shares_.upper_case + shares_.title_case) {
    const Change change = letters < shares_.upper_case ? upper : titled;
    change_side(batch.source, source_, prefix, change, random);
    change_side(batch.target, target_, 0, change, random);
  }
  if (typos) change_side(batch.source, source_, prefix, with_typos, random);
  return joined && before == corpus && join_last(batch, prefix);
}

void TextNoise::change_side(PackedTokens& side, const Vocabulary& vocabulary, size_t prefix, Change change, Random& random) const {
  const std::span<const int32_t> all = last_of(side), words = all.subspan(prefix, all.size() - prefix - 1);
  const std::string text = vocabulary.decode(words);
  if (!std::ranges::equal(vocabulary.encode_as_it_stands(text), words)) return;
  std::vector<int32_t> tokens(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(prefix));
  const std::vector<int32_t> changed = vocabulary.encode_as_it_stands(change(text, random));
  if (changed.empty()) return;
  tokens.insert(tokens.end(), changed.begin(), changed.end());
  tokens.push_back(all.back());
  if (static_cast<int64_t>(tokens.size()) > max_length_) return;
  side.tokens.resize(static_cast<size_t>(side.offsets[side.offsets.size() - 2]));
  side.offsets.pop_back();
  side.append(tokens.data(), tokens.data() + tokens.size());
}

// The pair before loses its ends, and this one its tag.
bool TextNoise::join_last(Batch& batch, size_t prefix) const {
  const size_t last = batch.sample_ids.size() - 1;
  const auto length = [&](const PackedTokens& side, size_t b) { return static_cast<size_t>(side.offsets[b + 1] - side.offsets[b]); };
  const size_t source = length(batch.source, last - 1) - 1 + length(batch.source, last) - prefix,
               target = length(batch.target, last - 1) - 1 + length(batch.target, last);
  if (static_cast<int64_t>(std::max(source, target)) > max_length_) return false;
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
  return true;
}

}  // namespace starling
