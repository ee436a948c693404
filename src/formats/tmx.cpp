#include "formats/tmx.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/utf8.h"
#include "document/html.h"
#include "text/language_match.h"
#include "text/languages.h"
#include "text/unicode.h"
#include "units/xml_elements.h"

namespace starling {
namespace {

constexpr size_t kTmxChunk = size_t{256} << 10;

// Elements that stand for formatting of the original; what is in them is no text.
const std::set<std::string, std::less<>> kNoText{"bpt", "ept", "ph", "it", "ut"};

struct Segment {
  std::string language, text;
};

// Returns the segments of a unit (<tu>).
std::vector<Segment> segments_of(std::string_view unit) {
  std::vector<Segment> segments;
  const std::vector<HtmlToken> tokens = scan_xml(unit);
  bool within = false;
  size_t skip = 0;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const HtmlToken& t = tokens[i];
    const std::string_view bytes = unit.substr(t.begin, t.end - t.begin);
    if (t.kind == HtmlToken::open && t.name == "tuv") {
      const std::string_view language = tag_attribute(bytes, "xml:lang");
      segments.push_back({comparable_language(language.empty() ? tag_attribute(bytes, "lang") : language), ""});
    } else if ((t.kind == HtmlToken::open || t.kind == HtmlToken::close) && t.name == "seg") {
      within = t.kind == HtmlToken::open && !segments.empty();
    } else if (within && t.kind == HtmlToken::open && kNoText.contains(t.name) && t.partner != SIZE_MAX) {
      skip = std::max(skip, t.partner);
    } else if (within && i > skip && t.kind == HtmlToken::text) {
      segments.back().text += xml_text(bytes);
    } else if (within && i > skip && bytes.starts_with(kCdata)) {
      segments.back().text += bytes.substr(kCdata.size(), bytes.size() - std::min(bytes.size(), kCdata.size() + 3));
    }
  }
  return segments;
}

// Returns the segment of a language: of just this code, else of the language without a region, else of any region.
const Segment* segment_in(const std::vector<Segment>& segments, std::string_view code, const Segment* other) {
  const std::string main = main_language(code);
  const Segment* found = nullptr;
  for (const Segment& s : segments) {
    if (&s == other || main_language(s.language) != main) continue;
    if (s.language == code) return &s;
    if (!found || s.language == main) found = &s;
  }
  return found;
}

}  // namespace

TmxReader::TmxReader(Read read, std::string source, std::string target)
    : read_(std::move(read)), source_(comparable_language(source)), target_(comparable_language(target)) {}

// Reads more of the file; returns false at its end.
bool TmxReader::fill() {
  if (ended_) return false;
  buffer_.erase(0, at_);
  at_ = 0;
  const size_t kept = raw_.size();
  raw_.resize(kept + kTmxChunk);
  const size_t got = read_(raw_.data() + kept, kTmxChunk);
  raw_.resize(kept + got);
  ended_ = got == 0;
  if (encoding_ == Encoding::unknown && (raw_.size() >= 3 || ended_)) {
    encoding_ = raw_.starts_with("\xFF\xFE") ? Encoding::little : raw_.starts_with("\xFE\xFF") ? Encoding::big : Encoding::utf8;
    raw_.erase(0, byte_order_mark(raw_));
  }
  if (encoding_ == Encoding::utf8) {
    buffer_ += raw_;
    raw_.clear();
  } else if (encoding_ != Encoding::unknown) {
    size_t i = 0;
    for (; i + 1 < raw_.size(); i += 2) {
      const auto first = static_cast<unsigned char>(raw_[i]), second = static_cast<unsigned char>(raw_[i + 1]);
      const char32_t unit = encoding_ == Encoding::little ? first | second << 8 : first << 8 | second;
      if (unit >= 0xD800 && unit < 0xDC00)
        high_ = unit;
      else if (unit >= 0xDC00 && unit < 0xE000)
        append_utf8(buffer_, high_ != 0 ? 0x10000 + ((high_ - 0xD800) << 10) + (unit - 0xDC00) : U'\uFFFD'), high_ = 0;
      else if (unit != 0xFEFF)
        append_utf8(buffer_, unit), high_ = 0;
    }
    raw_.erase(0, i);
  }
  return true;
}

