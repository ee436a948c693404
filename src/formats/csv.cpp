#include "formats/csv.h"

#include "base/ascii.h"
#include "base/utf8.h"
#include "text/languages.h"

namespace starling {

namespace {

constexpr std::string_view kSeparators = ",;\t";

// Returns the separator that the first line has first; texts may have others, in quotes or not.
char first_separator(std::string_view table) {
  bool quoted = false;
  for (const char c : table) {
    if (c == '"') quoted = !quoted;
    if (!quoted && kSeparators.find(c) != kSeparators.npos) return c;
    if (!quoted && c == '\n') break;
  }
  return ',';
}

// Returns the number of records that have two or three columns.
int64_t fitting_records(std::string_view table, char separator) {
  const std::string lines = lines_of_csv(table, separator);
  int64_t records = 0, tabs = 0;
  for (const char c : lines) {
    if (c == '\n') records += tabs == 1 || tabs == 2;
    tabs = c == '\n' ? 0 : tabs + (c == '\t');
  }
  return records;
}

}  // namespace

char csv_separator(std::string_view head) {
  constexpr size_t kEnough = 64 << 10;  // bytes
  head = head.substr(0, kEnough);
  head = head.substr(0, head.rfind('\n'));  // the last record may be cut
  char best = first_separator(head);
  for (const char separator : kSeparators)
    if (fitting_records(head, separator) > fitting_records(head, best)) best = separator;
  return best;
}

bool names_csv_columns(std::string_view line, std::string_view source, std::string_view target) {
  std::string lower(line);
  for (char& c : lower) c = ascii_lower(c);
  for (const char* const names : {"source\ttarget", "src\ttgt", "src\ttrg", "source_text\ttarget_text", "source text\ttarget text"})
    if (lower == names) return true;
  const size_t tab = lower.find('\t');
  if (tab == std::string::npos || source.empty() || target.empty()) return false;
  return main_language(lower.substr(0, tab)) == main_language(source) && main_language(lower.substr(tab + 1)) == main_language(target);
}

void CsvLines::add(std::string_view bytes, std::string& out) {
  if (first_) bytes.remove_prefix(byte_order_mark(bytes));
  first_ = false;
  for (const char c : bytes) {
    if (c == '"' && (in_ == In::beginning || in_ == In::quoted)) {
      in_ = in_ == In::beginning ? In::quoted : In::quote;
      blank_ = false;
    } else if (c == separator_ && in_ != In::quoted) {
      if (++column_ < most_) out += '\t';
      in_ = In::beginning;
      blank_ = false;
    } else if (c == '\n' && in_ != In::quoted) {
      end(out);
    } else {
      if (c == '\r' && in_ != In::quoted) continue;
      if (column_ < most_) out += c == '\t' || c == '\n' || c == '\r' ? ' ' : c;
      in_ = in_ == In::quote && c == '"' ? In::quoted : in_ == In::quoted ? In::quoted : In::plain;
      blank_ = false;
    }
  }
}

void CsvLines::end(std::string& out) {
  if (!blank_) out += '\n';
  column_ = 0;
  in_ = In::beginning;
  blank_ = true;
}

std::string lines_of_csv(std::string_view table, char separator, size_t most_columns) {
  std::string lines;
  CsvLines csv(separator, most_columns);
  csv.add(table, lines);
  csv.end(lines);
  return lines;
}

}  // namespace starling
