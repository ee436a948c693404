// md4c tells the bytes of texts, and the order of what begins and ends between them; the bytes of the marks themselves are read here.
#include "units/markdown.h"

#include <algorithm>

#include "base/ascii.h"
#include "units/markdown_escape.h"

namespace starling {

// Reads a leaf from its first mark or text to its last.
class Markdown::Leaf {
 public:
  Leaf(Markdown& file, const MarkdownLeaf& leaf, const std::vector<Range>& hidden)
      : file_(file), text_(file.text_), events_(leaf.events), hidden_(hidden) {
    style_.kind = leaf.kind;
  }

  void add() {
    size_t first = 0, last = events_.size();
    while (last > 0 && events_[last - 1].begin == SIZE_MAX && events_[last - 1].kind != MarkdownEvent::leave) --last;
    if (!find_beginning(first)) return;
    const size_t begin = at_;
    style_.at_line = begins_line(begin);
    UnitText unit;
    read(unit, first, last);
    if (!unit.has_words() && !unit.has_nested()) return;
    const size_t number = add_unit(std::move(unit));
    file_.replace(begin, at_, {{"", number}});
  }

 private:
  struct Open {
    char span;
    size_t pair;          // of the unit; SIZE_MAX: it has none
    size_t label = 0;     // of a link: where its text begins
    bool bracket = true;  // of a link
  };

  size_t add_unit(UnitText unit) {
    return file_.add_unit(
        std::move(unit), SentenceEnds::marks,
        [style = style_](std::string& out, UnitText::Place place, std::string_view text) { append_markdown(out, place, text, style); });
  }

  // Whether nothing but marks of containers stands before a byte on its line.
  bool begins_line(size_t at) const {
    while (at > 0 && std::string_view(" \t>-+*.)0123456789[]xX").find(text_[at - 1]) != std::string_view::npos) --at;
    return at == 0 || text_[at - 1] == '\n';
  }

  // Sets at_ to where the leaf begins, and `first` to its first event: empty spans at the beginning are left out.
  bool find_beginning(size_t& first) {
    size_t anchor = first;
    while (anchor < events_.size() && events_[anchor].begin == SIZE_MAX) ++anchor;
    if (anchor == events_.size()) return false;
    at_ = events_[anchor].begin;
    if (at_ > 0 && text_[at_ - 1] == '\\' && events_[anchor].kind == MarkdownEvent::text && is_escaped(at_)) --at_;
    first = anchor;
    while (first > 0 && events_[first - 1].kind == MarkdownEvent::enter) {
      const size_t size = opening_before(events_[first - 1].span);
      if (size == SIZE_MAX) break;
      at_ -= size;
      --first;
    }
    return true;
  }
  bool is_escaped(size_t at) const {
    size_t marks = 0;
    while (marks < at && text_[at - 1 - marks] == '\\') ++marks;
    return marks % 2 == 1 && !is_ascii_letter_or_digit(text_[at]) && static_cast<unsigned char>(text_[at]) < 0x80;
  }
  // Returns the bytes of an opening mark that ends at at_; SIZE_MAX if there is none.
  size_t opening_before(char span) const {
    const std::string_view before = std::string_view(text_).substr(0, at_);
    const auto run_of = [&](char c) {
      size_t run = 0;
      while (run < before.size() && before[before.size() - 1 - run] == c) ++run;
      return run;
    };
    switch (span) {
      case 'e':
        return before.ends_with("*") || before.ends_with("_") ? 1 : SIZE_MAX;
      case 's':
        return before.ends_with("**") || before.ends_with("__") ? 2 : SIZE_MAX;
      case 'd':
        return before.ends_with("~~") ? 2 : before.ends_with("~") ? 1 : SIZE_MAX;
      case 'a':
        return before.ends_with("[") || before.ends_with("<") ? 1 : 0;
      case 'i':
        return before.ends_with("![") ? 2 : SIZE_MAX;
      case 'm':
        return run_of('$') > 0 ? std::min<size_t>(run_of('$'), 2) : SIZE_MAX;
      default: {  // code; a space may follow its mark
        size_t spaces = 0;
        while (spaces < before.size() && is_ascii_space(before[before.size() - 1 - spaces])) ++spaces;
        size_t run = 0;
        while (spaces + run < before.size() && before[before.size() - 1 - spaces - run] == '`') ++run;
        return run > 0 ? spaces + run : SIZE_MAX;
      }
    }
  }

