// Catalogues of gettext (.po, .pot): messages without a translation get one, marked as fuzzy.
#pragma once

#include "units/messages.h"
#include "units/plural_forms.h"

namespace starling {

class Gettext final : public MessageFile {
 public:
  /// Throws DataError with the line for what is not a catalogue.
  Gettext(std::string text, const Languages& languages);

 private:
  // A text of one or more lines in quotes.
  struct Value {
    size_t begin = SIZE_MAX, end = 0;  // from the first quote behind the last one
    std::string text;
  };
  struct Entry {
    size_t begin = SIZE_MAX;      // of its first keyword, or of what it was called before (#|)
    size_t flags_end = SIZE_MAX;  // of the line of its flags
    bool formats = false;         // its flags say that programs read its conversions (%s)
    Value context, id, plural;
    std::vector<std::pair<size_t, Value>> translations;  // with the beginnings of their lines
    bool has_id = false, has_plural = false;
  };
  void read() override;
  void read_line(size_t line, size_t end, Entry& entry, Value*& value);
  void read_quoted(size_t at, size_t end, Value& value) const;
  void add_entry(const Entry& entry);
  void add_header(const Entry& entry);
  void set_field(const Value& header, const char* name, std::string_view unset, const std::string& value);

  const Languages languages_;
  PluralForms forms_;
  std::string line_end_;
};

}  // namespace starling
