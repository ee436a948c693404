// Office documents: archives of XML files, of Word and its kin (docx, pptx, xlsx), of LibreOffice (odt, odp, ods), and books (epub).
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/office_paragraph.h"
#include "formats/unit_file.h"
#include "formats/zip.h"

namespace starling {

// The formats of office documents, as file_format() calls them.
std::span<const std::string_view> office_formats();

// Returns the format of an office document by its bytes, or "". Throws ConfigError for archives and documents that cannot be translated.
std::string office_format(std::string_view bytes, const std::string& path);

class OfficeFile final : public UnitFile {
 public:
  // `format` is one of office_formats(). Throws DataError for what is broken, encrypted, or unpacks to more than `most` bytes.
  OfficeFile(std::string_view format, std::string bytes, Languages languages, uint64_t most = uint64_t{512} << 20);

 private:
  // What is done with an entry of the archive. `page`: HTML; `languages`: it has no text, but says what language the text has.
  enum class Part : char { copied, paragraphs, page, languages };
  // An entry that is not written yet.
  struct Pending {
    const ZipEntry* entry = nullptr;
    Part part = Part::copied;
    std::string content = {};  // with the target's language
    size_t texts = 0;          // units
    bool complete = false;     // all of its texts were given
  };
  void read() override;
  void write_group(std::span<const std::string> translations, bool last) override;
  void drop_group() override;
  void restart() override;
  void find_office_parts();
  void find_book_parts();
  void require_bounds();
  void count(uint64_t bytes);  // that are unpacked; throws DataError if they are too many
  void add_paragraphs(Pending& pending);
  void add_page(Pending& pending);
  void add_text(Pending& pending, TextUnit unit);
  std::string content_of(const ZipEntry& e, Part part) const;
  void write_part(Pending& pending);
  const ZipEntry* entry(std::string_view name) const;
  std::string read_entry(std::string_view name);  // "" if there is none
  void set_part(std::string_view name, Part part);
  bool stays(const OfficeParagraph& paragraph) const;

  std::string bytes_;
  Languages languages_;
  ZipArchive archive_;
  std::vector<Part> parts_;                                          // for each entry
  std::map<std::string, std::vector<size_t>, std::less<>> by_name_;  // its entries
  uint64_t most_, unpacked_ = 0;                                     // bytes
  bool lines_;                                                       // a line break in a text is one on the page too
  std::deque<Pending> pending_;
  std::vector<std::string> translations_;  // of the first texts of what is pending
  std::optional<ZipRewriter> rewriter_;
  std::vector<std::string> columns_;  // names of tables' columns, sorted: programs call a workbook broken whose cells differ from them
};

}  // namespace starling
