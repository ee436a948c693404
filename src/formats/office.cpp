#include "formats/office.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "base/error.h"
#include "base/quotes.h"
#include "base/utf8.h"
#include "formats/html_pieces.h"
#include "formats/office_languages.h"
#include "formats/office_part.h"
#include "formats/office_parts.h"

namespace starling {
namespace {

constexpr size_t kUnitBytes = size_t{32} << 10;  // bytes of paragraphs that are one unit
constexpr size_t kHeldShare = 8;                 // bytes of XML that count as one of text where they wait for their translation

std::span<const std::byte> span_of(std::string_view bytes) { return std::as_bytes(std::span(bytes)); }

// Takes the next "<p>...</p>" from texts that are read one after another, and frees those that are read.
class ParagraphTexts {
 public:
  explicit ParagraphTexts(std::span<std::string> texts) : texts_(texts) {}
  std::optional<std::string> next() {
    while (!texts_.empty()) {
      const std::string& text = texts_.front();
      const size_t begin = text.find("<p>", at_), end = text.find("</p>", at_);
      if (begin != std::string::npos && end != std::string::npos && end > begin) {
        at_ = end + 4;
        return text.substr(begin + 3, end - begin - 3);
      }
      std::string().swap(texts_.front());
      texts_ = texts_.subspan(1);
      at_ = 0;
    }
    return std::nullopt;
  }

