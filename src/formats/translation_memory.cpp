#include "formats/translation_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

#include "base/error.h"
#include "base/text_files.h"
#include "base/utf8.h"
#include "document/html.h"
#include "text/languages.h"
#include "text/unicode.h"
#include "units/xml_elements.h"

namespace starling {
namespace {

// Returns text of UTF-16, which begins with a byte order mark, in UTF-8; other text as it is.
std::string in_utf8(std::string text) {
  const bool little = text.starts_with("\xFF\xFE");
  if (!little && !text.starts_with("\xFE\xFF")) return text.starts_with("\xEF\xBB\xBF") ? text.substr(3) : text;
  std::string out;
  char32_t high = 0;
  for (size_t i = 2; i + 1 < text.size(); i += 2) {
    const auto first = static_cast<unsigned char>(text[i]), second = static_cast<unsigned char>(text[i + 1]);
    const char32_t unit = little ? first | second << 8 : first << 8 | second;
    if (unit >= 0xD800 && unit < 0xDC00)
      high = unit;
    else if (unit >= 0xDC00 && unit < 0xE000)
      append_utf8(out, high != 0 ? 0x10000 + ((high - 0xD800) << 10) + (unit - 0xDC00) : U'\uFFFD'), high = 0;
    else
      append_utf8(out, unit), high = 0;
  }
  return out;
}

// Elements that stand for formatting of the original; what is in them is no text.
const std::set<std::string, std::less<>> kNoText{"bpt", "ept", "ph", "it", "ut"};

struct Segment {
  std::string language, text;
};

// Returns the segments of a unit (<tu>).
std::vector<Segment> segments_of(std::string_view unit) {
  std::vector<Segment> segments;
  const std::vector<HtmlToken> tokens = scan_xml(unit);
  bool within = false;
  size_t skip = 0;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const HtmlToken& t = tokens[i];
    const std::string_view bytes = unit.substr(t.begin, t.end - t.begin);
    if (t.kind == HtmlToken::open && t.name == "tuv") {
      const std::string_view language = tag_attribute(bytes, "xml:lang");
      segments.push_back({main_language(language.empty() ? tag_attribute(bytes, "lang") : language), ""});
    } else if ((t.kind == HtmlToken::open || t.kind == HtmlToken::close) && t.name == "seg") {
      within = t.kind == HtmlToken::open && !segments.empty();
    } else if (within && t.kind == HtmlToken::open && kNoText.contains(t.name) && t.partner != SIZE_MAX) {
      skip = std::max(skip, t.partner);
    } else if (within && i > skip && t.kind == HtmlToken::text) {
      segments.back().text += xml_text(bytes);
    } else if (within && i > skip && bytes.starts_with(kCdata)) {
      segments.back().text += bytes.substr(kCdata.size(), bytes.size() - std::min(bytes.size(), kCdata.size() + 3));
    }
  }
  return segments;
}

}  // namespace

std::shared_ptr<const TranslationMemory> TranslationMemory::load(const std::string& path, const std::string& source,
                                                                 const std::string& target) {
  return parse(read_text_file(path), path, source, target);
}

std::shared_ptr<const TranslationMemory> TranslationMemory::parse(std::string text, const std::string& name, const std::string& source,
                                                                  const std::string& target) {
  text = in_utf8(std::move(text));
  if (const auto bad = invalid_utf8_offset(text))
    throw DataError(fmt::format("{}:{}: not UTF-8; convert the memory, for instance with iconv", name,
                                1 + std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(*bad), '\n')));
  auto memory = std::make_shared<TranslationMemory>();
  const std::string_view head = std::string_view(text).substr(0, 1000);
  if (head.find("<tmx") != std::string_view::npos)
    memory->read_tmx(text, name, main_language(source), main_language(target));
  else
    memory->read_lines(text, name);
  if (memory->size() == 0) throw DataError(fmt::format("{}: the memory has no sentences", name));
  return memory;
}

const std::string* TranslationMemory::find(std::string_view sentence) const {
  const auto found = translations_.find(with_single_spaces(sentence));
  return found == translations_.end() ? nullptr : &found->second;
}

void TranslationMemory::add(std::string_view source, std::string_view target) {
  std::string key = with_single_spaces(source), value = with_single_spaces(target);
  if (!key.empty() && !value.empty()) translations_.insert_or_assign(std::move(key), std::move(value));
}

void TranslationMemory::read_lines(std::string_view text, const std::string& name) {
  for (int64_t number = 1; !text.empty(); ++number) {
    const std::string_view line = text.substr(0, std::min(text.find('\n'), text.size()));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const size_t tab = line.find('\t');
    if (tab == std::string_view::npos && with_single_spaces(line).empty()) continue;
    if (tab == std::string_view::npos)
      throw DataError(fmt::format("{}:{}: a memory is a TMX file, or has lines of a sentence, a tab and its translation", name, number));
    add(line.substr(0, tab), line.substr(tab + 1, line.find('\t', tab + 1) - tab - 1));
  }
}

void TranslationMemory::read_tmx(std::string_view text, const std::string& name, std::string source, std::string target) {
  const size_t header = text.find("<header");
  if (source.empty() && header != std::string_view::npos)
    source = main_language(tag_attribute(text.substr(header, text.find('>', header) - header), "srclang"));
  std::set<std::string> languages;
  for (size_t at = text.find("<tu"); at != std::string_view::npos;) {
    const char after = at + 3 < text.size() ? text[at + 3] : '\0';
    if (after != '>' && after != ' ' && after != '\n' && after != '\r' && after != '\t') {
      at = text.find("<tu", at + 3);
      continue;
    }
    const size_t end = text.find("</tu>", at);
    if (end == std::string_view::npos)
      throw DataError(fmt::format("{}:{}: this unit of the memory has no end (</tu>)", name,
                                  1 + std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(at), '\n')));
    const std::vector<Segment> segments = segments_of(text.substr(at, end - at));
    for (const Segment& s : segments) languages.insert(s.language);
    const auto from = std::ranges::find(segments, source, &Segment::language);
    const auto to =
        std::ranges::find_if(segments, [&](const Segment& s) { return target.empty() ? s.language != source : s.language == target; });
    if (target.empty() && languages.size() > 2)
      throw DataError(fmt::format("{}: the memory has several languages; say which one with --target-language", name));
    if (from != segments.end() && to != segments.end() && from != to) add(from->text, to->text);
    at = text.find("<tu", end);
  }
  if (translations_.empty() && !languages.empty()) {
    std::string all;
    for (const std::string& l : languages) all += (all.empty() ? "" : ", ") + l;
    throw DataError(fmt::format("{}: the memory has no sentences from {} to {}; its languages are {}", name,
                                source.empty() ? "the model's language" : source, target.empty() ? "another" : target, all));
  }
}

}  // namespace starling
