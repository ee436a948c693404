#include "formats/office.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/ascii.h"
#include "base/error.h"
#include "base/quotes.h"
#include "base/utf8.h"
#include "formats/office_languages.h"
#include "formats/office_part.h"
#include "formats/office_parts.h"

namespace starling {
namespace {

constexpr size_t kUnitBytes = size_t{32} << 10;     // bytes of paragraphs that are one unit
constexpr size_t kPageBytes = size_t{128} << 10;    // bytes from which on a page of a book is divided
constexpr size_t kMostPageBytes = size_t{1} << 20;  // of a piece of one

std::span<const std::byte> span_of(std::string_view bytes) { return std::as_bytes(std::span(bytes)); }

// Returns where a comment ends, or an element whose spaces or characters have a meaning of their own, if one begins at `at`; else `at`.
size_t whole_end(std::string_view page, size_t at) {
  constexpr std::string_view kWhole[] = {"pre", "script", "style"};
  if (page.substr(at).starts_with("<!--")) return std::min(page.find("-->", at + 4), page.size());
  const auto names = [&](size_t from, std::string_view name) {
    const std::string_view here = page.substr(std::min(from, page.size()), name.size() + 1);
    return here.size() > name.size() && !is_ascii_letter_or_digit(here.back()) &&
           std::ranges::equal(here.substr(0, name.size()), name, {}, ascii_lower);
  };
  for (const std::string_view name : kWhole) {
    if (!names(at + 1, name)) continue;
    const size_t tag = page.find('>', at);
    if (tag == std::string_view::npos) return page.size();
    if (page[tag - 1] == '/') return at;
    for (size_t end = page.find("</", tag); end != std::string_view::npos; end = page.find("</", end + 2))
      if (names(end + 2, name)) return end;
    return page.size();
  }
  return at;
}

// Returns where to divide a page: behind a paragraph or the like, from `kPageBytes` bytes on; its end if that is near.
size_t piece_end(std::string_view page, size_t begin) {
  constexpr std::string_view kEnds[] = {"</p>", "</div>", "</li>", "</td>", "</h1>", "</h2>", "</h3>", "</dd>", "<br/>", "<br />"};
  if (page.size() - begin <= 2 * kPageBytes) return page.size();
  for (size_t at = page.find('<', begin); at != std::string_view::npos; at = page.find('<', at + 1)) {
    if (at > begin && at - begin > kMostPageBytes) return at;  // in the middle of a paragraph
    for (const std::string_view mark : kEnds)
      if (at - begin >= kPageBytes && page.substr(at).starts_with(mark)) return at + mark.size();
    at = whole_end(page, at);
    if (at == page.size()) break;
  }
  return page.size();
}

// Takes the next "<p>...</p>" from texts that are read one after another.
class ParagraphTexts {
 public:
  explicit ParagraphTexts(std::span<const std::string> texts) : texts_(texts) {}
  std::optional<std::string> next() {
    while (!texts_.empty()) {
      const std::string& text = texts_.front();
      const size_t begin = text.find("<p>", at_), end = text.find("</p>", at_);
      if (begin != std::string::npos && end != std::string::npos && end > begin) {
        at_ = end + 4;
        return text.substr(begin + 3, end - begin - 3);
      }
      texts_ = texts_.subspan(1);
      at_ = 0;
    }
    return std::nullopt;
  }

