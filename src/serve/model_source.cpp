#include "serve/model_source.h"

#include "base/error.h"
#include "text/languages.h"

namespace starling {

ModelSource parse_model_source(const std::string& text) {
  const size_t equals = text.find('=');
  const std::string before = text.substr(0, equals);
  if (equals == std::string::npos || before.find('/') != std::string::npos) return {.direction = std::nullopt, .path = text};
  const size_t colon = before.find(':'), cut = colon == std::string::npos ? before.find('-') : colon;
  Direction d;
  if (cut != std::string::npos) d = {before.substr(0, cut), before.substr(cut + 1)};
  const bool one_hyphen = colon != std::string::npos || before.find('-', cut + 1) == std::string::npos;
  if (!is_language_code(d.source) || !is_language_code(d.target) || !one_hyphen)
    throw ConfigError(fmt::format(
        "--model {}: '{}' is not a language direction; write en-de=DIR, zh-Hant:en=DIR for longer codes, or ./DIR for a path with '='",
        text, before));
  return {.direction = d, .path = text.substr(equals + 1)};
}

}  // namespace starling
