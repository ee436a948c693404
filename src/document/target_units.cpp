#include "document/target_units.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "base/ascii.h"
#include "document/changed_spelling.h"
#include "document/placeholders.h"
#include "text/unicode.h"

namespace starling {
namespace {

constexpr size_t kMostLinked = 50;  // kept parts that are looked for by links

struct Found {
  size_t begin, end, kept;  // bytes of the translation; index
};

bool joins_words(char32_t c) { return c == '\'' || c == 0x2019 || c == '-' || c == 0x2011 || is_default_ignorable(c); }

bool is_word_character(char32_t c) {
  if (c < 0x80) return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  if (is_unicode_space(c) || is_default_ignorable(c)) return false;
  const CharacterClass what = character_class(c);
  return what == CharacterClass::other || what == CharacterClass::number;
}

// Scripts without spaces: a word may end after each character.
bool stands_alone(char32_t c) {
  return (c >= 0x0E00 && c <= 0x0EFF) || (c >= 0x1000 && c <= 0x109F) || (c >= 0x1780 && c <= 0x17FF) || (c >= 0x3040 && c <= 0x30FF) ||
         (c >= 0x3400 && c <= 0x9FFF) || (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x20000 && c <= 0x3134F);
}

class Units {
 public:
  Units(const MarkedSentence& sentence, const AlignedText& translation) : sentence_(sentence), translation_(translation) {
    find_unchanged();
    cut();
    restore_changed();
    put_back_ends();
  }
  std::vector<TargetUnit> units;

 private:
  // Finds placeholders that the translation contains unchanged: first those recognised as placeholders there too, then other occurrences,
  // the longest first, since short ones may be parts of them.
  void find_unchanged() {
    is_found_.assign(sentence_.kept.size(), false);
    const std::vector<Range> there = find_placeholders(translation_.text);
    std::map<std::string_view, std::vector<size_t>> by_text;  // the last one first
    for (size_t i = there.size(); i > 0; --i) by_text[part_of(translation_.text, there[i - 1])].push_back(i - 1);
    std::vector<size_t> missing;
    for (size_t k = 0; k < sentence_.kept.size(); ++k) {
      if (sentence_.is_left_out(sentence_.kept[k])) continue;
      const auto same = by_text.find(part_of(sentence_.text, sentence_.kept[k].at));
      if (same == by_text.end() || same->second.empty()) {
        missing.push_back(k);
        continue;
      }
      const Range at = there[same->second.back()];
      same->second.pop_back();
      take(static_cast<size_t>(at.begin), static_cast<size_t>(at.end), k);
    }
    const auto size = [&](size_t k) { return sentence_.kept[k].at.count(); };
    std::stable_sort(missing.begin(), missing.end(), [&](size_t a, size_t b) { return size(a) > size(b); });
    std::map<std::string_view, size_t> next;  // where to search for the next equal one
    for (const size_t k : missing) {
      if (missing.size() <= kMostLinked && take_linked(k)) continue;
      const std::string_view text = part_of(sentence_.text, sentence_.kept[k].at);
      for (size_t& from = next[text]; from < translation_.text.size() && !is_found_[k];) {
        const size_t begin = std::min(translation_.text.find(text, from), translation_.text.size());
        from = begin + text.size();
        if (from <= translation_.text.size() && !is_taken(begin, from) && !is_part_of_word(begin, from)) take(begin, from, k);
      }
    }
    std::sort(found_.begin(), found_.end(), [](const Found& a, const Found& b) { return a.begin < b.begin; });
  }
  // Takes an occurrence that comes from the kept part by the links: a name in code may also be a word of the sentence.
  bool take_linked(size_t k) {
    const Range kept = sentence_.kept[k].at;
    const std::string_view text = part_of(sentence_.text, kept);
    for (const auto& [source, target] : translation_.links) {
      const Range from = sentence_.in_text(source);
      if (from.begin >= kept.end || from.end <= kept.begin) continue;
      const size_t after = static_cast<size_t>(target.end);
      const size_t begin = translation_.text.find(text, after > text.size() ? after - text.size() : 0);
      if (begin == std::string::npos || begin > static_cast<size_t>(target.begin)) continue;
      const size_t end = begin + text.size();
      if (end > translation_.text.size() || is_taken(begin, end) || is_part_of_word(begin, end)) continue;
      take(begin, end, k);
      return true;
    }
    return false;
  }
  static std::string_view part_of(const std::string& text, Range r) {
    return std::string_view(text).substr(static_cast<size_t>(r.begin), static_cast<size_t>(r.count()));
  }
  void take(size_t begin, size_t end, size_t k) {
    taken_[begin] = end;
    found_.push_back({begin, end, k});
    is_found_[k] = true;
  }
  bool is_taken(size_t begin, size_t end) const {
    const auto after = taken_.upper_bound(begin);
    return (after != taken_.begin() && std::prev(after)->second > begin) || (after != taken_.end() && after->first < end);
  }
  // Returns whether the bytes are part of a longer word: "%s" within "%short", "@al" within "@alice".
  bool is_part_of_word(size_t begin, size_t end) const {
    const auto ascii_word = [&](size_t i) {
      const char c = translation_.text[i];
      return is_ascii_letter_or_digit(c) || c == '_';
    };
    return (end < translation_.text.size() && ascii_word(end - 1) && ascii_word(end)) ||
           (begin > 0 && ascii_word(begin) && ascii_word(begin - 1));
  }

