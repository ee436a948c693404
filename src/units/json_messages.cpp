#include "units/json_messages.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/ascii.h"

namespace starling {
namespace {

// Keys of an object that describes one message: the text, and what is said about it.
constexpr std::string_view kTextKeys[] = {"message", "defaultMessage"};
constexpr std::string_view kOtherKeys[] = {"description", "placeholders", "comment", "context", "id",  "hash",
                                           "file",        "start",        "end",     "line",    "col", "developer_comment"};

bool is_among(std::string_view word, std::span<const std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace

// Reads values one after the other; containers that are open are on a stack of its own.
class JsonMessages::Reader {
 public:
  Reader(JsonMessages& file, const Languages& languages) : file_(file), text_(file.text_), languages_(languages) {}

  void read() {
    if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;
    bool value = true;  // one is expected
    for (skip_blanks(); !(at_ == text_.size() && open_.empty() && !value); skip_blanks()) {
      const char c = here();
      if (value) {
        value = read_value(c);
      } else if (!open_.empty() && c == ',') {
        ++at_;
        value = true;
        if (open_.back().object) read_key();
      } else if (!open_.empty() && c == (open_.back().object ? '}' : ']')) {
        close();
      } else {
        fail(open_.empty() ? "the end" : open_.back().object ? "\",\" or \"}\"" : "\",\" or \"]\"");
      }
    }
    bool ascii = std::all_of(text_.begin(), text_.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
    ascii = ascii && text_.find("\\u") != std::string::npos;
    for (const String& s : strings_) add(s, ascii);
  }

 private:
  struct Container {
    bool object;
    size_t strings;  // how many there were before it
    std::string key;
    bool describes = true, has_text = false, skipped = false;
  };
  struct String {
    size_t begin, end;
    std::string value, key;
    size_t depth;
    bool locale = false;  // the name of the file's language
  };

  char here() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r')) ++at_;
  }
  [[noreturn]] void fail(const char* expected) const {
    if (at_ >= text_.size()) file_.refuse(at_, fmt::format("the JSON ends, and {} should follow", expected));
    file_.refuse(at_, fmt::format("{} should stand here in JSON, not \"{}\"", expected,
                                  text_.substr(at_, text_.find_first_of(" \n", at_) == at_
                                                        ? 1
                                                        : std::min<size_t>(10, text_.find_first_of("\r\n", at_) - at_))));
  }

  // Reads a value or the beginning of a container; returns whether another value is expected.
  bool read_value(char c) {
    if (c == '{' || c == '[') {
      const bool within = !open_.empty();
      const bool skipped = within && (open_.back().skipped || open_.back().key.starts_with("@"));
      ++at_;
      open_.push_back({c == '{', strings_.size(), "", true, false, skipped});
      skip_blanks();
      if (here() == (c == '{' ? '}' : ']')) {
        close();
        return false;
      }
      if (c == '{') read_key();
      return true;
    }
    if (c == '"') {
      const size_t begin = at_;
      std::string value = read_string();
      const std::string key = open_.empty() ? "" : open_.back().key;
      const bool skipped = !open_.empty() && open_.back().skipped;
      if (key == "@@locale")
        strings_.push_back({begin, at_, std::move(value), key, open_.size(), true});
      else if (!skipped && !key.starts_with("@"))
        strings_.push_back({begin, at_, std::move(value), key, open_.size(), false});
      if (!open_.empty()) open_.back().has_text |= is_among(key, kTextKeys);
      return false;
    }
    const size_t end = std::min(text_.find_first_of(",]} \t\r\n", at_), text_.size());
    const std::string_view word = std::string_view(text_).substr(at_, end - at_);
    const bool number =
        !word.empty() && word.find_first_not_of("0123456789+-.eE") == word.npos && word.find_first_of("0123456789") != word.npos;
    if (!number && word != "true" && word != "false" && word != "null") fail("a value");
    at_ = end;
    return false;
  }

  void read_key() {
    skip_blanks();
    if (here() != '"') fail("a key in quotes");
    Container& object = open_.back();
    object.key = read_string();
    object.describes = object.describes && (is_among(object.key, kTextKeys) || is_among(object.key, kOtherKeys));
    skip_blanks();
    if (here() != ':') fail("\":\"");
    ++at_;
  }

  // Of an object that describes a message only its text is one.
  void close() {
    const Container& object = open_.back();
    if (object.object && object.describes && object.has_text)
      strings_.erase(std::remove_if(strings_.begin() + static_cast<ptrdiff_t>(object.strings), strings_.end(),
                                    [&](const String& s) { return s.depth != open_.size() || !is_among(s.key, kTextKeys); }),
                     strings_.end());
    open_.pop_back();
    ++at_;
  }

  std::string read_string() {
    std::string value;
    const size_t begin = at_++;
    while (here() != '"') {
      const char c = here();
      if (at_ >= text_.size()) file_.refuse(begin, "this string of JSON is not closed");
      if (static_cast<unsigned char>(c) < ' ') fail("the end of the string");
      if (c != '\\') {
        value += c;
        ++at_;
        continue;
      }
      constexpr std::string_view kEscapes = "\"\\/bfnrt", kMeant = "\"\\/\b\f\n\r\t";
      const char escaped = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
      if (const size_t known = kEscapes.find(escaped); escaped != 0 && known != kEscapes.npos) {
        value += kMeant[known];
        at_ += 2;
      } else if (const size_t size = append_escaped_unit(value, std::string_view(text_).substr(at_)); size > 0 && escaped == 'u') {
        at_ += size;
      } else {
        fail("an escape such as \\n or \\u00e9");
      }
    }
    ++at_;
    return value;
  }

  void add(const String& s, bool ascii) {
    Fragments fragments;
    if (s.locale && !languages_.target.empty())
      fragments = {{with_underscore(languages_.target)}};
    else if (!s.locale)
      fragments = file_.message(s.value, {});
    if (fragments.empty()) return;
    file_.replace_value(s.begin, s.end, std::move(fragments), [ascii](std::string& out, const std::string& value) {
      std::string escaped;
      for (const char c : value) {
        if (append_escape(escaped, c)) continue;
        if (static_cast<unsigned char>(c) < ' ')
          escaped += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
        else
          escaped += c;
      }
      out += '"';
      ascii ? append_ascii(out, escaped) : void(out += escaped);
      out += '"';
    });
  }

  JsonMessages& file_;
  const std::string& text_;
  const Languages& languages_;
  std::vector<Container> open_;
  std::vector<String> strings_;
  size_t at_ = 0;
};

JsonMessages::JsonMessages(std::string text, const Languages& languages) : MessageFile(std::move(text)) {
  require_utf8();
  Reader(*this, languages).read();
}

}  // namespace starling
