// Repairs of text that was damaged on its way: each leaves text alone that is as its author wrote it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace starling {

enum class Repair : uint8_t { encoding, entities, spaces, composition, lookalikes };
constexpr auto words(Repair) { return std::array{"encoding", "entities", "spaces", "composition", "look-alikes"}; }
inline constexpr size_t kRepairs = 5;
using RepairCounts = std::array<int64_t, kRepairs>;  // by Repair

// Returns the text repaired, and counts one for each repair that changed something.
//   encoding     UTF-8 that was read as Latin-1 or Windows-1252, also several times: `cafÃ©` is `café`
//   entities     `&amp;`, `&#39;`, also escaped twice
//   spaces       controls, byte order marks, soft hyphens and zero-width spaces vanish; tabs and runs of spaces are one space; none at the
//                ends. Single spaces of other widths stay, and so do joiners and marks of direction.
//   composition  letters and their marks in Unicode's form C
//   look-alikes  letters of another alphabet within a word that look like those of the word's own: `pаssword` with a Cyrillic а
std::string repaired(std::string_view text, RepairCounts& counts);

}  // namespace starling
