// libyaml tells where each scalar begins and ends, in characters; everything between them stays.
#include "units/yaml_messages.h"

#include <fmt/format.h>
#include <yaml.h>

#include <algorithm>
#include <optional>

#include "base/ascii.h"
#include "base/utf8.h"

namespace starling {
namespace {

constexpr size_t kDeepestYaml = 1000;

// Whether a plain scalar would be read as text, whatever stands around it.
bool is_plain_text(std::string_view text) {
  if (text.empty() || text.find('\n') != text.npos || text.front() == ' ' || text.back() == ' ' || text.back() == ':') return false;
  if (text.find(": ") != text.npos || text.find(" #") != text.npos || text.find_first_of("{}[],\"\t") != text.npos) return false;
  if (std::string_view("&*!|>'%@`#?-:").find(text.front()) != std::string_view::npos) return false;
  std::string word(text);
  for (char& c : word) c = ascii_lower(c);
  for (const std::string_view other : {"true", "false", "yes", "no", "on", "off", "null", "~", "y", "n"})
    if (word == other) return false;
  return !std::all_of(text.begin(), text.end(), [](char c) { return !is_ascii_letter(c) && static_cast<unsigned char>(c) < 0x80; });
}

void write_double_quoted(std::string& out, const std::string& text) {
  out += '"';
  for (const char c : text) {
    if (c != '\r' && append_escape(out, c)) continue;
    if (static_cast<unsigned char>(c) < ' ')
      out += fmt::format("\\x{:02x}", static_cast<unsigned>(c));
    else
      out += c;
  }
  out += '"';
}

}  // namespace

class YamlMessages::Reader {
 public:
  Reader(YamlMessages& file, const Languages& languages) : file_(file), text_(file.text_), languages_(languages) {
    yaml_parser_initialize(&parser_);
    bytes_ = byte_order_mark(text_);  // which libyaml would count as a character
    yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(text_.data()) + bytes_, text_.size() - bytes_);
    yaml_parser_set_encoding(&parser_, YAML_UTF8_ENCODING);
  }
  ~Reader() { yaml_parser_delete(&parser_); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  void read() {
    for (bool more = true; more;) {
      yaml_event_t event;
      if (yaml_parser_parse(&parser_, &event) == 0)
        throw_at(parser_.problem_mark.line, fmt::format("this is not YAML: {}", parser_.problem ? parser_.problem : "out of memory"));
      more = event.type != YAML_STREAM_END_EVENT;
      const std::string wrong = take(event);
      const size_t line = event.start_mark.line;
      yaml_event_delete(&event);
      if (!wrong.empty()) throw_at(line, wrong);
    }
  }

 private:
  // A text of a mapping whose keys are plural categories, which those that are missing get too.
  struct Other {
    size_t key, begin, end;  // of its entry: the key, and the value up to its end
    Fragments fragments;     // empty: the value is no text, and written as it is
    size_t edited;           // where the bytes that the fragments replace begin
    WriteValue write;
  };
  struct Node {
    bool mapping, key;  // the next scalar is a key
    bool skipped = false, flow = false;
    size_t key_begin = 0;                      // of the last key
    bool counts = true;                        // so far all keys are plural categories
    std::vector<std::string> categories = {};  // if so, the keys
    std::optional<Other> other = {};
  };

  [[noreturn]] void throw_at(size_t line, const std::string& why) const {
    size_t at = 0;
    for (; line > 0 && at < text_.size(); --line) at = std::min(text_.find('\n', at), text_.size() - 1) + 1;
    file_.refuse(at, why);
  }

  // Returns what is wrong.
  std::string take(const yaml_event_t& event) {
    switch (event.type) {
      case YAML_MAPPING_START_EVENT:
      case YAML_SEQUENCE_START_EVENT:
        if (open_.size() == kDeepestYaml) return fmt::format("this is deeper than {} levels", kDeepestYaml);
        no_categories();
        open_.push_back({event.type == YAML_MAPPING_START_EVENT, true, is_key()});  // keys that are not scalars stay
        open_.back().flow = event.type == YAML_MAPPING_START_EVENT && event.data.mapping_start.style == YAML_FLOW_MAPPING_STYLE;
        return "";
      case YAML_MAPPING_END_EVENT:
      case YAML_SEQUENCE_END_EVENT:
        add_categories();
        open_.pop_back();
        finish_node();
        return "";
      case YAML_ALIAS_EVENT:
        no_categories();
        finish_node();
        return "";
      case YAML_SCALAR_EVENT:
        add(event);
        if (open_.empty() || !open_.back().other) file_.end_group();
        finish_node();
        return "";
      default:
        return "";
    }
  }
  bool is_key() const { return !open_.empty() && ((open_.back().mapping && open_.back().key) || open_.back().skipped); }
  void finish_node() {
    if (!open_.empty() && open_.back().mapping) open_.back().key = !open_.back().key;
  }

  // Returns the byte of a character; those that are asked for only grow.
  size_t byte_of(size_t character) {
    while (characters_ < character && bytes_ < text_.size()) {
      ++bytes_;
      while (bytes_ < text_.size() && is_continuation(static_cast<unsigned char>(text_[bytes_]))) ++bytes_;
      ++characters_;
    }
    return bytes_;
  }

  void add(const yaml_event_t& event) {
    const auto& scalar = event.data.scalar;
    const std::string value(reinterpret_cast<const char*>(scalar.value), scalar.length);
    size_t begin = byte_of(event.start_mark.index);
    const size_t end = byte_of(event.end_mark.index);
    if (scalar.anchor != nullptr) {  // "&name" stands before it
      begin = text_.find_first_of(" \t\n", begin);
      begin = std::min(text_.find_first_not_of(" \t\r\n", begin), end);
    }
    const bool plain = scalar.style == YAML_PLAIN_SCALAR_STYLE;
    if (is_key()) {
      Node& node = open_.back();
      node.key_begin = begin;
      node.counts = node.counts && node.mapping && plain && is_plural_category(value);
      if (node.counts) node.categories.push_back(value);
      const bool root = open_.size() == 1 && !open_.back().skipped && plain;  // Rails names the language there
      if (root && !languages_.source.empty() && !languages_.target.empty() && main_language(value) == main_language(languages_.source) &&
          is_language_code(value))
        file_.replace(begin, end, {{languages_.target}});
      return;
    }
    const bool block = scalar.style == YAML_LITERAL_SCALAR_STYLE || scalar.style == YAML_FOLDED_SCALAR_STYLE;
    scalar_ = begin;
    if (is_other() && !block) open_.back().other = {open_.back().key_begin, begin, end, {}, begin, nullptr};
    if (scalar.tag != nullptr || (plain && !is_plain_text(value) && value.find_first_of(" \n") == std::string::npos)) return;
    Fragments fragments = file_.message(value, {});
    if (fragments.empty()) return;
    if (block) return add_block(begin, end, std::move(fragments), scalar.style == YAML_FOLDED_SCALAR_STYLE);
    const bool single = scalar.style == YAML_SINGLE_QUOTED_SCALAR_STYLE;
    replace_value(begin, end, std::move(fragments), [plain, single](std::string& out, const std::string& text) {
      if (plain && is_plain_text(text)) {
        out += text;
      } else if (single && text.find('\n') == std::string::npos) {
        out += '\'';
        for (const char c : text) out += c == '\'' ? "''" : std::string(1, c);
        out += '\'';
      } else {
        write_double_quoted(out, text);
      }
    });
  }

  // Whether the next value is that of the key "other" among plural categories.
  bool is_other() const {
    return !open_.empty() && !open_.back().key && open_.back().counts && !open_.back().categories.empty() &&
           open_.back().categories.back() == "other";
  }
  void no_categories() {
    if (!open_.empty()) open_.back().counts = false, open_.back().other.reset();
  }

  void replace_value(size_t begin, size_t end, Fragments fragments, const WriteValue& write) {
    if (is_other()) open_.back().other = {open_.back().key_begin, scalar_, end, fragments, begin, write};
    file_.replace_value(begin, end, std::move(fragments), write);
  }

  // Adds the entries of a mapping such as "one: ..., other: ..." that the target language needs beside them, behind "other".
  void add_categories() {
    const Node& node = open_.back();
    if (!node.counts || !node.other || node.categories.size() < 2) return;
    const Other& other = *node.other;
    size_t line = other.key;
    while (line > 0 && text_[line - 1] != '\n') --line;
    const std::string indent = text_.substr(line, other.key - line), value = text_.substr(other.begin, other.edited - other.begin);
    if (!node.flow && indent.find_first_not_of(' ') != std::string::npos) return;  // as behind the dash of a list
    const size_t at = node.flow ? other.end : std::min(text_.find_first_of("\r\n", other.end), text_.size());
    const std::string between = node.flow ? ", " : line_end_ + indent;
    for (const std::string_view category : missing_categories(file_.categories_, node.categories)) {
      file_.insert(at, fmt::format("{}{}: {}", between, category, value));
      if (other.fragments.empty())
        file_.insert(at, text_.substr(other.edited, other.end - other.edited));
      else
        file_.replace_value(at, at, other.fragments, other.write);
    }
  }

  // Replaces the lines of a block, behind its "|" or ">", with their indentation.
  void add_block(size_t begin, size_t end, Fragments fragments, bool folded) {
    const size_t first = text_.find('\n', begin) + 1;
    size_t content = text_.find_first_not_of(" \r\n", first);
    if (first == 0 || content == std::string::npos || content >= end) return;
    size_t line = content;
    while (line > first && text_[line - 1] != '\n') --line;
    if (text_.find_first_of("123456789", begin) < first - 1) return;  // it tells its indentation
    const std::string indent = text_.substr(line, content - line);
    size_t last = end;  // behind the last line of text
    while (last > content && is_ascii_space(text_[last - 1])) --last;
    replace_value(line, last, std::move(fragments), [indent, folded, line_end = line_end_](std::string& out, std::string text) {
      while (text.ends_with('\n')) text.pop_back();
      for (size_t at = 0; at <= text.size();) {
        const size_t next = std::min(text.find('\n', at), text.size());
        for (int i = 0; at > 0 && i < 1 + folded; ++i) out += line_end;
        if (next > at) out += indent + text.substr(at, next - at);
        at = next + 1;
      }
    });
  }

  YamlMessages& file_;
  const std::string& text_;
  const Languages& languages_;
  yaml_parser_t parser_;
  std::vector<Node> open_;
  const std::string line_end_ = text_.find("\r\n") == std::string::npos ? "\n" : "\r\n";
  size_t scalar_ = 0;                  // where the last value begins
  size_t characters_ = 0, bytes_ = 0;  // how many have been passed
};

YamlMessages::YamlMessages(std::string text, const Languages& languages)
    : MessageFile(std::move(text), true, languages.target), languages_(languages) {
  require_utf8();
  check();
}

void YamlMessages::read() { Reader(*this, languages_).read(); }

}  // namespace starling
