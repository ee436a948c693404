#include "units/string_catalog.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/quotes.h"
#include "base/utf8.h"
#include "text/languages.h"
#include "units/json_cursor.h"

namespace starling {
namespace {

constexpr std::string_view kReviewed = "\"needs_review\"";  // the state of a translation that nobody has seen

}  // namespace

// Reads one entry after the other: "key": {"localizations": {"en": {"stringUnit": {"state": ..., "value": ...}}, ...}}. Without a
// localization in the source language the key is the text.
class StringCatalog::Reader : public JsonCursor {
 public:
  explicit Reader(StringCatalog& file)
      : JsonCursor(file.text_, [&](size_t at, const std::string& why) { file.refuse(at, why); }), file_(file) {}

  // Finds the texts, once the whole file is known to be JSON.
  void begin() {
    at_ = byte_order_mark(text_);
    bool found = false;
    read_object([&](const std::string& key, size_t key_begin) {
      if (key == "sourceLanguage" && here() == '"') {
        file_.source_ = read_string();
        const std::string& ours = file_.languages_.source;
        if (!ours.empty() && main_language(ours) != main_language(file_.source_))
          refuse(
              key_begin,
              fmt::format("sourceLanguage is {}, but the model's language is {}; use another model, or give --source-language {} if both "
                          "are the same",
                          printable(file_.source_), ours, printable(file_.source_)));
        return;
      }
      if (key == "strings" && here() == '{') file_.strings_ = at_, found = true;
      skip_value();
    });
    skip_blanks();
    if (at_ < text_.size()) fail("the end");
    if (!found) refuse(0, "\"strings\" is missing; this is not a string catalog");
  }

  void read() {
    at_ = file_.strings_;
    read_object([&](const std::string& key, size_t key_begin) {
      read_entry(key, key_begin);
      file_.end_group();
    });
  }

 private:
  struct Span {
    size_t begin = 0, end = 0;
  };
  // Of the localization that is added: bytes, or a value.
  struct Piece {
    std::string bytes;
    Fragments value;
  };
  struct Object : Span {
    Span last;  // member, from its key
  };
  // Of a text: where its key begins, what is said about it, and its localizations, of which those of the source and of the target.
  struct Entry {
    size_t key_begin;
    Object whole, localizations;
    Span source, target;
  };

  // Whether all string units of a localization are copies of the source, which Xcode makes for translators.
  bool is_new(Span localization) {
    const size_t before = std::exchange(at_, localization.begin);
    bool all = true, some = false;
    const std::function<void(bool)> look = [&](bool unit) {
      if (here() != '{') return skip_value();
      read_object([&](const std::string& key, size_t) {
        if (!unit || key != "state" || here() != '"') return look(key == "stringUnit");
        some = true;
        all = read_string() == "new" && all;
      });
    };
    look(false);
    at_ = before;
    return all && some;
  }

  void read_entry(const std::string& key, size_t key_begin) {
    Entry entry{key_begin, {{at_, 0}, {}}, {}, {}, {}};
    Object& localizations = entry.localizations;
    bool skipped = false;
    read_object([&](const std::string& name, size_t begin) {
      if (name == "localizations" && here() == '{') {
        localizations.begin = at_;
        read_object([&](const std::string& language, size_t language_begin) {
          const size_t value = at_;
          skip_value();
          localizations.last = {language_begin, at_};
          const Span span{value, at_};
          if (language == file_.source_) entry.source = span;
          if (language == file_.languages_.target) is_new(span) ? void(entry.target = span) : void(skipped = true);
        });
        localizations.end = at_;
      } else {
        skipped |= name == "shouldTranslate" && here() == 'f';
        skip_value();
      }
      entry.whole.last = {begin, at_};
    });
    entry.whole.end = at_;
    if (!skipped) add(key, entry);
    at_ = entry.whole.end;
  }

  // Adds the target's localization, or replaces the one that is there: by a copy of the source's, or by the key in the form that Xcode
  // writes.
  void add(const std::string& key, const Entry& entry) {
    const Object& localizations = entry.localizations;
    pieces_.clear();
    const std::string colon = colon_before(entry.whole.begin);
    const std::string line = blanks_before(entry.key_begin);  // a break of the line with the key's indentation, if there is one
    const auto indent = [&](size_t levels) { return line.find('\n') == line.npos ? "" : line + std::string(2 * levels, ' '); };
    const std::string language = fmt::format("\"{}\"{}", file_.languages_.target, colon);
    if (localizations.end == 0) push(fmt::format("{}\"localizations\"{}{{", indent(1), colon));
    const std::string before = localizations.last.end > 0 ? blanks_before(localizations.last.begin) : indent(2);
    if (entry.target.end == 0) push(before + language);
    if (entry.source.end > 0) {
      at_ = copied_ = entry.source.begin;
      copy_value(false);
      copy_to(entry.source.end);
    } else {
      push(fmt::format("{{{}\"stringUnit\"{}{{{}\"state\"{}{},{}\"value\"{}", indent(3), colon, indent(4), colon, kReviewed, indent(4),
                       colon));
      push_value(key, {});
      push(fmt::format("{}}}{}}}", indent(3), indent(2)));
    }
    if (localizations.end == 0) push(indent(1) + "}");
    if (std::ranges::all_of(pieces_, [](const Piece& piece) { return piece.value.empty(); })) return;
    if (entry.target.end > 0) {
      file_.replace(entry.target.begin, entry.target.end, {{""}});
      put_pieces(entry.target.end);
    } else {
      put(localizations.end > 0 ? localizations : entry.whole, localizations.end > 0          ? indent(1)
                                                               : line.find('\n') == line.npos ? ""
                                                                                              : line);
    }
  }

