#include "decode/translation_lines.h"

#include <fmt/format.h>

namespace starling {

std::string translation_lines(std::span<const Translation> translations, int64_t number, bool list,
                              const std::function<std::string(const Translation&)>& alignment) {
  std::string lines;
  for (const Translation& t : translations.first(list ? translations.size() : 1)) {
    const std::string text = alignment ? t.text + " ||| " + alignment(t) : t.text;
    lines += list ? fmt::format("{} ||| {} ||| {:.6f} ||| {:.6f}\n", number, text, t.log_probability, t.score) : text + "\n";
  }
  return lines;
}

}  // namespace starling
