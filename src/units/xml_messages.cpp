#include "units/xml_messages.h"

#include <algorithm>
#include <map>
#include <optional>

#include "base/ascii.h"
#include "units/plural_forms.h"

namespace starling {
namespace {

// Elements of HTML that Android's strings may have and that end sentences.
constexpr std::string_view kAndroidBlocks = " br p div ul ol li h1 h2 h3 h4 h5 h6 blockquote ";

// What stands behind a backslash in a string of Android's.
void encode_android(std::string& out, UnitText::Place place, std::string_view text, bool cdata) {
  for (const char c : text) {
    const bool first = out.size() == place.begin && (c == '@' || c == '?');
    if (c == '\t')
      out += "\\t";
    else if (c == '\'' || c == '"' || c == '\\' || first)
      out += '\\', out += c;
    else if (cdata)
      out += c;
    else
      append_escaped(out, std::string_view(&c, 1));
  }
}

void encode_android_xml(std::string& out, UnitText::Place place, std::string_view text) { encode_android(out, place, text, false); }
void encode_android_cdata(std::string& out, UnitText::Place place, std::string_view text) { encode_android(out, place, text, true); }

// Tags of HTML need their quotes in CDATA, where they are written without a backslash.
void as_in_cdata(std::string& out, UnitText::Place, std::string_view text) { out += text; }

void write_xml(std::string& out, const std::string& value) { append_escaped(out, value); }

}  // namespace

AndroidStrings::AndroidStrings(std::string text, const Languages& languages) : XmlFile(std::move(text), true, languages.target) { check(); }

void AndroidStrings::read() {
  bool found = false;
  size_t texts = 0;  // the depth of the list whose items are texts; those of styles are not
  for (rewind(); next(); end_group()) {
    if (depth() < texts) texts = 0;
    if (!opens(0)) continue;
    const std::string element(name(0));
    found |= element == "resources";
    const bool list = element == "string-array" || element == "array";
    if (attribute(0, "translatable") == "false")
      skip_element();
    else if (element == "string" || (element == "item" && (texts > 0 || attribute(0, "type") == "string")))
      take_element(), add_string(0);
    else if (element == "plurals")
      take_element(), add_plurals();
    else if (list)
      texts = depth();
  }
  if (!found) refuse(0, "there is no element <resources>, so these are not Android's strings; choose another --format");
}

// The items of all categories of the target language: those that are missing get the text of "other".
void AndroidStrings::add_plurals() {
  std::vector<std::string> there;
  std::optional<size_t> other;
  Fragment text;  // its text
  size_t last = 0;
  for (const size_t item : children(0)) {
    if (name(item) != "item" || !opens(item)) continue;
    const size_t unit = add_string(item);
    there.push_back(attribute(item, "quantity"));
    last = last_of(item);
    if (there.back() == "other") other = item, text = {"", unit};
  }
  if (!other) return;
  const auto quantity = *attribute_place(*other, "quantity");
  const size_t begin = begin_of(*other), content = end_of(*other), close = last_of(*other);
  if (text.unit == SIZE_MAX) text.bytes = text_.substr(content, begin_of(close) - content);
  size_t blanks = begin;
  while (blanks > 0 && is_ascii_space(text_[blanks - 1])) --blanks;
  for (const std::string_view category : missing_categories(categories_, there)) {
    std::string open = text_.substr(blanks, content - blanks);
    open.replace(static_cast<size_t>(quantity.begin) - blanks, static_cast<size_t>(quantity.count()), category);
    replace(end_of(last), end_of(last), {{open}, text, {std::string(bytes_of(close))}});
  }
}

// Returns the unit of the text, if it has words.
size_t AndroidStrings::add_string(size_t element) {
  const size_t end = last_of(element);
  bool cdata = false, text = false;
  for (size_t i = element + 1; i < end; ++i) {
    cdata |= bytes_of(i).starts_with(kCdata);
    text |= tokens_[i].kind == HtmlToken::text && bytes_of(i).find_first_not_of(" \t\r\n") != std::string_view::npos;
  }
  if ((cdata && text) || is_for_programs(text_within(element))) return SIZE_MAX;
  UnitText unit;
  std::map<size_t, size_t> pairs;  // by the token that opens
  for (size_t i = element + 1; i < end; ++i) {
    const HtmlToken& token = tokens_[i];
    const std::string_view bytes = bytes_of(i);
    const bool block = kAndroidBlocks.find(" " + std::string(token.name) + " ") != std::string_view::npos;
    if (token.kind == HtmlToken::text) {
      const auto pieces = split_at_own_entities(bytes);
      for (size_t k = 0; k < pieces.size(); ++k)
        k % 2 == 0 ? add_text(unit, xml_text(pieces[k]), false) : unit.add_single(std::string(pieces[k]));
    } else if (bytes.starts_with(kCdata)) {
      unit.add_separator(std::string(kCdata));
      add_text(unit, bytes.substr(kCdata.size(), bytes.size() - kCdata.size() - 3), true);
      unit.add_separator("]]>");
    } else if (opens(i) && name(i) == "g") {
      unit.add_kept(text_.substr(begin_of(i), end_of(last_of(i)) - begin_of(i)), text_within(i));
      i = last_of(i);
    } else if (!token.name.empty() && block) {
      unit.add_separator(std::string(bytes));
    } else if (opens(i)) {
      pairs[i] = unit.open(std::string(bytes));
    } else if (token.kind == HtmlToken::close) {
      unit.close(pairs.at(token.partner), std::string(bytes));
    } else {
      unit.add_single(std::string(bytes));
    }
  }
  if (!unit.has_words()) return SIZE_MAX;
  const size_t number = add_unit(std::move(unit), SentenceEnds::marks, cdata ? encode_android_cdata : encode_android_xml);
  replace(end_of(element), begin_of(end), {{"", number}});
  return number;
}

// Adds text without its escapes; tags that are written as text are tags, and keep theirs.
void AndroidStrings::add_text(UnitText& unit, std::string_view text, bool cdata) const {
  std::string plain;
  const auto flush = [&] {
    if (plain.find('<') != std::string::npos)
      unit.add_html(plain, cdata ? UnitText::Encode(as_in_cdata) : UnitText::Encode(encode_xml), cdata);
    else
      unit.add_text(plain);
    plain.clear();
  };
  std::string character;
  size_t tag_end = 0;
  const size_t last_end = text.rfind('>');
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i], next = i + 1 < text.size() ? text[i + 1] : '\0';
    const bool tag =
        c == '<' && (is_ascii_letter(next) || next == '/' || next == '!') && last_end != std::string_view::npos && i < last_end;
    if (tag && i >= tag_end) tag_end = text.find('>', i);
    if (i < tag_end) {
      plain += c;
    } else if (c == '"' && !cdata) {
      flush();
      unit.add_single("\"");
    } else if (c != '\\' || next == 0) {
      plain += c;
    } else if (next == 'n') {
      flush();
      unit.add_separator("\\n");
      ++i;
    } else if (next == 't') {
      flush();
      unit.add_separator("\\t");
      ++i;
    } else if (const size_t size = append_escaped_unit(character, text.substr(i)); size > 0) {
      if (character.size() == 1 && is_ascii_space(character[0])) {  // which Android would strip without the escape
        flush();
        unit.add_single(std::string(text.substr(i, size)));
      } else {
        plain += character;
      }
      character.clear();
      i += size - 1;
    } else {
      plain += next;
      ++i;
    }
  }
  flush();
}

