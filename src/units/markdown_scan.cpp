#include "units/markdown_scan.h"

#include <md4c.h>

#include <algorithm>
#include <exception>

#include "base/ascii.h"
#include "base/error.h"
#include "base/utf8.h"

namespace starling {
namespace {

constexpr size_t kLongestHidden = 2000, kLongestBraces = 100, kLongestLabel = 100;  // bytes

// Hides what is no Markdown, by letters in its place.
class Hider {
 public:
  Hider(std::string_view text, std::vector<Range>& hidden) : text_(text), shown_(text), hidden_(hidden) {}

  std::string hide() {
    size_t at = front_matter();
    hide_bytes(0, at, ' ');
    for (bool line_begins = true; at < text_.size();) {
      if (line_begins && within_fence(line_at(at))) {
        at += line_at(at).size() + 1;
        continue;
      }
      const size_t end = line_begins ? std::max(whole_line(at), within_line(at)) : within_line(at);
      line_begins = text_[at] == '\n';
      at = std::max(end, at + 1);
    }
    return std::move(shown_);
  }

 private:
  bool begins_line(size_t at) const {
    while (at > 0 && (text_[at - 1] == ' ' || text_[at - 1] == '\t')) --at;
    return at == 0 || text_[at - 1] == '\n';
  }
  std::string_view line_at(size_t at) const { return text_.substr(at, std::min(text_.find('\n', at), text_.size()) - at); }

  // Returns the end of the YAML or TOML at the beginning.
  size_t front_matter() const {
    const size_t begin = byte_order_mark(text_);
    const std::string_view fence = trimmed(line_at(begin), " \t\r");
    if (fence != "---" && fence != "+++") return begin;
    for (size_t at = begin + line_at(begin).size() + 1; at < text_.size(); at += line_at(at).size() + 1) {
      const std::string_view line = trimmed(line_at(at), " \t\r");
      if (line == fence || (fence == "---" && line == "...")) return std::min(at + line_at(at).size() + 1, text_.size());
    }
    return begin;
  }

  // Returns whether a line belongs to a block of code between fences.
  bool within_fence(std::string_view line) {
    const std::string_view rest = line.substr(std::min(line.find_first_not_of(" \t>"), line.size()));
    const size_t run = std::min(rest.find_first_not_of(fence_.empty() ? rest.substr(0, 1) : fence_.substr(0, 1)), rest.size());
    const bool marks = rest.starts_with("```") || rest.starts_with("~~~");
    if (fence_.empty()) {
      if (!marks || (rest[0] == '`' && rest.find('`', run) != rest.npos)) return false;
      fence_ = rest.substr(0, run);
    } else if (marks && run >= fence_.size() && trimmed(rest.substr(run), " \t\r").empty()) {
      fence_ = {};
    }
    return true;
  }

  // Lines that are no text: containers (:::note), code of MDX, and the labels of footnotes.
  size_t whole_line(size_t at) {
    const std::string_view line = line_at(at);
    const size_t indent = std::min(line.find_first_not_of(" \t>"), line.size());
    const std::string_view rest = trimmed(line.substr(indent), " \t\r");
    const bool imports = rest.starts_with("import ") && (rest.find(" from ") != rest.npos || rest.find_first_of("'\"") == 7);
    const bool exports = rest.starts_with("export ") && rest.find_first_of("{=(") != rest.npos;
    if (rest.starts_with(":::")) return hide_and_keep(at + indent, at + indent + rest.size());
    if (indent == 0 && (imports || exports)) {
      size_t end = at;
      while (end < text_.size() && !trimmed(line_at(end), " \t\r").empty()) end += line_at(end).size() + 1;
      return hide_and_keep(at, std::min(end, text_.size()));
    }
    const size_t colon = rest.substr(0, kLongestLabel).find("]:");
    if (indent > 3 || !rest.starts_with("[^") || colon == rest.npos || rest.substr(0, colon).find(' ') != rest.npos) return at;
    const size_t begin = at + indent, end = begin + colon + 2;  // an item of a list, which has paragraphs of its own too
    hide_and_keep(begin + 2, end);
    shown_[begin] = '-', shown_[begin + 1] = ' ';
    return end;
  }

