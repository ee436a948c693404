#include "units/json_messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/ascii.h"
#include "base/utf8.h"
#include "units/json_cursor.h"

namespace starling {
namespace {

// Keys of an object that describes one message: the text, and what is said about it.
constexpr std::string_view kTextKeys[] = {"message", "defaultMessage"};
constexpr std::string_view kOtherKeys[] = {"description", "placeholders", "comment", "context", "id",  "hash",
                                           "file",        "start",        "end",     "line",    "col", "developer_comment"};

constexpr size_t kMostDescribing = 50;  // keys of an object that describes one message

bool is_among(std::string_view word, std::span<const std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace

// Reads values one after the other; containers that are open are on a stack of its own.
class JsonMessages::Reader : JsonCursor {
 public:
  Reader(JsonMessages& file, const Languages& languages)
      : JsonCursor(file.text_, [&file](size_t at, const std::string& why) { file.refuse(at, why); }),
        file_(file),
        languages_(languages),
        ascii_(std::ranges::all_of(text_, [](char c) { return static_cast<unsigned char>(c) < 0x80; }) &&
               text_.find("\\u") != std::string::npos) {}

  void read() {
    at_ = byte_order_mark(text_);
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
    add_strings();
  }

 private:
  struct Container {
    bool object;
    size_t strings;  // how many there were before it
    std::string key;
    bool skipped;
    bool describes = object, has_text = false;
    size_t keys = 0;
  };
  struct String {
    size_t begin, end;
    std::string value, key;
    size_t depth;
    size_t key_begin = 0, key_end = 0;
    bool locale = false;  // the name of the file's language
  };
  // Texts whose keys differ by their plural category only, as i18next has them: key_one, key_other.
  struct Plural {
    std::string base;
    size_t depth = 0, end = 0;  // of the last one
    std::vector<std::string> categories;
    String other = {};
    Fragments fragments;  // of "other"
  };

  // Reads a value or the beginning of a container; returns whether another value is expected.
  bool read_value(char c) {
    if (c == '{' || c == '[') {
      const bool within = !open_.empty();
      const bool skipped = within && (open_.back().skipped || open_.back().key.starts_with("@"));
      check_depth(open_.size());
      ++at_;
      open_.push_back({c == '{', strings_.size(), "", skipped});
      describing_ += open_.back().describes;
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
        strings_.push_back({begin, at_, std::move(value), key, open_.size(), 0, 0, true});
      else if (!skipped && !key.starts_with("@"))
        strings_.push_back({begin, at_, std::move(value), key, open_.size(), key_begin_, key_end_, false});
      if (!open_.empty()) open_.back().has_text |= is_among(key, kTextKeys);
      if (describing_ == 0) add_strings();
      return false;
    }
    skip_word();
    return false;
  }

  void read_key() {
    skip_blanks();
    if (here() != '"') fail("a key in quotes");
    Container& object = open_.back();
    key_begin_ = at_;
    object.key = read_string();
    key_end_ = at_;
    const bool describes = (is_among(object.key, kTextKeys) || is_among(object.key, kOtherKeys)) && ++object.keys <= kMostDescribing;
    if (object.describes && !describes) object.describes = false, --describing_;
    skip_blanks();
    if (here() != ':') fail("\":\"");
    ++at_;
  }

  // Of an object that describes a message only its text is one.
  void close() {
    const Container& object = open_.back();
    describing_ -= object.describes;
    if (object.describes && object.has_text)
      strings_.erase(std::remove_if(strings_.begin() + static_cast<ptrdiff_t>(object.strings), strings_.end(),
                                    [&](const String& s) { return s.depth != open_.size() || !is_among(s.key, kTextKeys); }),
                     strings_.end());
    open_.pop_back();
    ++at_;
    if (describing_ == 0) add_strings();
    if (describing_ == 0) end_plural();
  }

  // Adds strings, once it is known whether their objects describe messages.
  void add_strings() {
    for (const String& s : strings_) {
      const size_t mark = s.key.rfind('_');
      const std::string base = s.key.substr(0, mark), category = mark == std::string::npos ? "" : s.key.substr(mark + 1);
      const bool counts = is_plural_category(category) && !base.ends_with("_ordinal");
      if (!plural_.categories.empty() && (!counts || base != plural_.base || s.depth != plural_.depth)) end_plural();
      Fragments fragments = add(s);
      if (counts) {
        plural_.base = base, plural_.depth = s.depth, plural_.end = s.end;
        plural_.categories.push_back(category);
        if (category == "other") plural_.other = s, plural_.fragments = std::move(fragments);
      } else {
        file_.end_group();
      }
    }
    strings_.clear();
  }

  // Adds the texts of plural categories that the target language needs beside those that are there, with the text of "other".
  void end_plural() {
    const Plural plural = std::exchange(plural_, {});
    const String& other = plural.other;
    const std::string written = text_.substr(other.key_begin, other.key_end - other.key_begin);
    if (plural.categories.size() > 1 && !plural.fragments.empty() && written.ends_with("_other\"")) {
      const size_t before = text_.find_last_not_of(" \t\r\n", other.key_begin - 1) + 1;
      const std::string blanks = text_.substr(before, other.key_begin - before),
                        colon = text_.substr(other.key_end, other.begin - other.key_end);
      for (const std::string_view category : missing_categories(file_.categories_, plural.categories)) {
        const std::string_view base = std::string_view(written).substr(0, written.rfind('_') + 1);
        file_.insert(plural.end, fmt::format(",{}{}{}\"{}", blanks, base, category, colon));
        replace_value(plural.end, plural.end, plural.fragments);
      }
    }
    file_.end_group();
  }

  Fragments add(const String& s) {
    Fragments fragments;
    if (s.locale && !languages_.target.empty())
      fragments = {{with_underscore(languages_.target)}};
    else if (!s.locale)
      fragments = file_.message(s.value, {});
    if (!fragments.empty()) replace_value(s.begin, s.end, fragments);
    return fragments;
  }
  void replace_value(size_t begin, size_t end, Fragments fragments) {
    file_.replace_value(begin, end, std::move(fragments),
                        [ascii = ascii_](std::string& out, const std::string& value) { append_json_string(out, value, ascii); });
  }

  JsonMessages& file_;
  const Languages& languages_;
  std::vector<Container> open_;
  std::vector<String> strings_;
  Plural plural_;
  size_t key_begin_ = 0, key_end_ = 0;  // of the last key
  const bool ascii_;                    // the file writes other characters as escapes
  size_t describing_ = 0;               // containers that are open and may describe a message
};

JsonMessages::JsonMessages(std::string text, const Languages& languages)
    : MessageFile(std::move(text), true, languages.target), languages_(languages) {
  require_utf8();
  check();
}

void JsonMessages::read() { Reader(*this, languages_).read(); }

}  // namespace starling