Resx::Resx(std::string text, const Languages& languages) : XmlFile(std::move(text), true, languages.target) { check(); }

void Resx::read() {
  for (rewind(); next(); end_group()) {
    if (!opens(0) || name(0) != "data") continue;
    take_element();
    const auto value = child(0, "value");
    const bool is_text = !attribute_place(0, "type") && !attribute_place(0, "mimetype") && !attribute(0, "name").starts_with(">>");
    if (value && is_text && children(*value).empty() && !has_own_entity(*value))
      set_content(*value, message(text_within(*value), {.mnemonics = true}), write_xml);
  }
}

QtLinguist::QtLinguist(std::string text, const Languages& languages) : XmlFile(std::move(text), false, ""), languages_(languages) {
  check();
}

void QtLinguist::read() {
  const size_t forms = PluralForms(plural_forms_of(languages_.target)).count();
  bool found = false;
  for (rewind(); next(); end_group()) {
    if (!opens(0)) continue;
    if (name(0) == "TS") {
      found = true;
      if (attribute_place(0, "sourcelanguage")) check_language(0, "sourcelanguage", languages_.source, "--source-language");
      if (!attribute(0, "language").empty())
        check_language(0, "language", languages_.target, "--target-language");
      else if (!languages_.target.empty())
        set_attributes(0, {{"language", with_underscore(languages_.target)}});
    } else if (name(0) == "message") {
      take_element();
      add_message(forms);
    }
  }
  if (!found) refuse(0, "there is no element <TS>, so this is not a file of Qt Linguist; choose another --format");
}

void QtLinguist::add_message(size_t forms) {
  const size_t message_element = 0;
  const auto source = child(message_element, "source"), translation = child(message_element, "translation");
  if (!source || !children(*source).empty() || has_own_entity(*source)) return;  // children: bytes that XML cannot have
  const std::string type = translation ? attribute(*translation, "type") : "";
  if (type == "obsolete" || type == "vanished") return;
  if (translation && !trimmed(text_within(*translation), " \t\r\n").empty()) return;
  const Fragments content = message(text_within(*source), {.mnemonics = true, .icu = false});
  if (content.empty()) return;
  const bool counts = attribute(message_element, "numerus") == "yes";
  if (!translation) {
    if (counts) return;  // lupdate writes one with its forms
    const size_t at = end_of(last_of(*source));
    insert(at, "<translation type=\"unfinished\">");
    replace_value(at, at, content, write_xml);
    return insert(at, "</translation>");
  }
  if (type != "unfinished") set_attributes(*translation, {{"type", "unfinished"}});
  if (!counts) return set_content(*translation, content, write_xml);
  const std::vector<size_t> there = children(*translation);
  for (const size_t form : there) set_content(form, content, write_xml);
  if (!there.empty() || !opens(*translation)) return;
  const size_t at = begin_of(last_of(*translation));
  for (size_t form = 0; form < forms; ++form) {
    insert(at, "<numerusform>");
    replace_value(at, at, content, write_xml);
    insert(at, "</numerusform>");
  }
}

}  // namespace starling