  // Reads events into a unit, moving at_ on.
  void read(UnitText& unit, size_t first, size_t last) {
    std::vector<Open> open;
    for (size_t i = first; i < last; ++i) {
      const MarkdownEvent& event = events_[i];
      switch (event.kind) {
        case MarkdownEvent::enter:
          i = enter(unit, open, i, last);
          break;
        case MarkdownEvent::leave:
          leave(unit, open, event.span, i + 1 < last ? events_[i + 1].begin : SIZE_MAX);
          break;
        case MarkdownEvent::line_break:
          add_break(unit);
          break;
        default:
          if (event.begin == SIZE_MAX || event.begin < at_) break;
          if (event.kind == MarkdownEvent::html)  // a tag may have several lines
            while (i + 2 < last && events_[i + 1].kind == event.kind && events_[i + 1].begin == SIZE_MAX &&
                   events_[i + 2].kind == event.kind)
              i += 2;
          add_gap(unit, event.begin);
          if (event.kind == MarkdownEvent::html && add_untouched(unit, event, i, last)) break;
          add_text(unit, {event.kind, 0, event.begin, events_[i].end});
          at_ = events_[i].end;
      }
    }
  }

  // Adds bytes that no event explains: the backslash before a mark, which is written again where it is needed, or what stays as it is.
  void add_gap(UnitText& unit, size_t end) {
    const std::string_view gap = std::string_view(text_).substr(at_, end - at_);
    if (gap.empty()) return;
    if (gap == "\\") {
      style_.dollars |= text_[end] == '$';
      return;
    }
    unit.add_single(std::string(gap));
    at_ = end;
  }

  void add_text(UnitText& unit, const MarkdownEvent& event) {
    const std::string_view bytes = std::string_view(text_).substr(event.begin, event.end - event.begin);
    if (event.kind == MarkdownEvent::html) return add_tag(unit, bytes);
    if (event.kind == MarkdownEvent::entity) {
      const HtmlEntity entity = html_entity(bytes);
      return entity.text.empty() ? unit.add_single(std::string(bytes)) : unit.add_text(entity.text);
    }
    const bool escaped = at_ < event.begin;
    auto hidden = std::lower_bound(hidden_.begin(), hidden_.end(), static_cast<int64_t>(event.begin),
                                   [](const Range& r, int64_t begin) { return r.end <= begin; });
    size_t at = event.begin;
    for (; hidden != hidden_.end() && hidden->begin < static_cast<int64_t>(event.end); ++hidden) {
      const size_t begin = std::max(at, static_cast<size_t>(hidden->begin)), end = std::min(event.end, static_cast<size_t>(hidden->end));
      unit.add_text(std::string_view(text_).substr(at, begin - at));
      add_hidden(unit, begin, end);
      at = end;
    }
    const std::string_view rest = std::string_view(text_).substr(at, event.end - at);
    if (escaped || rest.find("](") != rest.npos || rest.find("][") != rest.npos) escapes_ = true;
    style_.brackets = (style_.brackets || rest.find('[') != rest.npos) && !escapes_;
    unit.add_text(rest);
  }
  void add_hidden(UnitText& unit, size_t begin, size_t end) {
    constexpr size_t kLongestShown = 64;
    const std::string bytes = text_.substr(begin, end - begin);
    const size_t line = text_.find_last_of('\n', begin == 0 ? 0 : begin - 1),
                 next = std::min(text_.find_first_of("\r\n", end), text_.size());
    const std::string_view before = std::string_view(text_).substr(line == std::string::npos ? 0 : line + 1);
    const bool alone = before.find_first_not_of(" \t>") >= begin - static_cast<size_t>(before.data() - text_.data()) &&
                       trimmed(std::string_view(text_).substr(end, next - end)).empty() && bytes.find(':') != 1;
    if (alone && bytes[0] != '[')
      unit.add_separator(bytes);
    else if (bytes[0] == '{' && bytes.size() <= kLongestShown)
      unit.add_kept(bytes, bytes);
    else
      unit.add_single(bytes);
  }

