// Which files of an office document hold text, by the lists that the documents themselves have of their files.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/zip.h"

namespace starling {

enum class OfficePartUse : char { paragraphs, languages, columns };

struct OfficePartName {
  std::string name;
  OfficePartUse use;
};

// The files of a document whose list of content types is `types`, or, if it has none, of OpenDocument.
std::vector<OfficePartName> office_part_names(std::string_view types, std::span<const ZipEntry> entries);

// Adds the names of the columns of a table, or of the source of a pivot table.
void append_column_names(std::vector<std::string>& names, std::string_view xml, const std::string& where);

// The package files of a book, by its META-INF/container.xml.
std::vector<std::string> book_packages(std::string_view container);

struct BookItem {
  std::string name;
  bool contents = false;  // a table of contents of the older kind (ncx), no page
};
// The pages and tables of contents that a package file lists.
std::vector<BookItem> book_items(std::string_view opf, const std::string& package);

// The files that META-INF/encryption.xml lists.
std::vector<std::string> encrypted_names(std::string_view xml);

}  // namespace starling
