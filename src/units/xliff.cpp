#include "units/xliff.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "document/sentences.h"

namespace starling {
namespace {

constexpr std::string_view kState1 = " state=\"needs-review-translation\" state-qualifier=\"mt-suggestion\"";
const std::vector<std::pair<std::string, std::string>> kStateAttributes1 = {{"state", "needs-review-translation"},
                                                                            {"state-qualifier", "mt-suggestion"}};
// A tool names its own states with a prefix of its own.
const std::vector<std::pair<std::string, std::string>> kStateAttributes2 = {{"state", "translated"},
                                                                            {"subState", "starling:machine-translated"}};

bool is_any_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// What an element says of itself and what is in it: attributes that are inherited.
struct Inherited {
  size_t depth;  // of the element
  bool translated, preserve;
};

}  // namespace

Xliff::Xliff(std::string text, const Languages& languages) : XmlFile(std::move(text), false, ""), languages_(languages) { check(); }

void Xliff::read() {
  std::vector<Inherited> within{{0, true, false}};
  bool found = false;
  for (rewind(); next(); end_group()) {
    while (within.back().depth > depth()) within.pop_back();
    if (!is_element(0)) continue;
    const std::string element(name(0)), space = attribute(0, "xml:space"), translate = attribute(0, "translate");
    const bool preserve = space.empty() ? within.back().preserve : space == "preserve";
    const bool translated = translate.empty() ? within.back().translated : translate != "no";
    if (element == "xliff") {
      found = true;
      if (attribute_place(0, "srcLang")) {
        check_language(0, "srcLang", languages_.source, "--source-language");
        set_target_language(0, "trgLang");
      }
    } else if (element == "file" && attribute_place(0, "source-language")) {
      check_language(0, "source-language", languages_.source, "--source-language");
      set_target_language(0, "target-language");
    }
    if (!opens(0)) continue;
    if (translated && element == "trans-unit")
      take_element(), add_unit_1(preserve);
    else if (translated && element == "unit")
      take_element(), add_segments_2(preserve);
    else if (is_any_of(element, {"trans-unit", "unit", "bin-unit", "header", "note", "notes", "skeleton"}))
      skip_element();
    else
      within.push_back({depth(), translated, preserve});
  }
  if (!found) refuse(0, "there is no element <xliff>, so this is not XLIFF; choose another --format");
}

void Xliff::set_target_language(size_t element, const char* name) {
  if (attribute(element, name).empty() && !languages_.target.empty())
    set_attributes(element, {{name, languages_.target}});
  else
    check_language(element, name, languages_.target, "--target-language");
}

void Xliff::add_unit_1(bool preserve) {
  const size_t unit = 0;
  const auto source = child(unit, "source"), segmented = child(unit, "seg-source"), target = child(unit, "target");
  if (!source) refuse(begin_of(unit), "this <trans-unit> has no <source>");
  const size_t from = segmented.value_or(*source);
  const std::string state = target ? attribute(*target, "state") : "";
  if (target && has_content(*target) && !is_any_of(state, {"new", "needs-translation"})) {
    if (segmented) fill_segments(from, *target, preserve);
    return;
  }
  if (attribute(unit, "approved") == "yes" && target && has_content(*target)) return;
  if (!has_content(from)) return;
  if (target) set_attributes(*target, kStateAttributes1);
  add_target(from, from, target, kState1, preserve);
}

// Fills the segments of a target that are empty.
void Xliff::fill_segments(size_t from, size_t target, bool preserve) {
  std::map<std::string, size_t> sources;  // by number
  const auto is_segment = [&](size_t i) { return is_element(i) && name(i) == "mrk" && attribute(i, "mtype") == "seg"; };
  for (size_t i = from + 1; i < last_of(from); ++i)
    if (is_segment(i)) sources.emplace(attribute(i, "mid"), i);
  for (size_t i = target + 1; i < last_of(target); ++i) {
    if (!is_segment(i) || has_content(i)) continue;
    const auto source = sources.find(attribute(i, "mid"));
    if (source != sources.end() && has_content(source->second)) add_target(i, source->second, i, "", preserve);
  }
}

void Xliff::add_segments_2(bool preserve) {
  const size_t unit = 0;
  for (const size_t segment : children(unit)) {
    if (name(segment) != "segment") continue;
    const auto source = child(segment, "source"), target = child(segment, "target");
    if (!source) refuse(begin_of(segment), "this <segment> has no <source>");
    if (!has_content(*source) || (target && has_content(*target) && attribute(segment, "state") != "initial")) continue;
    if (const std::string space = attribute(*source, "xml:space"); !space.empty()) preserve = space == "preserve";
    set_attributes(segment, kStateAttributes2);
    add_target(*source, *source, target, "", preserve);
  }
}

void Xliff::add_target(size_t element, size_t from, std::optional<size_t> target, std::string_view attributes, bool preserve) {
  UnitText text = read_inline(from);
  Fragments content;
  if (text.has_words())
    content = {{"", add_unit(std::move(text), preserve ? SentenceEnds::marks_and_lines : SentenceEnds::marks, encode_xml)}};
  else
    content = {{text_.substr(end_of(from), begin_of(last_of(from)) - end_of(from))}};
  if (target && opens(*target)) {
    replace(end_of(*target), begin_of(last_of(*target)), std::move(content));
    return;
  }
  if (target) {  // <target/>
    const size_t slash = end_of(*target) - 2;
    content.front().bytes.insert(0, ">");
    content.push_back({"</" + tokens_[*target].name + ">"});
    replace(slash, end_of(*target), std::move(content));
    return;
  }
  const size_t begin = begin_of(element), end = end_of(last_of(element));
  size_t line = begin;
  while (line > 0 && (text_[line - 1] == ' ' || text_[line - 1] == '\t')) --line;
  if (line > 0 && text_[line - 1] == '\n') line -= 1 + (line > 1 && text_[line - 2] == '\r');
  const std::string indent = line < begin && (text_[line] == '\n' || text_[line] == '\r') ? text_.substr(line, begin - line) : "";
  const std::string tag = name_with_prefix_of(element, "target");
  content.front().bytes.insert(0, fmt::format("{}<{}{}>", indent, tag, attributes));
  content.push_back({fmt::format("</{}>", tag)});
  replace(end, end, std::move(content));
}

std::string Xliff::name_with_prefix_of(size_t element, std::string_view name) const {
  const std::string& theirs = tokens_[element].name;
  return theirs.substr(0, theirs.size() - this->name(element).size()) + std::string(name);
}

UnitText Xliff::read_inline(size_t element) const {
  UnitText text;
  const size_t end = last_of(element);
  bool cdata = false, elements = false;
  for (size_t i = element + 1; i < end; ++i) {
    cdata |= bytes_of(i).starts_with(kCdata);
    elements |= is_element(i);
  }
  if (const std::string html = cdata && !elements && !has_own_entity(element) ? text_within(element) : "";
      html.find('<') != std::string::npos)
    text.add_html(html, encode_xml);
  else
    add_inline(text, element + 1, end);
  return text;
}

void Xliff::add_inline(UnitText& text, size_t first, size_t end) const {
  std::map<std::string, size_t> pairs;  // by the number that the elements of both ends have in common
  std::map<size_t, size_t> open;        // by token
  for (size_t i = first; i < end; ++i) {
    const HtmlToken& token = tokens_[i];
    const std::string_view bytes = bytes_of(i);
    if (token.kind == HtmlToken::text) {
      const auto pieces = split_at_own_entities(bytes);
      for (size_t k = 0; k < pieces.size(); ++k)
        k % 2 == 0 ? text.add_with_tags(xml_text(pieces[k]), encode_xml) : text.add_single(std::string(pieces[k]));
      continue;
    }
    if (bytes.starts_with(kCdata)) {
      text.add_with_tags(bytes.substr(kCdata.size(), bytes.size() - kCdata.size() - 3), encode_xml);
      continue;
    }
    if (token.kind == HtmlToken::close) {
      if (const size_t pair = open.at(token.partner); pair == SIZE_MAX)
        text.add_separator(std::string(bytes));
      else
        text.close(pair, std::string(bytes));
      continue;
    }
    const std::string_view element = token.name.empty() ? "" : name(i);
    const size_t last = last_of(i);
    const auto whole = [&] { return text_.substr(begin_of(i), end_of(last) - begin_of(i)); };
    const auto number = [&](std::initializer_list<const char*> names) {
      for (const char* n : names)
        if (const std::string value = attribute(i, n); !value.empty()) return value;
      return std::string();
    };
    if (opens(i) && (is_any_of(element, {"g", "pc", "mrk", "sub"}) || !is_any_of(element, {"bpt", "ept", "ph", "it", "x", "bx", "ex"}))) {
      const bool left = attribute(i, "translate") == "no" || (element == "mrk" && attribute(i, "mtype") == "protected");
      if (left) {
        text.add_kept(whole(), text_within(i));
        i = last;
      } else {
        const bool segment = element == "mrk" && attribute(i, "mtype") == "seg";
        if (segment) text.add_separator(std::string(bytes));
        open[i] = segment ? SIZE_MAX : text.open(std::string(bytes));
      }
      continue;
    }
    const bool begins = is_any_of(element, {"bpt", "bx", "sc"}) && attribute(i, "isolated") != "yes";
    const bool ends = is_any_of(element, {"ept", "ex", "ec"}) && attribute(i, "isolated") != "yes";
    const std::string key = begins ? number({"rid", "id", "i"}) : ends ? number({"rid", "startRef", "id", "i"}) : "";
    const auto begun = pairs.find(key);
    if (begins && !key.empty()) {
      pairs[key] = text.open(whole());
    } else if (ends && begun != pairs.end()) {
      text.close(begun->second, whole());
      pairs.erase(begun);
    } else if (attribute(i, "ctype") == "lb" || attribute(i, "subType") == "xlf:lb") {
      text.add_separator(whole());
    } else {
      text.add_single(whole());
    }
    i = last;
  }
}

}  // namespace starling
