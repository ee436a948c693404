#include "text/languages.h"

#include <algorithm>

#include "base/ascii.h"
#include "base/error.h"
#include "base/push_once.h"

namespace starling {

bool is_language_code(std::string_view text) {
  const std::string_view main = text.substr(0, text.find('-'));
  if (main.size() < 2 || main.size() > 3 || !std::all_of(main.begin(), main.end(), is_ascii_letter)) return false;
  for (text.remove_prefix(main.size()); !text.empty();) {
    text.remove_prefix(1);
    const std::string_view part = text.substr(0, text.find('-'));
    if (part.empty() || part.size() > 8 || !std::all_of(part.begin(), part.end(), is_ascii_letter_or_digit)) return false;
    text.remove_prefix(part.size());
  }
  return true;
}

void check(const Languages& languages, const std::string& section) {
  for (const auto& [key, code] : {std::pair("source-language", &languages.source), {"target-language", &languages.target}})
    if (!code->empty() && !is_language_code(*code))
      throw ConfigError(fmt::format("{}.{}: '{}' is not a language code; give one such as en, de, pt-BR or zh-Hant", section, key, *code));
  for (const std::string& direction : languages.directions) parse_direction(direction, section + ".directions");
}

std::pair<std::string, std::string> parse_direction(const std::string& direction, const std::string& key) {
  const size_t colon = direction.find(':');
  if (colon != std::string::npos) {
    const std::string source = direction.substr(0, colon), target = direction.substr(colon + 1);
    if (is_language_code(source) && is_language_code(target)) return {source, target};
  }
  throw ConfigError(fmt::format("{}: '{}' is not a direction; write en:de, zh-Hant:en and so on", key, direction));
}

std::vector<std::string> source_languages(const Languages& languages) {
  std::vector<std::string> sources;
  for (const std::string& direction : languages.directions) push_once(sources, parse_direction(direction, "data.directions").first);
  if (sources.empty() && !languages.source.empty()) sources.push_back(languages.source);
  return sources;
}

std::vector<std::string> target_languages(const Languages& languages) {
  std::vector<std::string> targets;
  for (const std::string& direction : languages.directions) push_once(targets, parse_direction(direction, "data.directions").second);
  return targets;
}

std::string language_tag(std::string_view target) { return fmt::format(">>{}<<", target); }

std::vector<std::string> language_tags(const Languages& languages) {
  std::vector<std::string> tags = target_languages(languages);
  if (tags.size() < 2) return {};
  for (std::string& tag : tags) tag = language_tag(tag);
  return tags;
}

std::string main_language(std::string_view code) {
  std::string language(code.substr(0, code.find_first_of("-_")));
  for (char& c : language)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  return language;
}

}  // namespace starling