  void cut() {
    const std::string_view text = translation_.text;
    std::string gap;
    size_t next = 0;
    for (size_t at = 0; at < text.size();) {
      if (next < found_.size() && found_[next].begin == at) {
        const auto& kept = sentence_.kept[found_[next].kept];
        units.push_back({std::move(gap), kept.bytes, true, true, {kept.at}});
        gap.clear();
        at = found_[next++].end;
        continue;
      }
      const size_t limit = next < found_.size() ? found_[next].begin : text.size();
      const auto [c, length] = decode_utf8_at(text.substr(at));
      if (length > 0 && is_unicode_space(c)) {
        gap += text.substr(at, static_cast<size_t>(length));
        at += static_cast<size_t>(length);
        continue;
      }
      const bool word = length > 0 && is_word_character(c);
      const size_t end = word && !stands_alone(c) ? word_end(at, limit) : at + static_cast<size_t>(std::max(length, 1));
      units.push_back({std::move(gap), std::string(text.substr(at, end - at)), false, word, sources(at, end)});
      gap.clear();
      at = end;
    }
    if (!units.empty() && units.front().gap == " ") units.front().gap.clear();
  }
  size_t word_end(size_t at, size_t limit) const {
    const std::string_view text = std::string_view(translation_.text).substr(0, limit);
    size_t end = at;  // after the last letter
    for (size_t i = at; i < text.size();) {
      const auto [c, length] = decode_utf8_at(text.substr(i));
      const bool letter = length > 0 && is_word_character(c) && !stands_alone(c);
      if (!letter && !(length > 0 && joins_words(c) && end == i)) break;
      i += static_cast<size_t>(length);
      if (letter) end = i;
    }
    return end;
  }

  // Finds where a unit comes from: by the links or, without links, by its relative position.
  std::vector<Range> sources(size_t begin, size_t end) {
    if (translation_.links.empty()) {
      const int64_t length = std::max<int64_t>(1, static_cast<int64_t>(translation_.text.size()));
      const int64_t all = static_cast<int64_t>(sentence_.text.size()) - sentence_.front.count() - sentence_.back.count();
      const int64_t twice = static_cast<int64_t>(begin + end) * all / length;
      return {sentence_.in_text({twice / 2, twice - twice / 2})};
    }
    const int64_t from = static_cast<int64_t>(begin), to = static_cast<int64_t>(end);
    std::vector<Range> from_there;
    while (link_ < translation_.links.size() && translation_.links[link_].target.end <= from) ++link_;
    for (size_t i = link_; i < translation_.links.size() && translation_.links[i].target.begin < to; ++i) {
      Range source = sentence_.in_text(translation_.links[i].source);
      const auto is_space = [&](int64_t at) {
        return at >= 0 && at < static_cast<int64_t>(sentence_.text.size()) && sentence_.text[static_cast<size_t>(at)] == ' ';
      };
      while (source.count() > 1 && is_space(source.begin)) ++source.begin;
      from_there.push_back(source);
    }
    return from_there;
  }

