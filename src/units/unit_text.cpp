#include "units/unit_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "base/error.h"
#include "base/utf8.h"
#include "document/plain_tags.h"
#include "document/sentences.h"

namespace starling {

void UnitText::add_text(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t tab = std::min(text.find('\t', at), text.size());
    append_escaped(xml_, text.substr(at, tab - at));
    words_ += text.substr(at, tab - at);
    if (tab < text.size()) add_separator("\t");
    at = tab + 1;
  }
}

void UnitText::add_with_tags(std::string_view text, const Encode& encode) {
  const std::vector<HtmlToken> tokens = scan_plain_tags(text);
  std::map<size_t, size_t> pairs;  // by the token that opens
  for (size_t i = 0; i < tokens.size(); ++i) {
    const HtmlToken& token = tokens[i];
    const std::string_view bytes = text.substr(token.begin, token.end - token.begin);
    std::string written;
    if (token.kind == HtmlToken::text)
      add_text(bytes);
    else
      encode(written, {}, bytes);
    if (token.kind == HtmlToken::text) continue;
    if (token.separates)
      add_separator(std::move(written));
    else if (token.partner == SIZE_MAX)
      add_single(std::move(written));
    else if (token.kind == HtmlToken::open)
      pairs[i] = open(std::move(written));
    else
      close(pairs[token.partner], std::move(written));
  }
}

void UnitText::add_html(std::string_view html, const Encode& encode, bool entities) {
  html_ |= entities;
  const std::vector<HtmlToken> tokens = scan_html(html);
  std::map<size_t, size_t> pairs;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const HtmlToken& token = tokens[i];
    const bool skipped = token.untouched && token.partner != SIZE_MAX;
    const std::string_view bytes = html.substr(token.begin, (skipped ? tokens[token.partner].end : token.end) - token.begin);
    if (token.kind == HtmlToken::text) {
      for (size_t at = 0; at < bytes.size();) {
        const HtmlEntity entity = entities && bytes[at] == '&' ? html_entity(bytes.substr(at)) : HtmlEntity();
        if ((entity.length > 0 && entity.text.empty()) || (entities && bytes[at] == '<')) {  // unknown, or of broken HTML
          std::string written;
          encode(written, {}, bytes.substr(at, std::max<size_t>(entity.length, 1)));
          add_single(std::move(written));
        } else {
          add_text(entity.length > 0 ? entity.text : bytes.substr(at, 1));
        }
        at += std::max<size_t>(entity.length, 1);
      }
      continue;
    }
    std::string written;
    encode(written, {}, bytes);
    if (token.separates)
      add_separator(std::move(written));
    else if (skipped)
      add_kept(std::move(written), html.substr(token.end, tokens[token.partner].begin - token.end));
    else if (token.partner == SIZE_MAX)
      add_single(std::move(written));
    else if (token.kind == HtmlToken::open)
      pairs[i] = open(std::move(written));
    else if (const auto pair = pairs.find(token.partner); pair != pairs.end())
      close(pair->second, std::move(written));
    else
      add_single(std::move(written));
    if (skipped) i = token.partner;
  }
}

void UnitText::add_empty(const char* name, Fragments fragments) {
  xml_ += fmt::format("<{} n=\"{}\"/>", name, parts_.size());
  words_ += ' ';
  parts_.push_back(std::move(fragments));
}

void UnitText::add_kept(std::string bytes, std::string_view shown) {
  xml_ += fmt::format("<k n=\"{}\">", parts_.size());
  append_escaped(xml_, shown);
  xml_ += "</k>";
  words_ += ' ';
  parts_.push_back({{std::move(bytes)}});
}

size_t UnitText::open(std::string bytes, bool stays) {
  if (!stays) vanishing_.push_back(parts_.size());
  xml_ += fmt::format("<g{}>", parts_.size());
  parts_.push_back({{std::move(bytes)}});
  parts_.push_back({});
  return parts_.size() - 2;
}

void UnitText::close(size_t pair, std::string bytes) {
  xml_ += fmt::format("</g{}>", pair);
  parts_[pair + 1] = {{std::move(bytes)}};
}

bool UnitText::has_words() const { return has_letter(words_); }

std::vector<size_t> UnitText::nested() const {
  std::vector<size_t> units;
  for (const Fragments& fragments : parts_)
    for (const Fragment& fragment : fragments)
      if (fragment.unit != SIZE_MAX) units.push_back(fragment.unit);
  return units;
}

TextUnit UnitText::unit(SentenceEnds ends) const {
  TextUnit unit{xml_, DocumentFormat::xml, {}};
  unit.options.ends = ends;
  unit.options.tags = {{"k"}, {"s"}, {}, false};
  return unit;
}

