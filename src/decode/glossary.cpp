#include "decode/glossary.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <span>
#include <tuple>

#include "base/ascii.h"
#include "base/error.h"
#include "base/hash64.h"
#include "base/text_files.h"
#include "base/utf8.h"
#include "document/markup.h"
#include "text/script.h"
#include "text/unicode.h"

namespace starling {
namespace {

// Letters, digits and the marks on them.
bool is_of_word(char32_t c) {
  const CharacterClass kind = character_class(c);
  return (kind == CharacterClass::other && !is_unicode_space(c)) || kind == CharacterClass::number || c == U'_';
}

// Whether a word may end before this character and begin with it.
bool is_limit(std::u32string_view text, size_t at) {
  if (at == 0 || at == text.size()) return true;
  return !is_of_word(text[at - 1]) || !is_of_word(text[at]) || is_unspaced(text[at - 1]) || is_unspaced(text[at]);
}

char32_t lower(char32_t c) {
  const std::u32string one = to_lower(std::u32string_view(&c, 1));
  return one.size() == 1 ? one[0] : c;
}

std::u32string capitalised(std::u32string text) {
  if (!text.empty()) text.replace(0, 1, to_upper(text.substr(0, 1)));
  return text;
}

// How the letters of a term stand in a text.
enum class Letters { as_written, capitalised, capitals, otherwise };
Letters letters_of(std::u32string_view found, const std::u32string& source) {
  if (found == source) return Letters::as_written;
  if (found == capitalised(source)) return Letters::capitalised;
  return found.size() > 1 && found == to_upper(source) ? Letters::capitals : Letters::otherwise;
}

// The first word has no capital.
bool begins_small(std::u32string_view text) {
  const std::u32string_view word = text.substr(0, text.find(U' '));
  return std::none_of(word.begin(), word.end(), [](char32_t c) { return letter_case(c) == LetterCase::upper; });
}

}  // namespace

std::shared_ptr<const Glossary> Glossary::parse(std::string_view text, const std::string& name) {
  auto glossary = std::make_shared<Glossary>();
  glossary->hash_ = hash64(std::as_bytes(std::span(text)));
  text.remove_prefix(byte_order_mark(text));
  for (int64_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const auto wrong = [&](std::string_view what) { return DataError(fmt::format("{}:{}: {}", name, number, what)); };
    if (invalid_utf8_offset(line)) throw wrong("not UTF-8; convert the glossary, for instance with iconv");
    std::vector<std::u32string> fields;
    for (size_t begin = 0, tab; begin <= line.size(); begin = tab + 1) {
      tab = std::min(line.find('\t', begin), line.size());
      fields.push_back(decode_utf8(with_single_spaces(line.substr(begin, tab - begin))));
    }
    if (fields.size() == 1 && fields[0].empty()) continue;
    if (fields.size() == 1) throw wrong("a line has a term, a tab and its translation, but this one has no tab");
    if (fields[0].empty()) throw wrong("the term before the first tab is missing");
    std::vector<std::string> spellings;
    for (size_t i = 1; i < fields.size(); ++i)
      if (!fields[i].empty()) spellings.push_back(encode_utf8(fields[i]));
    if (spellings.empty()) throw wrong("the translation after the tab is missing");
    std::u32string lower_case = fields[0];
    for (char32_t& c : lower_case) c = lower(c);
    glossary->entries_.push_back({std::move(fields[0]), std::move(lower_case), std::move(spellings)});
  }
  std::vector<Entry>& entries = glossary->entries_;
  if (entries.empty()) throw DataError(fmt::format("{}: the glossary has no terms", name));
  std::stable_sort(entries.begin(), entries.end(),
                   [](const Entry& a, const Entry& b) { return std::tie(a.lower, a.source) < std::tie(b.lower, b.source); });
  size_t last = 0;  // lines of one term become one
  for (size_t i = 1; i < entries.size(); ++i) {
    if (entries[i].source == entries[last].source)
      std::ranges::move(entries[i].spellings, std::back_inserter(entries[last].spellings));
    else if (++last != i)
      entries[last] = std::move(entries[i]);
  }
  entries.resize(last + 1);
  for (const Entry& e : entries) {
    if (e.spellings.size() > kMostSpellings)
      throw DataError(fmt::format("{}: the term '{}' has {} spellings, but a term may have at most {}", name,
                                  encode_utf8(e.source).substr(0, 60), e.spellings.size(), kMostSpellings));
    glossary->spellings_ += e.spellings.size();
  }
  return glossary;
}

std::shared_ptr<const Glossary> Glossary::load(const std::string& path) { return parse(read_text_file(path), path); }

std::vector<std::vector<std::string>> Glossary::terms_in(std::string_view sentence) const {
  const std::u32string text = decode_utf8(with_single_spaces(sentence));
  std::vector<std::vector<std::string>> terms;
  for (size_t begin = 0; begin < text.size() && terms.size() < Terms::kMost;) {
    const Entry* best = nullptr;
    Letters letters = Letters::otherwise;
    size_t end = begin + 1;
    std::span<const Entry> left = entries_;  // those that begin like the text so far
    for (size_t at = begin; is_limit(text, begin) && at < text.size(); ++at) {
      const size_t length = at + 1 - begin;
      const auto next = [&](const Entry& e) {
        return e.lower.size() < length ? std::numeric_limits<int64_t>::min() : int64_t{e.lower[length - 1]};
      };
      const auto here = int64_t{lower(text[at])};
      const auto first = std::partition_point(left.begin(), left.end(), [&](const Entry& e) { return next(e) < here; });
      left = {first, std::partition_point(first, left.end(), [&](const Entry& e) { return next(e) == here; })};
      if (left.empty()) break;
      Letters nearest = Letters::otherwise;
      for (const Entry& entry : left) {
        if (entry.lower.size() > length || !is_limit(text, at + 1)) break;
        const Letters l = letters_of(std::u32string_view(text).substr(begin, length), entry.source);
        if (l < nearest) nearest = letters = l, best = &entry, end = at + 1;
      }
    }
    begin = end;
    if (!best) continue;
    std::vector<std::string>& term = terms.emplace_back();
    for (const std::string& spelling : best->spellings) {
      const std::u32string written = decode_utf8(spelling);
      term.push_back(letters == Letters::capitals ? encode_utf8(to_upper(written)) : spelling);
      // The translation may begin with it.
      if (letters != Letters::capitals && begins_small(written) && capitalised(written) != written)
        term.push_back(encode_utf8(capitalised(written)));
    }
  }
  return terms;
}

TermSpeller::TermSpeller(const Vocabulary& target) : target_(target), by_word_(target.word_pieces() != nullptr), mark_(target.encode("(")) {
  auto shapes = std::make_shared<PieceShapes>();
  for (int32_t id = 0; id < target.size(); ++id) {
    const std::u32string piece = decode_utf8(by_word_ ? target.token(id) : target.piece(id));
    const bool goes_on = by_word_ && piece.ends_with(U"@@");
    const bool special = piece.empty() || piece.front() == U'<';  // <0xE4>, </s>
    shapes->continues.push_back(!special && !by_word_ && is_of_word(piece.front()) && piece.front() != U'\u2581' &&
                                !is_unspaced(piece.front()));
    shapes->opens.push_back(!special && !goes_on &&
                            (by_word_ || !is_of_word(piece.back()) || piece.back() == U'\u2581' || is_unspaced(piece.back())));
    shapes->ends.push_back(!special && !goes_on && is_final_mark(piece.back()));
    shapes->counts.push_back(!special && character_class(piece.back()) == CharacterClass::number);
  }
  shapes_ = std::move(shapes);
}

void TermSpeller::add_spellings(const std::string& text, std::vector<Terms::Spelling>& spellings) const {
  const auto known = [&](const std::vector<int32_t>& ids) {
    return !ids.empty() && std::find(ids.begin(), ids.end(), target_.unk()) == ids.end();
  };
  const std::u32string letters = decode_utf8(text);
  const bool loose = is_unspaced(letters.front());
  std::vector<int32_t> usual = target_.encode(text), inner = target_.encode("(" + text);
  if (!known(usual)) return;
  if (by_word_) return spellings.push_back({std::move(usual), true, loose});
  if (known(inner) && inner.size() > mark_.size() && std::equal(mark_.begin(), mark_.end(), inner.begin())) {
    inner.erase(inner.begin(), inner.begin() + std::ssize(mark_));
    if (inner != usual) spellings.push_back({std::move(inner), true, loose});
  }
  spellings.push_back({std::move(usual), false, loose});
}

std::shared_ptr<const Terms> TermSpeller::spell(const std::vector<std::vector<std::string>>& terms) const {
  std::vector<std::vector<Terms::Spelling>> all;
  for (const std::vector<std::string>& term : terms) {
    std::vector<Terms::Spelling> spellings;
    for (const std::string& text : term) add_spellings(text, spellings);
    if (!spellings.empty() && all.size() < Terms::kMost) all.push_back(std::move(spellings));
  }
  return all.empty() ? nullptr : std::make_shared<const Terms>(all, shapes_);
}

SearchOptions TermSpeller::with_terms(SearchOptions options, std::string_view sentence) const {
  // A place for hypotheses with each number of the terms' tokens, and some more. Measured by bench/glossary.py: wider beams bring nothing.
  constexpr int64_t kMore = 3;
  options.terms = spell(options.glossary->terms_in(sentence));
  if (!options.terms) return options;
  options.terms_beam = std::max(options.beam, std::min(options.terms->longest() + kMore, SearchOptions::kWidestWithTerms));
  return options;
}

}  // namespace starling
