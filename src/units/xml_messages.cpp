#include "units/xml_messages.h"

#include <algorithm>
#include <map>

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

AndroidStrings::AndroidStrings(std::string text) : XmlFile(std::move(text)) {
  bool found = false;
  size_t texts = 0;  // the end of the list whose items are texts; those of styles are not
  for (size_t i = 0; i < tokens_.size(); ++i) {
    if (!opens(i)) continue;
    const std::string_view element = name(i);
    found |= element == "resources";
    if (element == "string-array" || element == "plurals" || element == "array") texts = last_of(i);
    if (attribute(i, "translatable") == "false")
      i = last_of(i);
    else if (element == "string" || (element == "item" && (i < texts || attribute(i, "type") == "string")))
      add(i), i = last_of(i);
  }
  if (!found) refuse(0, "there is no element <resources>, so these are not Android's strings; choose another --format");
}

void AndroidStrings::add(size_t element) {
  const size_t end = last_of(element);
  bool cdata = false, text = false;
  for (size_t i = element + 1; i < end; ++i) {
    cdata |= bytes_of(i).starts_with(kCdata);
    text |= tokens_[i].kind == HtmlToken::text && bytes_of(i).find_first_not_of(" \t\r\n") != std::string_view::npos;
  }
  if ((cdata && text) || is_for_programs(text_within(element))) return;
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
  if (!unit.has_words()) return;
  const size_t number = add_unit(std::move(unit), SentenceEnds::marks, cdata ? encode_android_cdata : encode_android_xml);
  replace(end_of(element), begin_of(end), {{"", number}});
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

Resx::Resx(std::string text) : XmlFile(std::move(text)) {
  for (size_t i = 0; i < tokens_.size(); ++i) {
    if (!opens(i) || name(i) != "data") continue;
    const auto value = child(i, "value");
    const bool is_text = !attribute_place(i, "type") && !attribute_place(i, "mimetype") && !attribute(i, "name").starts_with(">>");
    if (value && is_text && children(*value).empty() && !has_own_entity(*value))
      set_content(*value, message(text_within(*value), {.mnemonics = true}), write_xml);
    i = last_of(i);
  }
}

QtLinguist::QtLinguist(std::string text, const Languages& languages) : XmlFile(std::move(text)) {
  const size_t forms = PluralForms(plural_forms_of(languages.target)).count();
  bool found = false;
  for (size_t i = 0; i < tokens_.size(); ++i) {
    if (!opens(i)) continue;
    if (name(i) == "TS") {
      found = true;
      if (attribute_place(i, "sourcelanguage")) check_language(i, "sourcelanguage", languages.source, "--source-language");
      if (!attribute(i, "language").empty())
        check_language(i, "language", languages.target, "--target-language");
      else if (!languages.target.empty())
        set_attributes(i, {{"language", with_underscore(languages.target)}});
    } else if (name(i) == "message") {
      add(i, forms);
      i = last_of(i);
    }
  }
  if (!found) refuse(0, "there is no element <TS>, so this is not a file of Qt Linguist; choose another --format");
}

void QtLinguist::add(size_t message_element, size_t forms) {
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
