#include "formats/office_paragraph.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/utf8.h"
#include "document/sentences.h"
#include "formats/office_xml.h"

namespace starling {
namespace {

// Text as XML may have it: without control characters, and bytes that are not UTF-8 replaced.
std::string allowed_in_xml(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const auto [c, length] = decode_utf8_at(text.substr(at));
    const bool allowed = length > 0 && (c >= 0x20 || c == '\t' || c == '\n' || c == '\r') && c != 0xFFFE && c != 0xFFFF;
    if (allowed) out.append(text, at, static_cast<size_t>(length));
    if (length == 0) out += "\uFFFD";
    at += static_cast<size_t>(std::max(length, 1));
  }
  return out;
}

// Returns the number of <x n="12"/>.
size_t number_of(std::string_view tag) {
  const size_t at = tag.find('"');
  size_t number = SIZE_MAX;
  if (at != std::string_view::npos) std::from_chars(tag.data() + at + 1, tag.data() + tag.size(), number);
  return number;
}

}  // namespace

size_t OfficeParagraph::format(const Format& format) {
  const auto [place, fresh] = numbers_.emplace(format.key, formats_.size());
  if (!fresh) return place->second;
  formats_.push_back(format);
  lengths_.push_back(0);
  return formats_.size() - 1;
}

void OfficeParagraph::add_text(std::string_view xml, size_t format) {
  if (xml.empty()) return;
  lengths_[format] += xml.size();
  if (!items_.empty() && items_.back().kind == Kind::text && items_.back().format == format)
    items_.back().bytes += xml;
  else
    items_.push_back({Kind::text, std::string(xml), format});
}

void OfficeParagraph::add_single(std::string_view bytes, bool breaks) {
  const Kind kind = breaks ? Kind::breaks : Kind::single;
  if (!items_.empty() && items_.back().kind == kind)
    items_.back().bytes += bytes;
  else
    items_.push_back({kind, std::string(bytes)});
}

void OfficeParagraph::add_kept(std::string_view bytes, std::string_view xml) {
  items_.push_back({.kind = Kind::kept, .bytes = std::string(bytes), .text = std::string(xml)});
}

size_t OfficeParagraph::open(std::string_view bytes) {
  items_.push_back({Kind::open, std::string(bytes)});
  return items_.size() - 1;
}

void OfficeParagraph::close(size_t opened, std::string_view bytes) {
  items_[opened].partner = items_.size();
  items_.push_back({.kind = Kind::close, .bytes = std::string(bytes), .partner = opened});
}

bool OfficeParagraph::extend_open(std::string_view bytes) {
  if (items_.empty() || items_.back().kind != Kind::open) return false;
  items_.back().bytes += bytes;
  return true;
}

std::string OfficeParagraph::characters() const {
  std::string all;
  for (const Item& item : items_)
    if (item.kind == Kind::text) append_xml_characters(all, item.bytes);
  return all;
}

bool OfficeParagraph::has_words() const { return has_letter(characters()); }

// Finds the items from the first text to the last, with the containers that begin or end among them.
void OfficeParagraph::trim() {
  first_ = 0, last_ = items_.size();
  while (first_ < last_ && items_[first_].kind != Kind::text) ++first_;
  while (last_ > first_ && items_[last_ - 1].kind != Kind::text) --last_;
  for (size_t before = SIZE_MAX; before != last_ - first_;) {
    before = last_ - first_;
    for (size_t i = 0; i < first_; ++i)
      if (items_[i].kind == Kind::open && items_[i].partner < last_ && items_[i].partner >= first_) first_ = i;
    for (size_t i = items_.size(); i > last_; --i)
      if (items_[i - 1].kind == Kind::close && items_[i - 1].partner >= first_ && items_[i - 1].partner < last_) last_ = i;
  }
}

