#include "units/xml_elements.h"

#include <fmt/format.h>

#include "base/ascii.h"
#include "base/error.h"
#include "base/quotes.h"

namespace starling {
namespace {

std::string_view local(std::string_view name) { return name.substr(name.find(':') == std::string_view::npos ? 0 : name.find(':') + 1); }

// Whether each quote within a tag has a second one.
bool quotes_match(std::string_view tag) {
  for (size_t at = tag.find_first_of("\"'"); at != tag.npos; at = tag.find_first_of("\"'", at + 1)) {
    at = tag.find(tag[at], at + 1);
    if (at == tag.npos) return false;
  }
  return true;
}

// Returns the length of the name at the beginning.
size_t name_length(std::string_view text) {
  size_t end = 0;
  const auto fits = [](char c, bool first) {
    return is_ascii_letter(c) || c == '_' || static_cast<unsigned char>(c) >= 0x80 ||
           (!first && (is_ascii_digit(c) || c == '.' || c == '-'));
  };
  while (end < text.size() && fits(text[end], end == 0)) ++end;
  return end;
}

}  // namespace

std::string xml_text(std::string_view xml) {
  std::string text;
  for (size_t at = 0; at < xml.size();) {
    const HtmlEntity entity = xml[at] == '&' ? html_entity(xml.substr(at)) : HtmlEntity();
    if (entity.length > 0)
      text += entity.text.empty() ? xml.substr(at, entity.length) : entity.text;
    else
      text += xml[at];
    at += std::max<size_t>(entity.length, 1);
  }
  return text;
}

void encode_xml(std::string& out, UnitText::Place, std::string_view text) { append_escaped(out, text); }

XmlFile::XmlFile(std::string bytes, bool in_place, std::string_view target)
    : MessageFile(std::move(bytes), in_place, target), scanner_("") {
  require_utf8();
  for (size_t at = text_.find("<!ENTITY "); at != std::string::npos; at = text_.find("<!ENTITY ", at + 1)) {
    const std::string_view rest = trimmed(std::string_view(text_).substr(at + 9, 1000), " \t\r\n");
    const std::string_view name = rest.substr(0, name_length(rest));
    const std::string_view value = trimmed(rest.substr(name.size(), rest.find('>') - name.size()), " \t\r\n\"'");
    if (xml_text(value) != html_entity(fmt::format("&{};", name)).text) declared_.emplace(name);
  }
}

void XmlFile::rewind() {
  scanner_ = XmlTokens(text_);
  open_.clear();
}

// Returns the name in the tag that begins at a byte.
std::string_view XmlFile::name_at(size_t tag) const {
  const std::string_view rest = std::string_view(text_).substr(tag + 1);
  return rest.substr(0, rest.find_first_of(" \t\r\n\f\v/>"));
}

std::optional<HtmlToken> XmlFile::read_token() {
  std::optional<HtmlToken> token = scanner_.next();
  if (!token) {
    if (!open_.empty()) refuse(open_.back(), fmt::format("<{}> is not closed", printable(name_at(open_.back()))));
    return token;
  }
  const std::string_view bytes = std::string_view(text_).substr(token->begin, token->end - token->begin);
  if (!token->name.empty() && !quotes_match(bytes))
    refuse(token->begin, fmt::format("a quote of <{}> is not closed", printable(token->name)));
  if (token->kind == HtmlToken::text) {
    if (const size_t angle = bytes.find('<'); angle != std::string_view::npos)
      refuse(token->begin + angle, "this \"<\" does not begin a tag; write &lt; for the character");
  } else if (token->kind == HtmlToken::open) {
    open_.push_back(token->begin);
  } else if (token->kind == HtmlToken::close) {
    if (open_.empty()) refuse(token->begin, fmt::format("</{}> has no opening tag", printable(token->name)));
    if (const std::string_view opened = name_at(open_.back()); token->name != opened)
      refuse(token->begin, fmt::format("</{}> comes before <{}> is closed", printable(token->name), printable(opened)));
    open_.pop_back();
  } else if ((bytes.starts_with("<!--") && !bytes.ends_with("-->")) || (bytes.starts_with(kCdata) && !bytes.ends_with("]]>")) ||
             !bytes.ends_with(">")) {
    refuse(token->begin, fmt::format("\"{}\" is not closed", printable(bytes.substr(0, 9))));
  }
  return token;
}

bool XmlFile::next() {
  tokens_.clear();
  if (std::optional<HtmlToken> token = read_token()) tokens_.push_back(std::move(*token));
  return !tokens_.empty();
}

void XmlFile::read_element(bool keep) {
  if (!opens(0)) return;
  std::vector<size_t> open{0};  // tokens
  for (const size_t outside = depth() - 1; depth() > outside;) {
    std::optional<HtmlToken> token = read_token();
    if (!keep) continue;
    if (token->kind == HtmlToken::open) open.push_back(tokens_.size());
    if (token->kind == HtmlToken::close) {
      token->partner = open.back();
      tokens_[open.back()].partner = tokens_.size();
      open.pop_back();
    }
    tokens_.push_back(std::move(*token));
  }
}

std::string_view XmlFile::name(size_t token) const { return local(tokens_[token].name); }

std::vector<size_t> XmlFile::children(size_t element) const {
  std::vector<size_t> all;
  for (size_t i = element + 1; i < last_of(element); ++i) {
    if (!is_element(i)) continue;
    all.push_back(i);
    i = last_of(i);
  }
  return all;
}

std::optional<size_t> XmlFile::child(size_t element, std::string_view name) const {
  for (size_t i = element + 1; i < last_of(element); ++i) {
    if (!is_element(i)) continue;
    if (this->name(i) == name) return i;
    i = last_of(i);
  }
  return std::nullopt;
}

std::optional<Range> XmlFile::attribute_place(size_t element, std::string_view name) const {
  const std::string_view tag = bytes_of(element);
  size_t at = 1;
  while (at < tag.size() && !is_ascii_space(tag[at])) ++at;
  while (at < tag.size()) {
    while (at < tag.size() && is_ascii_space(tag[at])) ++at;
    const size_t key = at;
    while (at < tag.size() && !is_ascii_space(tag[at]) && tag[at] != '=' && tag[at] != '>') ++at;
    const std::string_view found = tag.substr(key, at - key);
    while (at < tag.size() && is_ascii_space(tag[at])) ++at;
    if (at >= tag.size() || tag[at] != '=') return std::nullopt;
    ++at;
    while (at < tag.size() && is_ascii_space(tag[at])) ++at;
    if (at >= tag.size() || (tag[at] != '"' && tag[at] != '\'')) return std::nullopt;
    const size_t end = tag.find(tag[at], at + 1);
    if (end == std::string_view::npos) return std::nullopt;
    if (found == name) return Range{static_cast<int64_t>(begin_of(element) + at + 1), static_cast<int64_t>(begin_of(element) + end)};
    at = end + 1;
  }
  return std::nullopt;
}

std::string XmlFile::attribute(size_t element, std::string_view name) const {
  const auto place = attribute_place(element, name);
  return place ? xml_text(std::string_view(text_).substr(static_cast<size_t>(place->begin), static_cast<size_t>(place->count()))) : "";
}

void XmlFile::set_attributes(size_t element, const std::vector<std::pair<std::string, std::string>>& values) {
  std::string added;
  for (const auto& [key, value] : values) {
    if (const auto place = attribute_place(element, key))
      replace(static_cast<size_t>(place->begin), static_cast<size_t>(place->end), {{value}});
    else
      added += fmt::format(" {}=\"{}\"", key, value);
  }
  const std::string_view tag = bytes_of(element);
  size_t end = tag.size() - (tag.ends_with("/>") ? 2 : 1);
  while (end > 0 && is_ascii_space(tag[end - 1])) --end;
  if (!added.empty()) insert(begin_of(element) + end, added);
}

void XmlFile::check_language(size_t element, const char* name, const std::string& ours, const char* option) const {
  const std::string theirs = attribute(element, name);
  if (theirs.empty() || ours.empty() || main_language(theirs) == main_language(ours)) return;
  refuse(begin_of(element), fmt::format("{} is {}, but the model's language is {}; use another model, or give {} {} if both are the same",
                                        name, printable(theirs), ours, option, printable(theirs)));
}

void XmlFile::set_content(size_t element, Fragments fragments, WriteValue write) {
  if (fragments.empty()) return;
  if (opens(element)) return replace_value(end_of(element), begin_of(last_of(element)), std::move(fragments), std::move(write));
  const size_t slash = end_of(element) - 2;  // of <a/>
  replace(slash, end_of(element), {{">"}});
  replace_value(end_of(element), end_of(element), std::move(fragments), std::move(write));
  insert(end_of(element), "</" + tokens_[element].name + ">");
}

std::vector<std::string_view> XmlFile::split_at_own_entities(std::string_view xml) const {
  std::vector<std::string_view> pieces;
  size_t begin = 0;
  for (size_t at = xml.find('&'); at != std::string_view::npos; at = xml.find('&', at + 1)) {
    const std::string_view entity_name = xml.substr(at + 1, name_length(xml.substr(at + 1)));
    const size_t end = at + 1 + entity_name.size();
    if (entity_name.empty() || end == xml.size() || xml[end] != ';') continue;
    if (!declared_.contains(std::string(entity_name)) && !html_entity(xml.substr(at)).text.empty()) continue;
    pieces.push_back(xml.substr(begin, at - begin));
    pieces.push_back(xml.substr(at, end + 1 - at));
    begin = end + 1;
  }
  pieces.push_back(xml.substr(begin));
  return pieces;
}

bool XmlFile::has_own_entity(size_t element) const {
  for (size_t i = element + 1; i < last_of(element); ++i)
    if (tokens_[i].kind == HtmlToken::text && split_at_own_entities(bytes_of(i)).size() > 1) return true;
  return false;
}

std::string XmlFile::text_within(size_t element) const {
  std::string all;
  for (size_t i = element + 1; i < last_of(element); ++i) {
    const std::string_view token = bytes_of(i);
    if (tokens_[i].kind == HtmlToken::text)
      all += xml_text(token);
    else if (token.starts_with(kCdata))
      all += token.substr(kCdata.size(), token.size() - kCdata.size() - 3);
  }
  return all;
}

bool XmlFile::has_content(size_t element) const {
  for (size_t i = element + 1; i < last_of(element); ++i) {
    const std::string_view token = bytes_of(i);
    if (tokens_[i].kind == HtmlToken::text ? token.find_first_not_of(" \t\r\n") != token.npos : !token.starts_with("<!--")) return true;
  }
  return false;
}

}  // namespace starling
