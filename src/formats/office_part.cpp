#include "formats/office_part.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/ascii.h"
#include "document/html.h"
#include "formats/office_roles.h"

namespace starling {
namespace {

constexpr size_t kMostNested = 50;      // paragraphs within paragraphs
constexpr size_t kWritten = 1 << 16;    // bytes that are written at once
constexpr size_t kMostFields = 100;     // that are open
constexpr size_t kMostParts = 100'000;  // of a paragraph
constexpr size_t kSpare = 1 << 20;      // bytes of properties that are repeated, beside four times those of the part

// What the properties of a run say about how its text looks: not its language, nor what a program noted about its spelling.
std::string comparable_format(std::string_view properties) {
  constexpr std::string_view kElements = " lang noProof webHidden ", kAttributes = " lang altLang dirty err smtClean hint ";
  const auto is_in = [](std::string_view names, std::string_view name) {
    return names.find(fmt::format(" {} ", name.substr(name.rfind(':') + 1))) != std::string_view::npos;
  };
  std::string key;
  for (size_t at = 0; at < properties.size();) {
    const size_t end = std::min(properties.find('>', at), properties.size() - 1) + 1;
    const std::string_view tag = properties.substr(at, end - at);
    at = end;
    if (tag[0] != '<' || tag.starts_with("</")) continue;
    const std::string_view name = tag.substr(1, tag.find_first_of(" \t\r\n/>") - 1);
    if (is_in(kElements, name)) continue;
    std::string attributes;
    each_attribute(tag, [&](std::string_view attribute, Range value) {
      if (!is_in(kAttributes, attribute))
        attributes += fmt::format(" {}={}", attribute, tag.substr(static_cast<size_t>(value.begin), static_cast<size_t>(value.count())));
      return true;
    });
    if (!name.ends_with("rPr") || !attributes.empty()) key += fmt::format("<{}{}>", name, attributes);
  }
  return key;
}

class OfficeRewriter {
 public:
  // Without `write`, paragraphs are only read.
  OfficeRewriter(std::string_view xml, const std::string& where, const TranslateParagraph& translate,
                 const std::function<void(std::string_view)>& write)
      : xml_(xml, where),
        writes_(write != nullptr),
        write_(write),
        translate_(translate),
        spare_in_runs_(4 * xml.size() + kSpare),
        spare_in_texts_(spare_in_runs_) {}

  void all() {
    std::string out;
    copy(0, 0, out);
    if (writes_) write_(out);
  }

 private:
  // A field that is made of runs: fldChar begin, its instruction, fldChar separate, its result, fldChar end.
  struct Field {
    std::string instruction;
    bool translated = false;              // its result is being read, and is translated
    size_t opened = SIZE_MAX, depth = 0;  // its container in this paragraph
  };
  struct Run {
    size_t depth;
    OfficeParagraph::Format format;
    size_t number = SIZE_MAX;  // of the format in the paragraph
  };
  struct Container {
    size_t depth, opened;
    std::string inner_close = {};
    bool transparent = false;
    bool in_field = false;  // its tags belong to a field that is not translated
  };
  // A paragraph that is being read.
  struct State {
    OfficeParagraph paragraph;
    bool mixed = false;
    std::vector<Run> runs;
    std::vector<Container> containers;
    std::string original;           // its bytes so far, with what is translated in them
    size_t copied = 0;              // up to here
    std::string field, field_text;  // of a field that is not translated, so far
    bool untouched = false;
  };

  std::string_view from_to(size_t begin, size_t end) const { return xml_.text().substr(begin, end - begin); }

  void append(std::string& out, size_t begin, size_t end) const {
    if (writes_) out += from_to(begin, end);
  }

  // Copies from `done` to the closing tag of the element at a depth, which is read but not copied; at depth 0, to the end.
  void copy(size_t depth, size_t done, std::string& out) {
    while (xml_.next()) {
      const OfficeTag& tag = xml_.tag();
      if (tag.kind == OfficeTag::close && xml_.depth() + 1 == depth) {
        append(out, done, tag.begin);
        return;
      }
      if (tag.kind != OfficeTag::open) continue;
      const OfficeRole role = office_role(tag, false);
      if (role == OfficeRole::skipped || (role == OfficeRole::cell && !holds_text(xml_))) {
        xml_.skip_element();
      } else if (role == OfficeRole::paragraph || role == OfficeRole::mixed) {
        append(out, done, tag.begin);
        out += paragraph(role == OfficeRole::mixed);
        done = xml_.tag().end;
      }
      if (depth > 0 || !writes_ || out.size() + xml_.tag().end - done < kWritten) continue;
      append(out, done, xml_.tag().end);
      done = xml_.tag().end;
      write_(std::exchange(out, ""));
    }
    append(out, done, xml_.text().size());
  }