std::string OfficeParagraph::tagged() {
  for (Item& item : items_)
    if (item.kind == Kind::open && item.partner == SIZE_MAX) item.kind = Kind::single;
  trim();
  base_ = static_cast<size_t>(std::ranges::max_element(lengths_) - lengths_.begin());
  std::string out;
  size_t group = base_;
  const auto to_group = [&](size_t format) {
    if (group != base_ && format != group) out += "</g>";
    if (format != base_ && format != group) {
      out += fmt::format("<g n=\"{}\">", items_.size() + groups_.size());
      groups_.push_back(format);
    }
    group = format;
  };
  for (size_t i = first_; i < last_; ++i) {
    const Item& item = items_[i];
    switch (item.kind) {
      case Kind::text:
        to_group(item.format);
        out += item.bytes;
        break;
      case Kind::single:
        out += fmt::format("<x n=\"{}\"/>", i);
        break;
      case Kind::breaks:
        to_group(base_);
        out += fmt::format("<br n=\"{}\"/>", i);
        break;
      case Kind::kept:
        out += fmt::format("<k n=\"{}\">{}</k>", i, item.text);
        break;
      case Kind::open:
        to_group(base_);
        out += fmt::format("<c n=\"{}\">", i);
        break;
      case Kind::close:
        to_group(base_);
        out += "</c>";
        break;
    }
  }
  to_group(base_);
  return out;
}

void OfficeParagraph::append_text(std::string& out, std::string_view xml, const Format& format) const {
  if (format.element.empty()) {
    out += xml;
    return;
  }
  const bool spaces =
      format.keeps_spaces && (xml.front() == ' ' || xml.back() == ' ' || xml.find_first_of("\t\n") != std::string_view::npos ||
                              xml.find("  ") != std::string_view::npos);
  out += format.head;
  out += fmt::format("<{}{}>", format.element, spaces ? " xml:space=\"preserve\"" : "");
  out += xml;
  out += fmt::format("</{}>", format.element);
  out += format.tail;
}

// Returns false if a tag is missing, or at a place where it does not belong, or `spare` is spent.
bool OfficeParagraph::append_translated(std::string& out, std::string_view translation, size_t& spare) const {
  std::vector<char> seen(items_.size() + groups_.size(), 0);
  std::vector<size_t> open;
  for (size_t at = 0; at < translation.size();) {
    if (translation[at] != '<') {
      const size_t end = std::min(translation.find('<', at), translation.size());
      const bool in_group = !open.empty() && open.back() >= items_.size();
      const Format& format = formats_[in_group ? groups_[open.back() - items_.size()] : base_];
      const size_t properties = format.head.size() + format.tail.size();
      if (properties > spare) return false;
      spare -= properties;
      append_text(out, translation.substr(at, end - at), format);
      at = end;
      continue;
    }
    const size_t end = translation.find('>', at);
    if (end == std::string_view::npos) return false;
    const std::string_view tag = translation.substr(at, end + 1 - at);
    at = end + 1;
    if (tag == "</g>" || tag == "</c>") {
      const bool group = tag == "</g>";
      if (open.empty() || (open.back() >= items_.size()) != group) return false;
      if (!group) out += items_[items_[open.back()].partner].bytes;
      open.pop_back();
      continue;
    }
    const size_t number = number_of(tag);
    if (number >= seen.size() || seen[number]) return false;
    seen[number] = 1;
    const bool group = number >= items_.size();
    if (group != tag.starts_with("<g ")) return false;
    if (group || items_[number].kind == Kind::open) {
      if (!group && !open.empty() && open.back() >= items_.size()) return false;
      open.push_back(number);
    }
    if (!group) out += items_[number].bytes;
    if (!group && items_[number].kind == Kind::kept) {
      const size_t close = translation.find("</k>", at);
      if (close == std::string_view::npos) return false;
      at = close + 4;
    }
  }
  for (size_t i = first_; i < last_; ++i)
    if (items_[i].kind != Kind::text && items_[i].kind != Kind::close && !seen[i]) return false;
  return open.empty();
}

std::string OfficeParagraph::rewritten(const std::string& translation, size_t& spare) const {
  std::string out, middle;
  const std::string allowed = allowed_in_xml(translation);
  for (size_t i = 0; i < first_; ++i) out += items_[i].bytes;
  if (!append_translated(middle, allowed, spare)) {
    middle.clear();
    std::string text;
    for (size_t at = 0; at < allowed.size();) {
      const size_t tag = std::min(allowed.find('<', at), allowed.size());
      text.append(allowed, at, tag - at);
      at = std::min(allowed.find('>', tag), allowed.size() - 1) + 1;
    }
    if (!text.empty()) append_text(middle, text, formats_[base_]);
    for (size_t i = first_; i < last_; ++i)
      if (items_[i].kind != Kind::text) middle += items_[i].bytes;
  }
  out += middle;
  for (size_t i = last_; i < items_.size(); ++i) out += items_[i].bytes;
  return out;
}

}  // namespace starling
