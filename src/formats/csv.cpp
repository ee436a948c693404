#include "formats/csv.h"

namespace starling {

char csv_separator(std::string_view head) {
  bool quoted = false;
  for (const char c : head) {
    if (c == '"') quoted = !quoted;
    if (!quoted && (c == ',' || c == ';' || c == '\t')) return c;
    if (!quoted && c == '\n') break;
  }
  return ',';
}

void CsvLines::add(std::string_view bytes, std::string& out) {
  if (first_ && bytes.starts_with("\xEF\xBB\xBF")) bytes.remove_prefix(3);
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

}  // namespace starling