  // Writes the pieces as the last member of an object; in one without others its end gets a line, which `line` begins.
  void put(const Object& object, const std::string& line) {
    const size_t at = object.last.end > 0 ? object.last.end : object.end - 1;
    if (object.last.end > 0)
      file_.insert(at, ",");
    else if (object.begin + 1 < at)
      file_.replace(object.begin + 1, at, {{""}});
    put_pieces(at);
    if (object.last.end == 0) file_.insert(at, line);
  }
  void put_pieces(size_t at) {
    for (Piece& piece : pieces_)
      if (piece.value.empty())
        file_.insert(at, std::move(piece.bytes));
      else
        file_.replace_value(at, at, std::move(piece.value),
                            [](std::string& out, const std::string& value) { append_json_string(out, value, false); });
  }

  // Copies a value that begins here, with texts to translate in place of those of string units.
  void copy_value(bool unit) {
    if (here() != '{') return skip_value();
    read_object([&](const std::string& key, size_t) {
      if (unit && key == "state" && here() == '"') {
        copy_to(at_);
        push(std::string(kReviewed));
        read_string();
        copied_ = at_;
      } else if (unit && key == "value" && here() == '"') {
        copy_to(at_);
        const size_t begin = at_;
        const std::string value = read_string();
        push_value(value, text_.substr(begin, at_ - begin));
        copied_ = at_;
      } else if (key == "plural" && here() == '{') {
        copy_plural();
      } else {
        copy_value(key == "stringUnit");
      }
    });
  }

  // Copies the texts by plural category; those that the target needs and the source has not get the text of "other".
  void copy_plural() {
    std::vector<std::string> categories;
    Span other_pieces;
    size_t other_key = 0, other_value = 0, end = 0;
    read_object([&](const std::string& category, size_t key_begin) {
      const size_t begin = at_;
      copy_to(at_);
      const size_t first = pieces_.size();
      copy_value(false);
      copy_to(at_);
      categories.push_back(category);
      end = at_;
      if (category == "other") other_pieces = {first, pieces_.size()}, other_key = key_begin, other_value = begin;
    });
    if (other_key == 0) return;
    const size_t after = at_;
    copied_ = end;
    for (const std::string_view category : missing_categories(file_.categories_, categories)) {
      push(fmt::format(",{}\"{}\"{}", blanks_before(other_key), category, colon_before(other_value)));
      for (size_t i = other_pieces.begin; i < other_pieces.end; ++i) pieces_.push_back(Piece(pieces_[i]));
    }
    at_ = after;
  }

  void copy_to(size_t end) {
    push(text_.substr(copied_, end - copied_));
    copied_ = end;
  }
  void push(std::string bytes) { pieces_.push_back({std::move(bytes), {}}); }
  // A value of the file, or another if it has no bytes there.
  void push_value(const std::string& value, std::string bytes) {
    Fragments fragments = file_.message(value, {.icu = false});
    if (fragments.empty()) return push(std::move(bytes));
    pieces_.push_back({"", std::move(fragments)});
  }

  std::string blanks_before(size_t at) const {
    const size_t begin = text_.find_last_not_of(" \t\r\n", at - 1) + 1;
    return text_.substr(begin, at - begin);
  }
  // The colon in front of a value, with its blanks.
  std::string colon_before(size_t at) const {
    const size_t begin = text_.find_last_of('"', at - 1) + 1;
    return text_.substr(begin, at - begin);
  }

  StringCatalog& file_;
  std::vector<Piece> pieces_;
  size_t copied_ = 0;  // bytes up to here are among the pieces, while a localization is copied
};

StringCatalog::StringCatalog(std::string text, const Languages& languages)
    : MessageFile(std::move(text), false, languages.target), languages_(languages) {
  require_utf8();
  Reader(*this).begin();
  if (languages_.target.empty())
    refuse(0,
           "a string catalog has its translations by language, and the model does not say which language it translates into; "
           "give it one (data.target-language of its training, --target-language of import)");
  check();
}

void StringCatalog::read() { Reader(*this).read(); }

}  // namespace starling