  // Short codes ({{< >}}, {% %}), braces, references to footnotes ([^1]) and kinds of notes ([!NOTE]).
  size_t within_line(size_t at) {
    const std::string_view rest = text_.substr(at, kLongestHidden);
    if (rest[0] == '\\') return at + 2;
    if (rest.starts_with("<!--") && !begins_line(at)) {  // md4c knows comments in lines of their own
      const size_t end = rest.find("-->");
      return end == rest.npos || rest.substr(0, end).find("```") != rest.npos ? at : hide_and_keep(at, at + end + 3);
    }
    if (rest[0] == '[' && rest.size() > 3 && (rest[1] == '^' || rest[1] == '!')) {
      const size_t end = rest.substr(0, kLongestLabel).find(']');
      if (end == rest.npos || end < 3 || rest.substr(2, end - 2).find_first_of(" \n[(") != rest.npos) return at;
      return end + 1 < rest.size() && rest[end + 1] == '(' ? at : hide_and_keep(at, at + end + 1);
    }
    if (rest[0] == '$') return equation(at, rest);
    if (rest[0] != '{') return at;
    for (const auto& [open, close] : {std::pair("{{", "}}"), {"{%", "%}"}}) {
      if (!rest.starts_with(open)) continue;
      const size_t end = rest.find(close);
      const std::string_view inner = rest.substr(0, end);
      const bool whole = end != rest.npos && inner.find("\n\n") == inner.npos && inner.find("```") == inner.npos;
      return whole ? hide_and_keep(at, at + end + 2) : at;
    }
    int depth = 0;
    for (size_t i = 0; i < std::min(rest.size(), kLongestBraces) && rest[i] != '\n' && rest[i] != '`'; ++i) {
      depth += rest[i] == '{' ? 1 : rest[i] == '}' ? -1 : 0;
      if (depth == 0) return hide_and_keep(at, at + i + 1);
    }
    return at;
  }

  // Returns the end of an equation. A dollar sign of money, which md4c would pair with another one, is hidden behind a full stop.
  size_t equation(size_t at, std::string_view rest) {
    constexpr size_t kLongest = 300;
    if (rest.starts_with("$$")) return at + 2;
    const bool may_open = rest.size() > 1 && !is_ascii_space(rest[1]) && (at == 0 || !is_ascii_letter_or_digit(text_[at - 1]));
    for (size_t i = 2; may_open && i < std::min(rest.size(), kLongest) && !rest.substr(i).starts_with("\n\n"); ++i)
      if (rest[i] == '$' && !is_ascii_space(rest[i - 1]) && (i + 1 == rest.size() || !is_ascii_letter_or_digit(rest[i + 1])))
        return at + i + 1;
    shown_[at] = '.';
    return at + 1;
  }

  // Hides bytes, and the breaks of lines within them, so that they are one piece.
  size_t hide_and_keep(size_t begin, size_t end) {
    while (end > begin && is_ascii_space(text_[end - 1])) --end;
    std::fill(shown_.begin() + static_cast<ptrdiff_t>(begin), shown_.begin() + static_cast<ptrdiff_t>(end), 'x');
    hidden_.push_back({static_cast<int64_t>(begin), static_cast<int64_t>(end)});
    return end;
  }
  void hide_bytes(size_t begin, size_t end, char by) {
    for (size_t i = begin; i < end; ++i)
      if (shown_[i] != '\n' && shown_[i] != '\r') shown_[i] = by;
  }

  std::string_view text_;
  std::string shown_;
  std::vector<Range>& hidden_;
  std::string_view fence_;  // that is open
};

// A row such as |-|:-:|, below the head of a table: md4c wants three characters a column, so dashes are added.
class TableRules {
 public:
  std::string widen(std::string text) {
    if (text.find('|') == std::string::npos) return text;
    std::string wide;
    std::string_view head;
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
      const std::string_view line = std::string_view(text).substr(at, end - at);
      const bool rule = head.find('|') != head.npos && line.find('|') != line.npos && line.find('-') != line.npos &&
                        line.find_first_not_of("|-: \t\r\n>") == line.npos;
      for (size_t i = 0; i < line.size(); ++i) {
        wide += line[i];
        if (!rule || line[i] != '-' || (i > 0 && line[i - 1] == '-')) continue;
        wide += "--";
        added_.push_back(wide.size());
      }
      head = line;
      at = end;
    }
    return wide;
  }
  /// Returns where a byte of the wide text stands in the other one.
  size_t original(size_t wide) const {
    return wide - 2 * static_cast<size_t>(std::upper_bound(added_.begin(), added_.end(), wide) - added_.begin());
  }

