// Reads JSON from a file that stays as it is: where values begin and end, and what strings say.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace starling {

class JsonCursor {
 public:
  /// Throws with the place of what is wrong, which is told in words.
  using Refuse = std::function<void(size_t at, const std::string& why)>;
  JsonCursor(const std::string& text, Refuse refuse) : text_(text), refuse_(std::move(refuse)) {}

  size_t at() const { return at_; }
  void go_to(size_t at) { at_ = at; }
  char here() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void skip_blanks();
  /// Skips a character that must be here, after blanks.
  void expect(char c, const char* what);
  /// Reads a string, which begins here, with its escapes as what they mean.
  std::string read_string();
  /// Skips a number, true, false or null.
  void skip_word();
  /// Skips a value of any kind, after blanks.
  void skip_value();
  /// Calls `see` with each key of an object that begins here and the place of the key; `see` reads the value, before which the cursor is.
  void read_object(const std::function<void(const std::string& key, size_t key_begin)>& see);
  /// Refuses a container that begins here if so many are open that it is too deep.
  void check_depth(size_t open) const;
  [[noreturn]] void fail(const char* expected) const;
  [[noreturn]] void refuse(size_t at, const std::string& why) const;

 protected:
  const std::string& text_;
  size_t at_ = 0;

 private:
  Refuse refuse_;
};

/// Appends a string of JSON with its quotes; `ascii`: with escapes for all that is not ASCII.
void append_json_string(std::string& out, std::string_view value, bool ascii);

}  // namespace starling