// Counts the lines up to a byte of the buffer, of which nothing before is needed any more.
void TmxReader::skip_to(size_t at) {
  line_ += std::count(buffer_.begin() + static_cast<ptrdiff_t>(at_), buffer_.begin() + static_cast<ptrdiff_t>(at), '\n');
  at_ = at;
}

bool TmxReader::find_unit(std::string_view& unit) {
  while (true) {
    const size_t found = buffer_.find("<tu", at_);
    if (found == std::string::npos || found + 3 >= buffer_.size()) {
      // What stands before the first unit is kept, since it names the source language.
      if (found == std::string::npos && header_read_ && buffer_.size() > at_ + 3) skip_to(buffer_.size() - 3);
      if (buffer_.size() - at_ > kMostUnitBytes) throw DataError("the header of the memory has no end; check that this is a TMX file");
      if (!fill()) return false;
      continue;
    }
    if (!header_read_ && source_.empty()) {
      const std::string_view before = std::string_view(buffer_).substr(at_, found - at_);
      const size_t header = before.find("<header");
      if (header != std::string_view::npos)
        source_ = comparable_language(tag_attribute(before.substr(header, before.find('>', header) - header), "srclang"));
    }
    header_read_ = true;
    skip_to(found);
    const char after = buffer_[at_ + 3];
    if (after != '>' && after != ' ' && after != '\n' && after != '\r' && after != '\t') {  // <tuv
      skip_to(at_ + 3);
      continue;
    }
    size_t searched = at_, end = 0;
    while ((end = buffer_.find("</tu>", searched)) == std::string::npos) {
      searched = std::max(at_, buffer_.size() - std::min<size_t>(buffer_.size(), 4)) - at_;
      const bool too_long = buffer_.size() - at_ > kMostUnitBytes;
      if (too_long || !fill())
        throw DataError(
            fmt::format("the unit that begins in line {} {}", line_,
                        too_long ? fmt::format("has no end (</tu>) within {} MiB", kMostUnitBytes >> 20) : "has no end (</tu>)"));
      searched += at_;
    }
    unit = std::string_view(buffer_).substr(at_, end - at_);
    return true;
  }
}

bool TmxReader::next(std::string& source, std::string& target) {
  for (std::string_view unit; find_unit(unit);) {
    const std::vector<Segment> segments = segments_of(unit);
    skip_to(at_ + unit.size());
    for (const Segment& s : segments) languages_.insert(s.language);
    const Segment* from = segment_in(segments, source_, nullptr);
    const Segment* to = nullptr;
    if (!target_.empty()) {
      to = segment_in(segments, target_, from);
    } else {
      std::set<std::string> main;
      for (const std::string& l : languages_) main.insert(main_language(l));
      if (main.size() > 2) throw DataError("the memory has several languages; choose one with --target-language");
      for (const Segment& s : segments)
        if (from && !to && main_language(s.language) != main_language(source_)) to = &s;
    }
    if (!from || !to) continue;
    source = with_single_spaces(from->text);
    target = with_single_spaces(to->text);
    ++pairs_;
    return true;
  }
  return false;
}

void TmxReader::require_pairs() const {
  if (pairs_ > 0) return;
  if (languages_.empty()) throw DataError("the memory has no sentences");
  throw DataError(fmt::format("the memory has no sentences from {} to {}; its languages are {}",
                              source_.empty() ? "the model's language" : source_, target_.empty() ? "another" : target_,
                              fmt::join(languages_, ", ")));
}

}  // namespace starling
