#include "translate/line_translation.h"

#include <utility>

#include "document/sentences.h"

namespace starling {

std::vector<std::vector<Translation>> translate_texts(Translator& translator, std::vector<std::string>& lines,
                                                      std::span<const std::string> beginnings, bool all) {
  std::vector<std::string> kept(lines.size());
  for (size_t i = 0; i < lines.size() && !all; ++i)
    if (!has_letter(lines[i]) && (beginnings.empty() || beginnings[i].empty())) std::swap(lines[i], kept[i]);
  auto translations = translator.translate(lines, beginnings);
  for (size_t i = 0; i < lines.size(); ++i)
    if (!kept[i].empty()) translations[i].front().text = std::move(kept[i]);
  return translations;
}

}  // namespace starling
