// Comma-separated values (RFC 4180) as lines of columns with tabs between them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace starling {

/// Returns what separates the fields of a table that begins with these bytes: the comma, semicolon or tab by which most of its records have
/// two or three columns; of equal ones, what its first line has first.
char csv_separator(std::string_view head);

/// Returns whether the first line of a table, its columns with a tab between them, names these: "source" and "target", or codes of the two
/// languages ("": unknown).
bool names_csv_columns(std::string_view line, std::string_view source, std::string_view target);

class CsvLines {
 public:
  /// At most this many columns of each record are written.
  explicit CsvLines(char separator = ',', size_t most_columns = SIZE_MAX) : separator_(separator), most_(most_columns) {}

  /// Appends to `out` the lines of the next bytes of the table, and at its end what is left. Tabs and line ends within fields become
  /// spaces; blank lines are left out. As Python's reader does, it takes a quote within a field that has none at its beginning for text.
  void add(std::string_view bytes, std::string& out);
  void end(std::string& out);

 private:
  char separator_;
  size_t most_;
  size_t column_ = 0;
  enum class In : uint8_t { beginning, plain, quoted, quote } in_ = In::beginning;  // quote: after one within quotes
  bool blank_ = true, first_ = true;
};

/// Returns the lines of a whole table.
std::string lines_of_csv(std::string_view table, char separator, size_t most_columns = SIZE_MAX);

}  // namespace starling