 private:
  std::span<std::string> texts_;
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
  check();
}

void OfficeFile::read() {
  for (const ZipEntry* e : archive_.in_order()) {
    const Part part = parts_[static_cast<size_t>(e - archive_.entries().data())];
    Pending& pending = pending_.emplace_back(Pending{.entry = e, .part = part});
    pending.content = content_of(*e, part);
    count_held(pending.content.size() / kHeldShare);
    if (part == Part::paragraphs) add_paragraphs(pending);
    if (part == Part::page) add_page(pending);
    pending.complete = true;
    end_group();
  }
}

const ZipEntry* OfficeFile::entry(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &archive_.entries()[found->second.front()];
}

std::string OfficeFile::read_entry(std::string_view name) {
  constexpr uint64_t kMost = 16 << 20;
  const ZipEntry* e = entry(name);
  if (e && e->size > kMost)
    throw DataError(fmt::format("{}: has {} bytes, more than any real document needs; save the document again in its program",
                                printable(e->name), e->size));
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
  if (unpacked_ > most_) throw DataError(fmt::format("the document has more than {} bytes of text and tags; split it", most_));
}

void OfficeFile::require_bounds() {
  constexpr uint64_t kMuch = 128 << 20, kMostExpansion = 200;
  for (size_t i = 0; i < parts_.size(); ++i) {
    const ZipEntry& e = archive_.entries()[i];
    if (parts_[i] == Part::copied) continue;
    if (e.size > kMuch && e.size > e.packed_size * kMostExpansion)
      throw DataError(fmt::format("{}: {} bytes unpack to {}, far more than in any real document; save the document again in its program",
                                  printable(e.name), e.packed_size, e.size));
    count(e.size);
  }
}

void OfficeFile::find_office_parts() {
  if (read_entry("META-INF/manifest.xml").find("encryption-data") != std::string::npos)
    throw DataError("the document is encrypted; save it without a password");
  std::set<std::string> seen;
  for (const OfficePartName& part : office_part_names(read_entry("[Content_Types].xml"), archive_.entries())) {
    if (part.use == OfficePartUse::columns) {
      if (seen.insert(part.name).second) append_column_names(columns_, read_entry(part.name), part.name);
      continue;
    }
    set_part(part.name, part.use == OfficePartUse::languages ? Part::languages : Part::paragraphs);
  }
  std::ranges::sort(columns_);
}

void OfficeFile::find_book_parts() {
  std::set<std::string> seen;
  for (const std::string& package : book_packages(read_entry("META-INF/container.xml"))) {
    if (!seen.insert(package).second) continue;
    const std::string opf = read_entry(package);
    if (opf.empty()) throw DataError(fmt::format("{} is missing from the book; create the book again", printable(package)));
    set_part(package, Part::languages);
    for (const BookItem& item : book_items(opf, package)) set_part(item.name, item.contents ? Part::paragraphs : Part::page);
  }
  for (const std::string& name : encrypted_names(read_entry("META-INF/encryption.xml"))) {
    const ZipEntry* e = entry(name);
    if (e && parts_[static_cast<size_t>(e - archive_.entries().data())] != Part::copied)
      throw DataError(fmt::format("{} of the book is encrypted; books with copy protection cannot be translated", printable(name)));
  }
}

bool OfficeFile::stays(const OfficeParagraph& paragraph) const {
  return !columns_.empty() && std::ranges::binary_search(columns_, paragraph.characters());
}

std::string OfficeFile::content_of(const ZipEntry& e, Part part) const {
  if (part == Part::copied) return "";
  std::string content = archive_.read(e);
  if (checks() && part != Part::languages) return content;
  if (part != Part::page) return with_target_language(std::move(content), languages_, printable(e.name));
  try {
    return with_target_language(content, languages_, printable(e.name));
  } catch (const DataError&) {  // pages need not be well-formed, but then nobody knows what belongs to what
    return content;
  }
}

void OfficeFile::add_text(Pending& pending, TextUnit unit) {
  add(std::move(unit));
  ++pending.texts;
  end_group();
}

void OfficeFile::add_paragraphs(Pending& pending) {
  TextUnit unit;
  unit.format = DocumentFormat::xml;
  unit.options.ends = lines_ ? SentenceEnds::marks_and_lines : SentenceEnds::marks;
  unit.options.tags = {.ignored = {"k"}, .separating = {"p", "br"}, .within = {}, .outline = false};
  read_office_part(pending.content, printable(pending.entry->name), [&](OfficeParagraph& paragraph) {
    if (stays(paragraph)) return;
    unit.text += "<p>" + paragraph.tagged() + "</p>";
    if (unit.text.size() < kUnitBytes) return;
    add_text(pending, unit);
    unit.text.clear();
  });
  if (!unit.text.empty()) add_text(pending, std::move(unit));
}

void OfficeFile::add_page(Pending& pending) {
  const std::string where = printable(pending.entry->name);
  if (const auto bad = invalid_utf8_offset(pending.content))
    throw DataError(fmt::format("{}: byte {} does not belong to UTF-8; create the book again in UTF-8", where, *bad));
  for (const std::string_view piece : html_pieces(pending.content)) {
    if (piece.size() > 2 * kMostHtmlPiece)
      throw DataError(
          fmt::format("{}: {} bytes of the page cannot be split; create the book again with shorter pages", where, piece.size()));
    add_text(pending, {std::string(piece), DocumentFormat::html, {}});
  }
}

void OfficeFile::write_part(Pending& pending) {
  if (pending.part == Part::copied) return rewriter_->copy(*pending.entry);
  const auto end = translations_.begin() + static_cast<ptrdiff_t>(pending.texts);
  std::vector<std::string> translations(std::make_move_iterator(translations_.begin()), std::make_move_iterator(end));
  translations_.erase(translations_.begin(), end);
  rewriter_->replace(*pending.entry, [&](const ZipRewriter::Write& write) {
    if (pending.part == Part::languages) return write(pending.content);
    if (pending.part == Part::page) {
      for (const std::string& t : translations) write(t);
      return;
    }
    ParagraphTexts paragraphs(translations);
    const auto translated = [&](OfficeParagraph& paragraph) -> std::optional<std::string> {
      if (stays(paragraph)) return std::nullopt;
      const std::string text = paragraph.tagged();
      std::optional<std::string> translation = paragraphs.next();
      return translation == text ? std::nullopt : std::move(translation);
    };
    rewrite_office_part(pending.content, printable(pending.entry->name), translated, write);
  });
}

void OfficeFile::write_group(std::span<const std::string> translations, bool last) {
  translations_.insert(translations_.end(), translations.begin(), translations.end());
  if (!rewriter_) rewriter_.emplace(archive_, [this](std::string_view bytes) { write(bytes); });
  for (; !pending_.empty() && pending_.front().complete; pending_.pop_front()) write_part(pending_.front());
  if (last) rewriter_->end();
}

void OfficeFile::drop_group() {
  while (!pending_.empty() && pending_.front().complete) pending_.pop_front();
}

void OfficeFile::restart() {
  pending_.clear();
  translations_.clear();
  rewriter_.reset();
}

}  // namespace starling