  // Restores placeholders that the model changed or dropped.
  void restore_changed() {
    for (size_t k = 0; k < sentence_.kept.size(); ++k) {
      const auto& kept = sentence_.kept[k];
      if (is_found_[k] || sentence_.is_left_out(kept)) continue;
      TargetUnit unit{"", kept.bytes, true, true, {kept.at}};
      const size_t place = place_of(kept.at);
      UnitSpan changed = changed_spelling(units, part_of(sentence_.text, kept.at), kept.at);
      if (changed.empty() && is_words(kept)) changed = translated_words(kept.at);
      if (changed.empty()) changed = unknown_symbols(kept.at, place);
      if (changed.empty()) {
        insert(place, std::move(unit), kept.at);
        continue;
      }
      unit.gap = units[changed.begin].gap;
      units.erase(at(changed.begin), at(changed.end));
      units.insert(at(changed.begin), std::move(unit));
    }
  }
  std::vector<TargetUnit>::iterator at(size_t unit) { return units.begin() + static_cast<ptrdiff_t>(unit); }

  // Returns the position after the units that come from before it, but not within a word or number such as "9:15", nor after the marks that
  // end the sentence.
  size_t place_of(Range kept) const {
    size_t place = best_place(units, {0, units.size()}, kept.begin);
    const auto is_glued = [&](size_t u) {
      return u > 0 && u < units.size() && units[u].gap.empty() && !units[u].kept && !units[u - 1].kept;
    };
    const auto is_glued_word = [&](size_t u) { return is_glued(u) && units[u].word && !stands_alone(decode_utf8_at(units[u].text).value); };
    while (is_glued_word(place) || (is_glued(place) && is_glued_word(place + 1))) ++place;
    if (place == units.size())
      while (place > 0 && is_final(units[place - 1])) --place;
    return place;
  }
  static bool is_final(const TargetUnit& unit) { return !unit.kept && !unit.word && is_final_mark(decode_utf8_at(unit.text).value); }

  // Returns whether a kept part consists of words, such as a name: the model knows them, and the units that came from them are their
  // translation.
  bool is_words(const MarkedSentence::Kept& kept) const {
    const std::u32string text = decoded(part_of(sentence_.text, kept.at));
    return !kept.placeholder &&
           std::all_of(text.begin(), text.end(), [](char32_t c) { return is_word_character(c) || is_unicode_space(c); });
  }
  static std::u32string decoded(std::string_view text) { return invalid_utf8_offset(text) ? U"\uFFFD" : decode_utf8(text); }
  UnitSpan translated_words(Range kept) const {
    std::vector<bool> others(units.size());
    for (size_t u = 0; u < units.size(); ++u) others[u] = units[u].kept;
    return best_units(units, {0, units.size()}, kept, others);
  }

  // Returns unknown symbols that may stand for a kept part: those that come from it or are next to its place (since attention to unknown
  // pieces means little).
  UnitSpan unknown_symbols(Range kept, size_t place) const {
    const auto is_unknown = [&](size_t u) { return u < units.size() && !units[u].kept && units[u].text == kUnknownSymbol; };
    std::vector<bool> others(units.size());
    for (size_t u = 0; u < units.size(); ++u) others[u] = !is_unknown(u);
    UnitSpan found = best_units(units, {0, units.size()}, kept, others);
    if (found.empty() && is_unknown(place)) found = {place, place + 1};
    if (found.empty() && place > 0 && is_unknown(place - 1)) found = {place - 1, place};
    while (!found.empty() && found.begin > 0 && is_unknown(found.begin - 1)) --found.begin;
    while (!found.empty() && is_unknown(found.end)) ++found.end;
    return found;
  }

  // Inserts a unit with the spaces that it has in the source, and more where it would otherwise become part of a word.
  void insert(size_t place, TargetUnit unit, Range source) {
    const std::string_view text = sentence_.text;
    const auto is_letter = [](char c) { return static_cast<unsigned char>(c) < 0x80 && is_word_character(static_cast<unsigned char>(c)); };
    const bool attached = source.begin > 0 && text[static_cast<size_t>(source.begin) - 1] != ' ';
    const bool leads = source.end < static_cast<int64_t>(text.size()) && text[static_cast<size_t>(source.end)] != ' ';
    const bool picture = static_cast<unsigned char>(text[static_cast<size_t>(source.begin)]) >= 0x80;
    if (place > 0 && !(attached && (picture || !units[place - 1].word))) unit.gap = " ";
    if (place < units.size() && units[place].gap.empty() && units[place].word)
      if (!leads || is_letter(text[static_cast<size_t>(source.end) - 1])) units[place].gap = " ";
    units.insert(at(place), std::move(unit));
  }

