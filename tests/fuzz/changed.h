// A translation of a file in which sentences stay as they are, or become texts that a format has to write with care.
#pragma once

#include <cstdint>
#include <string>

#include "units/unit.h"

namespace starling {

inline std::string changed_sentence(const std::string& sentence, uint32_t seed) {
  constexpr const char* kSaid[] = {"word",     "a < b & c > d",        "\"quoted\" it's", "- 1. # | * _x_ `",
                                   "a: b # c", "l\xC3\xA9 \\n %s {x}", "@? [a](b)!",      ""};
  const char* said = kSaid[seed / 3 % std::size(kSaid)];
  return seed % 3 == 0 ? sentence : seed % 3 == 1 ? said : sentence + said;
}

inline std::string changed(UnitFile& file, uint32_t seed) {
  std::string out;
  const auto translate = [&](std::span<const TextUnit> units) {
    std::vector<std::string> translations;
    for (const TextUnit& unit : units) {
      const Document document(unit.text, unit.format, "en", unit.options);
      std::vector<AlignedText> sentences;
      for (const std::string& s : document.sentences())
        sentences.push_back({changed_sentence(s, seed = seed * 1664525u + 1013904223u), {}});
      translations.push_back(document.assemble(sentences));
    }
    return translations;
  };
  file.translate(translate, [&](std::string_view bytes) { out += bytes; });
  return out;
}

}  // namespace starling
