// Files of the messages of programs: values between quotes and escapes, with variables, tags of HTML and choices by number (ICU).
#pragma once

#include <string>
#include <string_view>

#include "units/plural_categories.h"
#include "units/unit_text.h"

namespace starling {

class MessageFile : public EditedFile {
 protected:
  /// `target`: the language whose plural categories messages get, if it is known.
  MessageFile(std::string bytes, bool in_place, std::string_view target)
      : EditedFile(std::move(bytes), in_place), categories_(plural_categories_of(target)) {}

  /// How messages are written besides what all files have in common.
  struct Syntax {
    bool mnemonics = false;  // "&File" and "_File" name the letter of a key
    bool icu = true;         // choices by number or word: {n, plural, one {...} other {...}}
  };
  /// Returns a message as fragments with the units of its texts, as they stand in the value; empty if there is nothing to translate.
  Fragments message(std::string_view value, const Syntax& syntax);

  const std::vector<std::string_view> categories_;  // of the target language

 private:
  Fragments add_plain(std::string_view value, const Syntax& syntax);
  UnitText read_icu(std::string_view text, bool counts, int depth);
  void add_argument(UnitText& unit, std::string_view argument, int depth);
  size_t add_icu_unit(UnitText unit);
};

/// Returns whether a value is for programs: names such as main_menu and mainMenu, paths, formats of dates.
bool is_for_programs(std::string_view value);

/// Returns the languages' name for a target: "de" for "de", "pt_BR" for "pt-BR".
std::string with_underscore(std::string language);

/// Appends the character of "\uXXXX" at the beginning of a text, also of two such ones; returns the bytes that it takes, 0 if there is
/// none.
size_t append_escaped_unit(std::string& out, std::string_view text);
/// Appends a quote, a backslash, a line break, a carriage return or a tab as strings in double quotes have them, with a backslash; returns
/// false for all others, which it leaves to the caller.
bool append_escape(std::string& out, char c);
/// Appends characters that are not ASCII as "\uXXXX".
void append_ascii(std::string& out, std::string_view text);

}  // namespace starling