  // Adds the parts that were not translated, with their own spaces.
  void put_back_ends() {
    std::string gap;
    std::vector<TargetUnit> front = units_of_source(sentence_.front, gap);
    if (!front.empty() && !units.empty()) units.front().gap = gap;
    units.insert(units.begin(), std::move_iterator(front.begin()), std::move_iterator(front.end()));

    gap.clear();
    std::vector<TargetUnit> back = units_of_source(sentence_.back, gap);
    if (back.empty()) return;
    size_t place = units.size();
    if (sentence_.back.end < static_cast<int64_t>(sentence_.text.size()))
      while (place > 0 && is_final(units[place - 1])) --place;
    if (place < units.size() && !gap.empty()) units[place].gap = gap;
    if (place == 0) back.front().gap.clear();
    units.insert(at(place), std::move_iterator(back.begin()), std::move_iterator(back.end()));
  }
  // Returns the units of a part of the source and sets `gap` to the white space at its end.
  std::vector<TargetUnit> units_of_source(Range part, std::string& gap) const {
    std::vector<TargetUnit> found;
    for (int64_t begin = part.begin; begin < part.end;) {
      const auto kept = std::lower_bound(sentence_.kept.begin(), sentence_.kept.end(), begin,
                                         [](const MarkedSentence::Kept& k, int64_t place) { return k.at.begin < place; });
      const bool is_kept = kept != sentence_.kept.end() && kept->at.begin == begin;
      const auto [c, length] = decode_utf8_at(std::string_view(sentence_.text).substr(static_cast<size_t>(begin)));
      const Range from{begin, is_kept ? kept->at.end : begin + std::max(length, 1)};
      if (!is_kept && length > 0 && is_unicode_space(c)) {
        gap += part_of(sentence_.text, from);
      } else {
        found.push_back({std::move(gap), is_kept ? kept->bytes : std::string(part_of(sentence_.text, from)), is_kept, is_kept, {from}});
        gap.clear();
      }
      begin = from.end;
    }
    return found;
  }

  const MarkedSentence& sentence_;
  const AlignedText& translation_;
  std::vector<Found> found_;
  std::vector<bool> is_found_;
  std::map<size_t, size_t> taken_;  // begin to end, bytes of the translation
  size_t link_ = 0;
};

}  // namespace

std::vector<TargetUnit> target_units(const MarkedSentence& sentence, const AlignedText& translation) {
  return std::move(Units(sentence, translation).units);
}

UnitSpan best_units(const std::vector<TargetUnit>& units, UnitSpan among, Range source, const std::vector<bool>& taken) {
  // Finds the run with the largest sum of agreeing minus disagreeing weights; marks count little, and units without a source hardly at all.
  int64_t best = 0, sum = 0;
  UnitSpan found;
  size_t begin = among.begin;
  for (size_t u = among.begin; u < among.end; ++u) {
    int64_t votes = 0;
    for (const Range& r : units[u].from) votes += r.begin + r.end >= 2 * source.begin && r.begin + r.end < 2 * source.end ? 1 : -1;
    const int64_t weight = units[u].from.empty() ? -1 : votes * (units[u].word ? 100 : 25);
    if (taken[u]) {
      sum = 0;
      begin = u + 1;
    }
    if (taken[u]) continue;
    if (sum <= 0) {
      sum = 0;
      begin = u;
    }
    sum += weight;
    if (sum > best) {
      best = sum;
      found = {begin, u + 1};
    }
  }
  return found;
}

size_t best_place(const std::vector<TargetUnit>& units, UnitSpan among, int64_t offset) {
  int64_t before = -1, behind = INT64_MAX;  // the nearest midpoints on both sides
  size_t after_before = among.begin, at_behind = among.end;
  for (size_t u = among.begin; u < among.end; ++u)
    for (const Range& r : units[u].from) {
      const int64_t middle = r.begin + r.end;
      if (middle < 2 * offset && middle >= before) {
        before = middle;
        after_before = u + 1;
      }
      if (middle >= 2 * offset && middle < behind) {
        behind = middle;
        at_behind = u;
      }
    }
  return before >= 0 ? after_before : behind < INT64_MAX ? at_behind : among.begin;
}

}  // namespace starling