void UnitText::append(std::string& out, std::string_view translation, const Encode& encode,
                      const std::function<void(std::string& out, size_t unit)>& nested) const {
  const size_t begin = out.size();
  std::string text;
  const auto flush = [&](bool ends) {
    std::string html;
    if (html_) append_escaped(html, text);
    if (!text.empty()) encode(out, {begin, ends}, html_ ? html : text);
    text.clear();
  };
  for (size_t at = 0; at < translation.size();) {
    const std::string_view rest = translation.substr(at);
    if (rest[0] == '&') {
      const HtmlEntity entity = html_entity(rest);
      text += entity.length > 0 ? entity.text : "&";
      at += std::max<size_t>(entity.length, 1);
      continue;
    }
    if (rest[0] != '<') {
      text += rest[0];
      ++at;
      continue;
    }
    flush(false);
    size_t end = std::min(rest.find('>'), rest.size() - 1), number = 0;
    const bool closes = rest.starts_with("</");
    const size_t digits = std::min(rest.find_first_of("0123456789"), rest.size());
    std::from_chars(rest.data() + digits, rest.data() + rest.size(), number);
    CHECK(digits < end && number + closes < parts_.size(), "the translation of a unit has the tag {}", rest.substr(0, end + 1));
    if (rest.starts_with("<k")) end = std::min(rest.find("</k>"), rest.size() - 4) + 3;
    if (std::binary_search(vanishing_.begin(), vanishing_.end(), number) && rest.starts_with("<g")) {
      const std::string close = fmt::format("</g{}>", number);
      if (rest.substr(end + 1).starts_with(close)) {
        at += end + 1 + close.size();
        continue;
      }
    }
    for (const Fragment& fragment : parts_[number + closes]) {
      const bool joins = out.size() > begin && !fragment.bytes.empty() && (out.back() == '`' || out.back() == '$') &&
                         fragment.bytes[0] == out.back() && !closes;
      if (joins) out += ' ';  // two pieces of code would be one
      out += fragment.bytes;
      if (fragment.unit != SIZE_MAX) nested(out, fragment.unit);
    }
    at += end + 1;
  }
  flush(true);
}

size_t EditedFile::add_unit(UnitText text, SentenceEnds ends, UnitText::Encode encode) {
  const size_t number = add(text.unit(ends));
  texts_.push_back(std::move(text));
  encodes_.push_back(std::move(encode));
  return number;
}

void EditedFile::replace_value(size_t begin, size_t end, Fragments fragments, WriteValue write) {
  size_t bytes = sizeof(Edit);
  for (const Fragment& fragment : fragments) bytes += sizeof fragment + fragment.bytes.size();
  count_held(bytes);
  edits_.push_back({begin, end, std::move(fragments), std::move(write)});
}

void EditedFile::append_unit(std::string& out, size_t unit, std::span<const std::string> translations) const {
  texts_[unit].append(out, translations[unit], encodes_[unit],
                      [&](std::string& to, size_t nested) { append_unit(to, nested, translations); });
}

bool EditedFile::is_unchanged(const Edit& edit, std::span<const std::string> translations) const {
  std::vector<size_t> units;
  for (const Fragment& fragment : edit.fragments)
    if (fragment.unit != SIZE_MAX) units.push_back(fragment.unit);
  if (units.empty() || edit.begin == edit.end) return false;
  for (size_t i = 0; i < units.size(); ++i) {
    if (translations[units[i]] != group()[units[i]].text) return false;
    for (const size_t unit : texts_[units[i]].nested()) units.push_back(unit);
  }
  return true;
}

void EditedFile::write_group(std::span<const std::string> translations, bool last) {
  std::ranges::stable_sort(edits_, {}, &Edit::begin);
  std::string out;
  for (const Edit& edit : edits_) {
    if (in_place_ && is_unchanged(edit, translations)) continue;
    CHECK(edit.begin >= done_ && edit.end >= edit.begin, "the places at bytes {} and {} overlap", done_, edit.begin);
    if (edit.begin - done_ > out.size()) {  // a long way to the next place
      write(out);
      out.clear();
      write(std::string_view(text_).substr(done_, edit.begin - done_));
    } else {
      out.append(text_, done_, edit.begin - done_);
    }
    std::string value;
    std::string& to = edit.write ? value : out;
    for (const Fragment& fragment : edit.fragments) {
      to += fragment.bytes;
      if (fragment.unit != SIZE_MAX) append_unit(to, fragment.unit, translations);
    }
    if (edit.write) edit.write(out, value);
    done_ = edit.end;
  }
  write(out);
  if (last) write(std::string_view(text_).substr(done_));
}

void EditedFile::drop_group() {
  texts_.clear();
  encodes_.clear();
  edits_.clear();
}

void EditedFile::restart() {
  drop_group();
  done_ = 0;
}

void EditedFile::refuse(size_t at, const std::string& why) const {
  const auto line = 1 + std::count(text_.begin(), text_.begin() + static_cast<ptrdiff_t>(std::min(at, text_.size())), '\n');
  throw DataError(fmt::format("line {}: {}", line, why));
}

void EditedFile::require_utf8() const {
  if (text_.starts_with("\xFF\xFE") || text_.starts_with("\xFE\xFF"))
    throw DataError("line 1: the file is in UTF-16; convert it to UTF-8, for instance with iconv -f utf-16 -t utf-8");
  if (const auto bad = invalid_utf8_offset(text_))
    refuse(*bad, "a byte does not belong to UTF-8; convert the file, for instance with iconv -f latin1 -t utf-8");
}

}  // namespace starling