 private:
  std::vector<size_t> added_;  // where dashes end
};

// What md4c's callbacks fill.
struct Reader {
  std::string_view text;
  const TableRules& rules;
  const std::vector<Range>& hidden;
  const SeeMarkdown& see;
  std::exception_ptr failed;  // md4c is written in C, which no exception may cross
  std::vector<MarkdownEvent> events;
  std::vector<MD_BLOCKTYPE> blocks;

  // Ends a leaf; of a tight list, items have text without a paragraph.
  void finish() {
    if (events.empty()) return;
    const MD_BLOCKTYPE block = blocks.empty() ? MD_BLOCK_P : blocks.back();
    const bool cell = block == MD_BLOCK_TD || block == MD_BLOCK_TH;
    MarkdownLeaf leaf{block == MD_BLOCK_H      ? MarkdownLeaf::heading
                      : cell                   ? MarkdownLeaf::cell
                      : block == MD_BLOCK_HTML ? MarkdownLeaf::html
                                               : MarkdownLeaf::paragraph,
                      std::move(events)};
    events.clear();
    if (block == MD_BLOCK_CODE || failed) return;
    try {
      see(leaf, hidden);
    } catch (...) {
      failed = std::current_exception();
    }
  }
  void add(MarkdownEvent::Kind kind, char span, const char* bytes = nullptr, size_t size = 0) {
    MarkdownEvent event{kind, span};
    if (bytes >= text.data() && bytes + size <= text.data() + text.size()) {
      event.begin = rules.original(static_cast<size_t>(bytes - text.data()));
      event.end = rules.original(static_cast<size_t>(bytes - text.data()) + size);
    }
    events.push_back(event);
  }
};

char letter_of(MD_SPANTYPE span) {
  switch (span) {
    case MD_SPAN_EM:
      return 'e';
    case MD_SPAN_STRONG:
      return 's';
    case MD_SPAN_A:
      return 'a';
    case MD_SPAN_IMG:
      return 'i';
    case MD_SPAN_CODE:
      return 'c';
    case MD_SPAN_DEL:
      return 'd';
    default:
      return 'm';
  }
}

MarkdownEvent::Kind kind_of(MD_TEXTTYPE type) {
  switch (type) {
    case MD_TEXT_BR:
    case MD_TEXT_SOFTBR:
      return MarkdownEvent::line_break;
    case MD_TEXT_ENTITY:
      return MarkdownEvent::entity;
    case MD_TEXT_HTML:
      return MarkdownEvent::html;
    case MD_TEXT_CODE:
    case MD_TEXT_LATEXMATH:
      return MarkdownEvent::code;
    default:
      return MarkdownEvent::text;
  }
}

}  // namespace

void scan_markdown(std::string_view text, const SeeMarkdown& see) {
  std::vector<Range> hidden;
  TableRules rules;
  const std::string shown = rules.widen(Hider(text, hidden).hide());
  Reader reader{shown, rules, hidden, see, nullptr, {}, {}};
  MD_PARSER parser{};
  parser.flags = MD_DIALECT_GITHUB | MD_FLAG_LATEXMATHSPANS;
  parser.enter_block = [](MD_BLOCKTYPE type, void*, void* to) {
    static_cast<Reader*>(to)->finish();
    static_cast<Reader*>(to)->blocks.push_back(type);
    return static_cast<int>(static_cast<Reader*>(to)->failed != nullptr);
  };
  parser.leave_block = [](MD_BLOCKTYPE, void*, void* to) {
    static_cast<Reader*>(to)->finish();
    static_cast<Reader*>(to)->blocks.pop_back();
    return static_cast<int>(static_cast<Reader*>(to)->failed != nullptr);
  };
  parser.enter_span = [](MD_SPANTYPE type, void*, void* to) {
    static_cast<Reader*>(to)->add(MarkdownEvent::enter, letter_of(type));
    return 0;
  };
  parser.leave_span = [](MD_SPANTYPE type, void*, void* to) {
    static_cast<Reader*>(to)->add(MarkdownEvent::leave, letter_of(type));
    return 0;
  };
  parser.text = [](MD_TEXTTYPE type, const char* bytes, MD_SIZE size, void* to) {
    static_cast<Reader*>(to)->add(kind_of(type), 0, bytes, size);
    return 0;
  };
  const int status = md_parse(shown.data(), static_cast<MD_SIZE>(shown.size()), &parser, &reader);
  if (reader.failed) std::rethrow_exception(reader.failed);
  CHECK(status == 0, "md4c could not read {} bytes", shown.size());
}

}  // namespace starling