  // Adds an element of HTML that is not translated, such as <code>, up to its end; returns false if it is none. `i` becomes its last event.
  bool add_untouched(UnitText& unit, const MarkdownEvent& event, size_t& i, size_t last) {
    const std::vector<HtmlToken> tokens = scan_html(std::string_view(text_).substr(event.begin, events_[i].end - event.begin));
    if (tokens.size() != 1 || !tokens[0].untouched) return false;
    for (size_t e = i + 1; e < std::min(last, i + kMostWithin); ++e) {
      if (events_[e].kind != MarkdownEvent::html || events_[e].begin == SIZE_MAX) continue;
      const std::string_view tag = std::string_view(text_).substr(events_[e].begin, events_[e].end - events_[e].begin);
      if (tag.substr(0, 2) != "</" || tag.substr(2, tokens[0].name.size()) != tokens[0].name) continue;
      const std::string_view inner = std::string_view(text_).substr(events_[i].end, events_[e].begin - events_[i].end);
      add_whole(unit, events_[e].end - at_, inner);
      i = e;
      return true;
    }
    return false;
  }

  // Adds bytes that stay, as the translator sees them if they are short.
  void add_whole(UnitText& unit, size_t size, std::string_view shown) {
    constexpr size_t kLongestShown = 64;
    const auto is_letter = [&](size_t i) {
      return i < text_.size() && (is_ascii_letter_or_digit(text_[i]) || static_cast<unsigned char>(text_[i]) >= 0x80);
    };
    if (is_letter(at_ - 1) || is_letter(at_ + size)) shown = std::string_view(text_).substr(at_, size);  // part of a word
    if (shown.find('\n') != shown.npos || shown.size() > kLongestShown)
      unit.add_single(text_.substr(at_, size));
    else
      unit.add_kept(text_.substr(at_, size), shown);
    at_ += size;
  }

  // Adds a tag of HTML. Its partner is found by name.
  void add_tag(UnitText& unit, std::string_view bytes) {
    const std::vector<HtmlToken> tokens = scan_html(bytes);
    if (tokens.size() != 1 || tokens[0].name.empty()) return unit.add_single(std::string(bytes));
    const HtmlToken& tag = tokens[0];
    if (tag.separates) return unit.add_separator(std::string(bytes));
    if (tag.kind == HtmlToken::close) {
      const auto begun = std::find_if(tags_.rbegin(), tags_.rend(), [&](const auto& t) { return t.first == tag.name; });
      if (begun == tags_.rend()) return unit.add_single(std::string(bytes));
      unit.close(begun->second, std::string(bytes));
      tags_.erase(std::next(begun).base());
    } else if (tag.kind == HtmlToken::open && tags_.size() < kMostTags) {
      tags_.emplace_back(tag.name, unit.open(std::string(bytes)));
    } else {
      unit.add_single(std::string(bytes));
    }
  }

  void add_break(UnitText& unit) {
    const size_t line = text_.find('\n', at_);
    if (line == std::string::npos) return;
    size_t next = text_.find_first_not_of(" \t>", line + 1);
    if (next == std::string::npos) return;
    const std::string_view before = std::string_view(text_).substr(at_, line - at_);
    if (before.find_first_not_of(" \\\r") != std::string_view::npos) return;  // bytes that no event explains
    if (before.starts_with("\\") || before.starts_with("  ")) {
      unit.add_separator(text_.substr(at_, next - at_));
    } else {
      const size_t end = line - (line > 0 && text_[line - 1] == '\r');
      if (style_.line_prefix.empty()) style_.line_prefix = text_.substr(end, next - end);
      unit.add_text("\n");
    }
    at_ = next;
  }

