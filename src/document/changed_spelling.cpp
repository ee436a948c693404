#include "document/changed_spelling.h"

#include <string>

#include "base/ascii.h"
#include "base/utf8.h"
#include "text/unicode.h"

namespace starling {

namespace {

constexpr size_t kLongest = 200;  // bytes of the longest placeholder searched for; the time grows quadratically with its length

std::string in_small_letters_without_spaces(std::string_view text) {
  std::string small;
  bool ascii = true;
  for (const char c : text) {
    ascii &= static_cast<unsigned char>(c) < 0x80;
    if (c != ' ') small += ascii_lower(c);
  }
  return ascii || invalid_utf8_offset(small) ? small : encode_utf8(to_lower(decode_utf8(small)));
}

bool comes_from(const TargetUnit& unit, Range source) {
  int64_t votes = 0;
  for (const Range& r : unit.from) votes += r.begin + r.end >= 2 * source.begin && r.begin + r.end < 2 * source.end ? 1 : -1;
  return votes > 0;
}

// How much of the placeholder the units from `begin` on match: in the order of the placeholder, or in any order if they come from there.
struct Match {
  UnitSpan units;
  size_t bytes = 0;
  bool signs = false;       // there is more than letters and digits
  bool pictures = true;     // there are only signs outside ASCII
  bool from_there = false;  // the links say that at least one unit comes from the placeholder
};

Match match_from(const std::vector<TargetUnit>& units, size_t begin, const std::string& placeholder, Range source) {
  Match match{{begin, begin}};
  std::string rest = placeholder;  // with zeros for what is matched: a word that comes twice is there once
  size_t at = 0, foreign = 0;      // in the placeholder; bytes that are not in it
  for (size_t u = begin; u < units.size() && !units[u].kept && match.bytes < placeholder.size(); ++u) {
    if (units[u].text == kUnknownSymbol) continue;
    const std::string text = in_small_letters_without_spaces(units[u].text);
    const bool from_there = comes_from(units[u], source);
    const bool apart = u == begin || !units[u].gap.empty();
    const size_t next = rest.find(text, at);
    // A word that comes from elsewhere must continue the placeholder, since a word like "a" is contained in many.
    const bool goes_on = next == at || (next != std::string::npos && !(units[u].word && apart));
    const size_t found = goes_on ? next : from_there ? rest.find(text) : std::string::npos;
    if (found == std::string::npos) {
      // Tolerates, say, wrong letters within an address, but not a separate word.
      foreign += text.size();
      if (apart || foreign * 2 > placeholder.size()) break;
      continue;
    }
    if (next != std::string::npos) at = next + text.size();
    rest.replace(found, text.size(), text.size(), '\0');
    match.bytes += text.size();
    match.units.end = u + 1;
    match.signs |= !units[u].word || !is_ascii_letter_or_digit(text.front()) || !is_ascii_letter_or_digit(text.back());
    match.pictures &= !units[u].word && static_cast<unsigned char>(text.front()) >= 0x80;
    match.from_there |= from_there;
  }
  return match;
}

}  // namespace

UnitSpan changed_spelling(const std::vector<TargetUnit>& units, std::string_view placeholder, Range source) {
  if (placeholder.size() > kLongest) return {};
  const std::string small = in_small_letters_without_spaces(placeholder);
  Match best;
  for (size_t u = 0; u < units.size(); ++u) {
    const Match match = match_from(units, u, small, source);
    const size_t length = match.units.end - match.units.begin, longest = best.units.end - best.units.begin;
    const bool shorter = match.bytes == best.bytes && length < longest;  // a word before it is not part of it
    if (match.units.empty() || (match.bytes <= best.bytes && !shorter)) continue;
    const bool enough = match.bytes * 5 >= small.size() * 3;  // three fifths, more than one of the two characters of "%s"
    if (match.pictures || (enough && (match.signs || match.from_there))) best = match;
  }
  UnitSpan found = best.units;
  if (found.empty()) return found;
  while (found.begin > 0 && units[found.begin - 1].text == kUnknownSymbol) --found.begin;
  while (found.end < units.size() && units[found.end].text == kUnknownSymbol) ++found.end;
  return found;
}

}  // namespace starling