  // Returns the paragraph whose opening tag was read last.
  std::string paragraph(bool mixed) {
    if (++nested_ > kMostNested) xml_.broken("paragraphs are nested too deeply");
    ++paragraphs_;
    State s;
    s.mixed = mixed;
    const size_t depth = xml_.depth(), begin = xml_.tag().begin, content = xml_.tag().end;
    s.copied = begin;
    s.untouched = !fields_.empty() && !fields_.back().translated;
    for (Field& f : fields_) f.opened = SIZE_MAX;
    while (xml_.next() && !(xml_.tag().kind == OfficeTag::close && xml_.depth() < depth)) read(s);
    --nested_;
    const OfficeTag close = xml_.tag();
    append(s.original, s.copied, close.end);
    if (!s.field.empty()) s.untouched = true;
    if (s.untouched || !s.paragraph.has_words()) return std::move(s.original);
    const std::optional<std::string> translation = translate_(s.paragraph);
    if (!translation || !writes_) return std::move(s.original);
    return std::string(from_to(begin, content)) + s.paragraph.rewritten(*translation, spare_in_texts_) +
           std::string(from_to(close.begin, close.end));
  }

  void read(State& s) {
    const OfficeTag tag = xml_.tag();
    if (s.paragraph.parts() > kMostParts) xml_.broken(fmt::format("a paragraph has more than {} runs", kMostParts));
    switch (tag.kind) {
      case OfficeTag::text:
      case OfficeTag::data:
        if (s.mixed && s.runs.empty()) add_text(s, characters_of(tag));
        return;
      case OfficeTag::other:
        return;
      case OfficeTag::close:
        return closed(s);
      case OfficeTag::open:
      case OfficeTag::single:
        break;
    }
    const OfficeRole role = office_role(tag, true);
    switch (role) {
      case OfficeRole::run:
        if (tag.kind == OfficeTag::open) {
          Run& run = s.runs.emplace_back(Run{xml_.depth(), {}});
          run.format.head = xml_.bytes();
          run.format.tail = "</" + std::string(tag.name) + ">";
        }
        return;
      case OfficeRole::format:
        if (!s.runs.empty() && xml_.depth() == s.runs.back().depth + (tag.kind == OfficeTag::open)) {
          const std::string_view bytes = from_to(tag.begin, xml_.skip_element());
          s.runs.back().format.head += bytes;
          s.runs.back().format.key = comparable_format(bytes);
          return;
        }
        break;
      case OfficeRole::text:
        return read_text(s);
      case OfficeRole::hyphen:
        return add_text(s, "\u2011");
      case OfficeRole::dropped:
        xml_.skip_element();
        return;
      case OfficeRole::transparent:
        if (tag.kind == OfficeTag::open) s.containers.push_back({.depth = xml_.depth(), .opened = SIZE_MAX, .transparent = true});
        return;
      case OfficeRole::inner:
        if (tag.kind == OfficeTag::open && !s.field.empty()) return open_in_field(s);
        if (tag.kind == OfficeTag::open && !s.containers.empty() && s.paragraph.extend_open(xml_.bytes())) {
          s.containers.back().inner_close = "</" + std::string(tag.name) + ">";
          s.containers.push_back({.depth = xml_.depth(), .opened = SIZE_MAX, .transparent = true});
          return;
        }
        break;
      case OfficeRole::container:
        if (tag.kind == OfficeTag::open && !s.field.empty()) return open_in_field(s);
        if (tag.kind == OfficeTag::open && s.runs.empty()) {
          s.containers.push_back({xml_.depth(), s.paragraph.open(xml_.bytes())});
          return;
        }
        break;
      case OfficeRole::field_mark:
        return field_mark(s);
      case OfficeRole::skipped: {
        const bool instruction = tag.local == "instrText";
        const std::string_view bytes = from_to(tag.begin, xml_.skip_element());
        if (instruction && !fields_.empty()) append_characters(fields_.back().instruction, bytes);
        return add_single(s, bytes, false);
      }
      case OfficeRole::kept: {
        const auto instruction = xml_.attribute("instr");
        if (tag.kind == OfficeTag::open && s.field.empty() && instruction && is_translated_field(*instruction)) {
          s.containers.push_back({xml_.depth(), s.paragraph.open(xml_.bytes())});
          return;
        }
        const std::string_view bytes = from_to(tag.begin, xml_.skip_element());
        if (!s.field.empty()) return add_single(s, bytes, false);
        std::string text;
        append_characters(text, bytes);
        return add_kept(s, bytes, text);
      }
      case OfficeRole::breaks:
        return add_single(s, from_to(tag.begin, xml_.skip_element()), true);
      case OfficeRole::other:
      case OfficeRole::paragraph:
      case OfficeRole::mixed:
      case OfficeRole::cell:
        break;
    }
    read_other(s, role);
  }