  // Enters a span and returns the last event that was read for it.
  size_t enter(UnitText& unit, std::vector<Open>& open, size_t i, size_t last) {
    const char span = events_[i].span;
    const char here = at_ < text_.size() ? text_[at_] : '\0';
    size_t end = i + 1;  // the event that leaves it
    if (std::string_view("cmi").find(span) != std::string_view::npos || (span == 'a' && here != '[')) {
      for (int depth = 1; end < last; ++end) {
        if (events_[end].kind == MarkdownEvent::enter) ++depth;
        if (events_[end].kind == MarkdownEvent::leave && --depth == 0) break;
      }
      if (end == last) return last - 1;
    }
    if (span == 'c' || span == 'm') {
      add_code(unit, span, end - 1 > i ? events_[end - 1].end : 0);
      return end;
    }
    if (span == 'i') {
      add_image(unit, i, end);
      return end;
    }
    const size_t first_text = i + 1 < last ? events_[i + 1].begin : SIZE_MAX;
    if (span == 'a' && here != '[') {  // an address by itself
      const size_t to = end > i + 1 ? events_[end - 1].end : at_;
      const size_t whole = to + (here == '<' && first_text != at_ && to < text_.size() && text_[to] == '>');
      if (to >= at_) unit.add_kept(text_.substr(at_, whole - at_), std::string_view(text_).substr(at_, whole - at_)), at_ = whole;
      return end;
    }
    const size_t size = span == 's' ? 2 : span == 'd' && std::string_view(text_).substr(at_, 2) == "~~" ? 2 : 1;
    open.push_back({span, unit.open(text_.substr(at_, size), span == 'a'), at_ + size});
    style_.links |= span == 'a';
    at_ = std::min(at_ + size, text_.size());
    return i;
  }

  void leave(UnitText& unit, std::vector<Open>& open, char span, size_t next) {
    size_t size = span == 's' ? 2 : 1;
    if (span == 'd' && std::string_view(text_).substr(at_, 2) == "~~") size = 2;
    std::string bytes;
    if (span == 'a') {
      size = link_end(at_, next) - at_;
      bytes = text_.substr(at_, size);
      if (!open.empty() && open.back().span == 'a' && (bytes == "]" || bytes == "][]"))  // its text is its label
        bytes = "][" + text_.substr(open.back().label, at_ - open.back().label) + "]";
    } else {
      bytes = text_.substr(at_, size);
    }
    at_ = std::min(at_ + size, text_.size());
    if (open.empty() || open.back().span != span) return unit.add_single(bytes);
    unit.close(open.back().pair, bytes);
    open.pop_back();
  }

  // Returns the end of what follows a link's text: "](address "title")", "][label]", "][]" or "]". `next` is where text goes on.
  size_t link_end(size_t at, size_t next) const {
    size_t i = at + 1;
    if (at >= text_.size() || text_[at] != ']' || i >= text_.size() || i == next) return std::min(i, text_.size());
    if (text_[i] == '[') {
      const size_t end = text_.find(']', i + 1);
      return end == std::string::npos ? i : end + 1;
    }
    if (text_[i] != '(') return i;
    ++i;
    while (i < text_.size() && is_ascii_space(text_[i])) ++i;
    if (i < text_.size() && text_[i] == '<') i = std::min(text_.find('>', i), text_.size());
    char quote = 0;
    for (int depth = 1; i < text_.size(); ++i) {
      const char c = text_[i];
      if (c == '\\') {
        ++i;
      } else if (quote != 0) {
        quote = c == quote ? 0 : quote;
      } else if ((c == '"' || c == '\'') && is_ascii_space(text_[i - 1])) {
        quote = c;
      } else if (c == '(') {
        ++depth;
      } else if (c == ')' && --depth == 0) {
        return i + 1;
      }
    }
    return text_.size();
  }

