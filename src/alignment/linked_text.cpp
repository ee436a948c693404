#include "alignment/linked_text.h"

#include <algorithm>
#include <set>

#include "text/script.h"
#include "text/unicode.h"

namespace starling {
namespace {

constexpr uint32_t kUnknown = ~uint32_t{0};

bool is_of_word(char32_t c) { return is_alphabetic(c) || character_class(c) == CharacterClass::number; }

// Adds a word without the marks around it, and each of these.
void add_word(std::vector<LinePart>& parts, std::u32string_view word, int32_t position) {
  size_t first = 0, end = word.size();
  while (first < end && !is_of_word(word[first])) ++first;
  while (end > first && !is_of_word(word[end - 1])) --end;
  const auto mark = [&](size_t i) { parts.push_back({encode_utf8(word.substr(i, 1)), position}); };
  for (size_t i = 0; i < first; ++i) mark(i);
  if (end > first) parts.push_back({encode_utf8(to_lower(word.substr(first, end - first))), position});
  for (size_t i = end; i < word.size(); ++i) mark(i);
}

}  // namespace

std::vector<LinePart> line_parts(std::string_view line, AlignedParts how, const Vocabulary* vocabulary) {
  std::vector<LinePart> parts;
  int32_t position = 0;
  if (how == AlignedParts::pieces) {
    for (std::string& piece : vocabulary->pieces(line)) parts.push_back({std::move(piece), position++});
  } else if (how == AlignedParts::words) {
    const std::u32string characters = decode_utf8(line);
    for (const std::u32string_view word : split_on_space(characters)) add_word(parts, word, position++);
  } else {
    for (const std::string_view word : split_on_space(line)) parts.push_back({std::string(word), position++});
  }
  return parts;
}

WordIds PartNumbers::add(const std::vector<LinePart>& parts) {
  WordIds ids;
  for (const LinePart& part : parts) ids.push_back(add(part.text));
  return ids;
}

std::vector<std::string_view> PartNumbers::parts() const {
  std::vector<std::string_view> all(size() + 1);
  for (const auto& [part, number] : numbers_) all[number] = part;
  return all;
}

WordIds PartNumbers::known(const std::vector<LinePart>& parts) const {
  WordIds ids;
  for (const LinePart& part : parts) {
    const auto at = numbers_.find(part.text);
    ids.push_back(at == numbers_.end() ? kUnknown : at->second);
  }
  return ids;
}

Links positions_of(const Links& links, const std::vector<LinePart>& source, const std::vector<LinePart>& target) {
  Links all;
  std::set<std::pair<int32_t, int32_t>> seen;
  for (const auto& [s, t] : links) {
    const std::pair link{source[static_cast<size_t>(s)].position, target[static_cast<size_t>(t)].position};
    if (seen.insert(link).second) all.push_back(link);
  }
  return all;
}

}  // namespace starling
