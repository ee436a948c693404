// The parts of a line that are aligned; links have their positions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "alignment/word_pairs.h"
#include "text/vocabulary.h"

namespace starling {

// spaces: what stands between spaces, as it is. words: the same in lower case and without the marks around it, which would link last words
// because a full stop follows both. pieces: of a vocabulary.
enum class AlignedParts : uint8_t { words, spaces, pieces };
constexpr auto words(AlignedParts) { return std::array{"words", "spaces", "pieces"}; }

std::vector<std::string> line_parts(std::string_view line, AlignedParts parts, const Vocabulary* vocabulary);

// Numbers of parts, from 1.
class PartNumbers {
 public:
  // Returns the numbers of the parts; new ones get the next number.
  WordIds add(const std::vector<std::string>& parts);
  // The same, but new ones get a number that no text has.
  WordIds known(const std::vector<std::string>& parts) const;
  // Returns the number of one part, which is new if it was not there.
  uint32_t add(const std::string& part) { return numbers_.try_emplace(part, size() + 1).first->second; }
  // Returns the parts by their numbers, the one at 0 being empty, valid as long as nothing is added.
  std::vector<std::string_view> parts() const;
  uint32_t size() const { return static_cast<uint32_t>(numbers_.size()); }

 private:
  std::unordered_map<std::string, uint32_t> numbers_;
};

}  // namespace starling