  void open_in_field(State& s) {
    s.field += xml_.bytes();
    s.containers.push_back({.depth = xml_.depth(), .opened = SIZE_MAX, .transparent = true, .in_field = true});
  }

  // An element that stays in its place, with the paragraphs in it.
  void read_other(State& s, OfficeRole role) {
    const OfficeTag tag = xml_.tag();
    const bool properties = tag.local.ends_with("Pr");
    std::string bytes;
    const size_t before = paragraphs_;
    append(s.original, s.copied, tag.begin);
    if (tag.kind == OfficeTag::single) {
      bytes = xml_.bytes();
    } else {
      std::vector<Field> outside = std::exchange(fields_, {});
      if (role == OfficeRole::paragraph || role == OfficeRole::mixed) {
        bytes = paragraph(role == OfficeRole::mixed);
      } else {
        copy(xml_.depth(), tag.begin, bytes);
        append(bytes, xml_.tag().begin, xml_.tag().end);
      }
      fields_ = std::move(outside);
    }
    s.original += bytes;
    s.copied = xml_.tag().end;
    if (properties && s.field.empty() && s.runs.empty() && !s.containers.empty() && s.paragraph.extend_open(bytes)) return;
    if (tag.space == OfficeSpace::text && tag.kind == OfficeTag::open && paragraphs_ == before) {
      std::string text;
      append_characters(text, from_to(tag.begin, xml_.tag().end));
      if (!trimmed(text, " \t\r\n").empty()) return add_kept(s, bytes, text);
    }
    add_single(s, bytes, false);
  }

  // The text of a run, whose opening tag was read last.
  void read_text(State& s) {
    const OfficeTag tag = xml_.tag();
    if (tag.kind == OfficeTag::single) return;
    const bool spaces = tag.space == OfficeSpace::drawing || xml_.attribute("space").value_or("") == "preserve";
    std::string text;
    for (const size_t depth = xml_.depth(); xml_.next() && xml_.depth() >= depth;)
      if (xml_.depth() == depth && (xml_.tag().kind == OfficeTag::text || xml_.tag().kind == OfficeTag::data))
        text += characters_of(xml_.tag());
    if (s.runs.empty() || s.runs.back().format.element.empty()) {
      if (s.runs.empty()) s.runs.push_back({SIZE_MAX, {}});  // of SpreadsheetML, which needs no run
      OfficeParagraph::Format& format = s.runs.back().format;
      format.element = tag.name;
      format.keeps_spaces = tag.space != OfficeSpace::drawing;
    }
    add_text(s, spaces ? std::string_view(text) : trimmed(text, " \t\r\n"));
    if (s.runs.back().depth == SIZE_MAX) s.runs.pop_back();
  }

  void add_text(State& s, std::string_view xml) {
    if (s.runs.empty() || s.runs.back().format.element.empty()) {
      if (s.mixed && s.runs.empty()) return s.paragraph.add_text(xml, s.paragraph.format({}));
      if (s.runs.empty()) return;
      OfficeParagraph::Format& format = s.runs.back().format;  // the run begins with a hyphen
      const std::string_view head = format.head;
      format.element = std::string(head.substr(1, head.find_first_of(" >:") - 1)) + (head.find(':') < head.find('>') ? ":t" : "t");
      format.keeps_spaces = true;
    }
    if (!s.field.empty()) {  // the result of a field that stays
      const OfficeParagraph::Format& f = s.runs.back().format;
      count_repeated(f);
      s.field += fmt::format("{0}<{1}{2}>{3}</{1}>{4}", f.head, f.element, f.keeps_spaces ? " xml:space=\"preserve\"" : "", xml, f.tail);
      s.field_text += xml;
      return;
    }
    if (s.runs.back().number == SIZE_MAX) s.runs.back().number = s.paragraph.format(s.runs.back().format);
    s.paragraph.add_text(xml, s.runs.back().number);
  }
  // Adds bytes that stand within the run, or beside all runs.
  void add_single(State& s, std::string_view bytes, bool breaks) {
    if (!s.field.empty())
      s.field += in_run(s, bytes);
    else
      s.paragraph.add_single(in_run(s, bytes), breaks);
  }
  void add_kept(State& s, std::string_view bytes, std::string_view characters) {
    std::string text;
    append_escaped(text, characters);
    s.paragraph.add_kept(in_run(s, bytes), text);
  }
  std::string in_run(const State& s, std::string_view bytes) {
    if (s.runs.empty()) return std::string(bytes);
    count_repeated(s.runs.back().format);
    return s.runs.back().format.head + std::string(bytes) + s.runs.back().format.tail;
  }

