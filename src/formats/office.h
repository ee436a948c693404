// Office documents: archives of XML files, of Word and its kin (docx, pptx, xlsx), of LibreOffice (odt, odp, ods), and books (epub).
#pragma once

#include <functional>
#include <map>
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

  std::string assemble(std::span<const std::string> translations) const override;

 private:
  // What is done with an entry of the archive. `page`: HTML; `languages`: it has no text, but says what language the text has.
  enum class Part : char { copied, paragraphs, page, languages };
  void find_office_parts();
  void find_book_parts();
  void require_bounds();
  void count(uint64_t bytes);  // that are unpacked; throws DataError if they are too many
  void add_units(const std::string& where, const std::string& xml);
  void add_page(const std::string& where, const std::string& page);
  std::string translated(size_t part, std::string source, std::span<const std::string> translations) const;
  const ZipEntry* entry(std::string_view name) const;
  std::string read(std::string_view name);  // "" if there is none
  void set_part(std::string_view name, Part part);
  bool stays(const OfficeParagraph& paragraph) const;

  std::string bytes_;
  Languages languages_;
  ZipArchive archive_;
  std::vector<Part> parts_;                                          // for each entry
  std::map<std::string, std::vector<size_t>, std::less<>> by_name_;  // its entries
  uint64_t most_, unpacked_ = 0;                                     // bytes
  bool lines_;                                                       // a line break in a text is one on the page too
  std::vector<size_t> first_units_;                                  // of each entry, and the end
  std::vector<std::string> columns_;  // names of tables' columns, sorted: programs call a workbook broken whose cells differ from them
};

}  // namespace starling