 private:
  std::span<const std::string> texts_;
  size_t at_ = 0;
};

}  // namespace

OfficeFile::OfficeFile(std::string_view format, std::string bytes, Languages languages, uint64_t most)
    : bytes_(std::move(bytes)),
      languages_(std::move(languages)),
      archive_(span_of(bytes_), fmt::format("the {} file", format)),
      parts_(archive_.entries().size(), Part::copied),
      most_(most),
      lines_(format == "xlsx") {
  for (size_t i = 0; i < parts_.size(); ++i) by_name_[archive_.entries()[i].name].push_back(i);
  if (format == "epub")
    find_book_parts();
  else
    find_office_parts();
  require_bounds();
  for (size_t i = 0; i < parts_.size(); ++i) {
    first_units_.push_back(units_.size());
    const ZipEntry& e = archive_.entries()[i];
    if (parts_[i] == Part::paragraphs) add_units(printable(e.name), archive_.read(e));
    if (parts_[i] == Part::page) add_page(printable(e.name), archive_.read(e));
  }
  first_units_.push_back(units_.size());
}

const ZipEntry* OfficeFile::entry(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &archive_.entries()[found->second.front()];
}

std::string OfficeFile::read(std::string_view name) {
  constexpr uint64_t kMost = 16 << 20;
  const ZipEntry* e = entry(name);
  if (e && e->size > kMost) throw DataError(fmt::format("{}: has {} bytes, more than any document needs", printable(e->name), e->size));
  if (!e) return "";
  count(e->size);
  return archive_.read(*e);
}

void OfficeFile::set_part(std::string_view name, Part part) {
  const auto found = by_name_.find(name);
  if (found == by_name_.end() || parts_[found->second.front()] == part) return;
  for (const size_t i : found->second) parts_[i] = part;
}

void OfficeFile::count(uint64_t bytes) {
  unpacked_ += bytes;
  if (unpacked_ > most_) throw DataError(fmt::format("the document has more than {} bytes of text and tags; divide it", most_));
}

void OfficeFile::require_bounds() {
  constexpr uint64_t kMuch = 128 << 20, kMostExpansion = 200;
  for (size_t i = 0; i < parts_.size(); ++i) {
    const ZipEntry& e = archive_.entries()[i];
    if (parts_[i] == Part::copied) continue;
    if (e.size > kMuch && e.size > e.packed_size * kMostExpansion)
      throw DataError(
          fmt::format("{}: {} bytes unpack to {}, as of no document that people write", printable(e.name), e.packed_size, e.size));
    count(e.size);
  }
}

void OfficeFile::find_office_parts() {
  if (read("META-INF/manifest.xml").find("encryption-data") != std::string::npos)
    throw DataError("the document is encrypted; save it without a password");
  std::set<std::string> seen;
  for (const OfficePartName& part : office_part_names(read("[Content_Types].xml"), archive_.entries())) {
    if (part.use == OfficePartUse::columns) {
      if (seen.insert(part.name).second) append_column_names(columns_, read(part.name), part.name);
      continue;
    }
    set_part(part.name, part.use == OfficePartUse::languages ? Part::languages : Part::paragraphs);
  }
  std::ranges::sort(columns_);
}

void OfficeFile::find_book_parts() {
  std::set<std::string> seen;
  for (const std::string& package : book_packages(read("META-INF/container.xml"))) {
    if (!seen.insert(package).second) continue;
    const std::string opf = read(package);
    if (opf.empty()) throw DataError(fmt::format("{} is missing in the book; make it again", printable(package)));
    set_part(package, Part::languages);
    for (const BookItem& item : book_items(opf, package)) set_part(item.name, item.contents ? Part::paragraphs : Part::page);
  }
  for (const std::string& name : encrypted_names(read("META-INF/encryption.xml"))) {
    const ZipEntry* e = entry(name);
    if (e && parts_[static_cast<size_t>(e - archive_.entries().data())] != Part::copied)
      throw DataError(
          fmt::format("{} of the book is encrypted; books with protection against copying cannot be translated", printable(name)));
  }
}

bool OfficeFile::stays(const OfficeParagraph& paragraph) const {
  return !columns_.empty() && std::ranges::binary_search(columns_, paragraph.characters());
}

void OfficeFile::add_units(const std::string& where, const std::string& xml) {
  bool fresh = true;
  read_office_part(xml, where, [&](OfficeParagraph& paragraph) {
    if (stays(paragraph)) return;
    if (fresh || units_.back().text.size() > kUnitBytes) {
      TextUnit& unit = units_.emplace_back();
      unit.format = DocumentFormat::xml;
      unit.options.ends = lines_ ? SentenceEnds::marks_and_lines : SentenceEnds::marks;
      unit.options.tags = {.ignored = {"k"}, .separating = {"p", "br"}, .within = {}, .outline = false};
    }
    fresh = false;
    units_.back().text += "<p>" + paragraph.tagged() + "</p>";
  });
}

void OfficeFile::add_page(const std::string& where, const std::string& page) {
  if (const auto bad = invalid_utf8_offset(page))
    throw DataError(fmt::format("{}: byte {} does not belong to UTF-8; make the book again with UTF-8", where, *bad));
  const bool whole = page.find("notranslate") != std::string::npos || page.find("translate=") != std::string::npos;
  for (size_t begin = 0; begin < page.size();) {
    const size_t end = whole ? page.size() : piece_end(page, begin);
    if (end - begin > 2 * kMostPageBytes)
      throw DataError(
          fmt::format("{}: {} bytes of the page cannot be divided; make the book again with smaller pages", where, end - begin));
    units_.push_back({page.substr(begin, end - begin), DocumentFormat::html, {}});
    begin = end;
  }
}

std::string OfficeFile::translated(size_t part, std::string source, std::span<const std::string> translations) const {
  const std::string where = printable(archive_.entries()[part].name);
  translations = translations.subspan(first_units_[part], first_units_[part + 1] - first_units_[part]);
  std::string out;
  switch (parts_[part]) {
    case Part::copied:
      return source;
    case Part::languages:
      return with_target_language(std::move(source), languages_, where);
    case Part::page:
      std::string().swap(source);
      for (const std::string& t : translations) out += t;
      break;
    case Part::paragraphs: {
      ParagraphTexts paragraphs(translations);
      out = rewritten_office_part(source, where, [&](OfficeParagraph& paragraph) -> std::optional<std::string> {
        if (stays(paragraph)) return std::nullopt;
        paragraph.tagged();
        return paragraphs.next();
      });
      std::string().swap(source);
      return with_target_language(std::move(out), languages_, where);
    }
  }
  try {
    return with_target_language(out, languages_, where);
  } catch (const DataError&) {  // pages need not be well-formed, but then nobody knows what belongs to what
    return out;
  }
}

std::string OfficeFile::assemble(std::span<const std::string> translations) const {
  CHECK(translations.size() == units_.size(), "{} translations of {} texts", translations.size(), units_.size());
  return archive_.rewritten([&](const ZipEntry& e) -> std::optional<std::string> {
    const auto part = static_cast<size_t>(&e - archive_.entries().data());
    if (parts_[part] == Part::copied) return std::nullopt;
    std::string out = translated(part, archive_.read(e), translations);
    if (archive_.holds(e, out)) return std::nullopt;
    return out;
  });
}

}  // namespace starling