  // Adds code or an equation, which begins at at_ and whose text ends at `end`.
  void add_code(UnitText& unit, char span, size_t end) {
    const char mark = span == 'c' ? '`' : '$';
    size_t run = 0;
    while (at_ + run < text_.size() && text_[at_ + run] == mark) ++run;
    if (run == 0) return;
    const std::string marks(run, mark);
    size_t close = text_.find(marks, std::max(at_ + run, span == 'm' && end >= at_ + run ? end : 0));
    while (close != std::string::npos && span == 'c' && close + run < text_.size() && text_[close + run] == mark) {
      close = text_.find_first_not_of(mark, close);
      close = close == std::string::npos ? close : text_.find(marks, close);
    }
    if (close == std::string::npos) return;
    const std::string_view inner = trimmed(std::string_view(text_).substr(at_ + run, close - at_ - run), " \n");
    add_whole(unit, close + run - at_, inner);
  }

  // Adds an image, whose description is a unit by itself.
  void add_image(UnitText& unit, size_t enter, size_t leave) {
    const size_t begin = at_;
    at_ = std::min(at_ + 2, text_.size());
    UnitText description;
    const size_t text = at_;
    if (images_ < kMostImages) {  // within each other
      ++images_;
      std::vector<std::pair<std::string, size_t>> outer;  // tags of another unit
      tags_.swap(outer);
      read(description, enter + 1, leave);
      tags_.swap(outer);
      --images_;
    } else {
      for (size_t i = enter + 1; i < leave; ++i)
        if (events_[i].begin != SIZE_MAX) at_ = std::max(at_, events_[i].end);
    }
    const size_t end = link_end(at_, leave + 1 < events_.size() ? events_[leave + 1].begin : SIZE_MAX);
    const std::string_view rest = std::string_view(text_).substr(at_, end - at_);
    if ((description.has_words() || description.has_nested()) && rest.starts_with("](")) {
      unit.add_single({{text_.substr(begin, text - begin), add_unit(std::move(description))}, {std::string(rest)}});
    } else {
      unit.add_single(text_.substr(begin, end - begin));
    }
    at_ = end;
  }

  static constexpr size_t kMostTags = 100;  // of HTML that are open at once
  static constexpr int kMostImages = 5;
  static constexpr size_t kMostWithin = 50;  // events of an element that is not translated

  Markdown& file_;
  const std::string& text_;
  const std::vector<MarkdownEvent>& events_;
  const std::vector<Range>& hidden_;
  MarkdownStyle style_;
  std::vector<std::pair<std::string, size_t>> tags_;  // of HTML, with their pairs
  size_t at_ = 0;
  int images_ = 0;
  bool escapes_ = false;  // brackets that are text have to be escaped
};

Markdown::Markdown(std::string text) : EditedFile(std::move(text), true) {
  require_utf8();
  check();
}

void Markdown::read() {
  scan_markdown(text_, [&](const MarkdownLeaf& leaf, const std::vector<Range>& hidden) {
    if (leaf.kind == MarkdownLeaf::html)
      add_html(leaf);
    else
      Leaf(*this, leaf, hidden).add();
    end_group();
  });
}

// Adds a block of HTML if nothing but space stands between its lines, such as marks of a quotation.
void Markdown::add_html(const MarkdownLeaf& leaf) {
  size_t begin = SIZE_MAX, end = 0;
  for (const MarkdownEvent& event : leaf.events) {
    if (event.begin == SIZE_MAX) continue;
    if (begin == SIZE_MAX) begin = end = event.begin;
    const std::string_view gap = std::string_view(text_).substr(end, event.begin - end);
    if (gap.find_first_not_of(" \t\r\n") != std::string_view::npos) return;
    end = event.end;
  }
  if (begin == SIZE_MAX) return;
  UnitText unit;
  const auto encode = [](std::string& out, UnitText::Place, std::string_view text) { out += text; };
  unit.add_html(std::string_view(text_).substr(begin, end - begin), encode);
  if (unit.has_words()) replace(begin, end, {{"", add_unit(std::move(unit), SentenceEnds::marks, encode)}});
}

}  // namespace starling
