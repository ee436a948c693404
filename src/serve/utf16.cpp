#include "serve/utf16.h"

#include <algorithm>

#include "base/utf8.h"

namespace starling {
namespace {

// Returns the number of UTF-16 code units before each byte of a text, and at its end.
std::vector<int64_t> units(std::string_view text) {
  std::vector<int64_t> before;
  before.reserve(text.size() + 1);
  int64_t count = 0;
  for (const char c : text) {
    before.push_back(count);
    const auto byte = static_cast<unsigned char>(c);
    if (!is_continuation(byte)) count += byte >= 0xF0 ? 2 : 1;
  }
  before.push_back(count);
  return before;
}

Range in_units(const std::vector<int64_t>& units, Range bytes) {
  const int64_t last = static_cast<int64_t>(units.size()) - 1;
  return {units[static_cast<size_t>(std::clamp<int64_t>(bytes.begin, 0, last))],
          units[static_cast<size_t>(std::clamp<int64_t>(bytes.end, 0, last))]};
}

}  // namespace

std::vector<AlignedSpans> utf16_spans(std::string_view source, const AlignedText& translation) {
  const std::vector<int64_t> from = units(source), to = units(translation.text);
  std::vector<AlignedSpans> all;
  for (const AlignedText::Link& link : translation.links) {
    const AlignedSpans span{in_units(from, link.source), in_units(to, link.target)};
    if (!all.empty() && all.back().source == span.source && all.back().target.end == span.target.begin)
      all.back().target.end = span.target.end;
    else
      all.push_back(span);
  }
  return all;
}

}  // namespace starling
