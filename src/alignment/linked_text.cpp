#include "alignment/linked_text.h"

#include "text/script.h"
#include "text/unicode.h"

namespace starling {
namespace {

constexpr uint32_t kUnknown = ~uint32_t{0};

bool is_of_word(char32_t c) { return is_alphabetic(c) || character_class(c) == CharacterClass::number; }

// Returns a word without the marks around it; a word of marks alone as it is.
std::u32string_view without_marks(std::u32string_view word) {
  size_t first = 0, end = word.size();
  while (first < end && !is_of_word(word[first])) ++first;
  while (end > first && !is_of_word(word[end - 1])) --end;
  return end > first ? word.substr(first, end - first) : word;
}

}  // namespace

std::vector<std::string> line_parts(std::string_view line, AlignedParts how, const Vocabulary* vocabulary) {
  if (how == AlignedParts::pieces) return vocabulary->pieces(line);
  std::vector<std::string> parts;
  if (how == AlignedParts::words) {
    const std::u32string characters = decode_utf8(line);
    for (const std::u32string_view word : split_on_space(characters)) parts.push_back(encode_utf8(to_lower(without_marks(word))));
  } else {
    for (const std::string_view word : split_on_space(line)) parts.emplace_back(word);
  }
  return parts;
}

WordIds PartNumbers::add(const std::vector<std::string>& parts) {
  WordIds ids;
  for (const std::string& part : parts) ids.push_back(add(part));
  return ids;
}

std::vector<std::string_view> PartNumbers::parts() const {
  std::vector<std::string_view> all(size() + 1);
  for (const auto& [part, number] : numbers_) all[number] = part;
  return all;
}

WordIds PartNumbers::known(const std::vector<std::string>& parts) const {
  WordIds ids;
  for (const std::string& part : parts) {
    const auto at = numbers_.find(part);
    ids.push_back(at == numbers_.end() ? kUnknown : at->second);
  }
  return ids;
}

}  // namespace starling