  // The properties of a run are written again for each of its elements.
  void count_repeated(const OfficeParagraph::Format& format) {
    const size_t bytes = format.head.size() + format.tail.size();
    if (bytes > spare_in_runs_) xml_.broken("runs with many elements have properties that are too long");
    spare_in_runs_ -= bytes;
  }

  void closed(State& s) {
    const size_t depth = xml_.depth() + 1;
    if (!s.runs.empty() && s.runs.back().depth == depth) {
      s.runs.pop_back();
    } else if (!s.containers.empty() && s.containers.back().depth == depth) {
      const Container c = std::move(s.containers.back());
      s.containers.pop_back();
      if (c.in_field) s.field += xml_.bytes();
      if (c.in_field == s.field.empty()) s.untouched = true;  // a field ends, or begins, in it only
      if (!c.transparent) s.paragraph.close(c.opened, c.inner_close + std::string(xml_.bytes()));
    }
  }

  void field_mark(State& s) {
    const std::string type(xml_.attribute("fldCharType").value_or(""));
    const std::string bytes = in_run(s, from_to(xml_.tag().begin, xml_.skip_element()));
    if (type == "begin") {
      s.field += bytes;
      fields_.emplace_back();
      if (fields_.size() > kMostFields) xml_.broken(fmt::format("more than {} fields are open", kMostFields));
    } else if (type == "separate" && !fields_.empty()) {
      Field& field = fields_.back();
      const bool outermost = fields_.size() == 1 || fields_[fields_.size() - 2].translated;
      field.translated = outermost && is_translated_field(field.instruction);
      s.field += bytes;
      if (!field.translated) return;
      field.opened = s.paragraph.open(std::exchange(s.field, ""));
      field.depth = s.containers.size();
    } else if (type == "end" && !fields_.empty()) {
      const Field field = std::move(fields_.back());
      fields_.pop_back();
      if (field.translated && field.opened != SIZE_MAX && field.depth == s.containers.size()) return s.paragraph.close(field.opened, bytes);
      if (field.translated) return s.paragraph.add_single(bytes);
      s.field += bytes;
      if (!fields_.empty() && !fields_.back().translated) return;
      const std::string text = std::exchange(s.field_text, "");
      if (text.empty())
        s.paragraph.add_single(std::exchange(s.field, ""));
      else
        s.paragraph.add_kept(std::exchange(s.field, ""), text);
    } else {
      add_single(s, bytes, false);
    }
  }

  // The characters of a text as they stand in XML.
  std::string characters_of(const OfficeTag& tag) const {
    if (tag.kind == OfficeTag::text) return std::string(from_to(tag.begin, tag.end));
    std::string text;
    append_escaped(text, from_to(tag.begin + 9, tag.end - 3));
    return text;
  }
  // The characters of the text between tags.
  static void append_characters(std::string& out, std::string_view bytes) {
    for (size_t at = 0; at < bytes.size();) {
      const size_t tag = std::min(bytes.find('<', at), bytes.size());
      append_xml_characters(out, bytes.substr(at, tag - at));
      at = tag == bytes.size() ? tag : std::min(bytes.find('>', tag), bytes.size() - 1) + 1;
    }
  }

  OfficeXml xml_;
  const bool writes_;
  const std::function<void(std::string_view)>& write_;
  const TranslateParagraph& translate_;
  std::vector<Field> fields_;  // that are open, from paragraph to paragraph
  size_t nested_ = 0, paragraphs_ = 0;
  size_t spare_in_runs_, spare_in_texts_;  // bytes of properties that may still be repeated
};

}  // namespace

void read_office_part(std::string_view xml, const std::string& where, const std::function<void(OfficeParagraph&)>& see) {
  const TranslateParagraph translate = [&](OfficeParagraph& paragraph) {
    see(paragraph);
    return std::optional<std::string>();
  };
  const std::function<void(std::string_view)> nowhere;
  OfficeRewriter(xml, where, translate, nowhere).all();
}

void rewrite_office_part(std::string_view xml, const std::string& where, const TranslateParagraph& translate,
                         const std::function<void(std::string_view)>& write) {
  OfficeRewriter(xml, where, translate, write).all();
}

}  // namespace starling
