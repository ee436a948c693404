// Separates what is at the ends of a sentence but not part of it: an emoji after it, the name of the addressee, tags, an address. The model
// gets the sentence without them, so that they cannot mislead it.
#include <algorithm>

#include "document/markup.h"
#include "text/unicode.h"

namespace starling {

namespace {

size_t length_at(std::string_view text, size_t at) { return static_cast<size_t>(std::max(decode_utf8_at(text.substr(at)).length, 1)); }

bool is_space_at(std::string_view text, size_t at) {
  const auto [c, length] = decode_utf8_at(text.substr(at));
  return length > 0 && is_unicode_space(c);
}

// Returns the position after the characters from `at` on for which `is` holds.
template <class Is>
size_t skip(std::string_view text, size_t at, size_t end, const Is& is) {
  while (at < end && is(at)) at += length_at(text, at);
  return at;
}
// The same backwards: returns the position before the characters that end at `at`.
template <class Is>
size_t skip_back(std::string_view text, size_t at, size_t begin, const Is& is) {
  while (at > begin) {
    size_t last = at - 1;
    while (last > begin && at - last < 4 && is_continuation(static_cast<unsigned char>(text[last]))) --last;
    if (!is(last)) break;
    at = last;
  }
  return at;
}

bool is_pause(char32_t c) { return std::u32string_view(U",:;-\u2013\u2014\u3001\uFF0C\uFF1A").find(c) != std::u32string_view::npos; }

// Signs that belong to the word before them, as in "Name\u2122".
bool belongs_to_word(std::string_view placeholder) {
  return placeholder.starts_with("\u00A9") || placeholder.starts_with("\u00AE") || placeholder.starts_with("\u2122");
}

bool is_picture(std::string_view placeholder) { return static_cast<unsigned char>(placeholder.front()) >= 0x80; }

}  // namespace

bool is_final_mark(char32_t c) {
  return std::u32string_view(U".!?\u2026\u3002\uFF01\uFF1F\u061F\u06D4\u0964\u0965\u1362").find(c) != std::u32string_view::npos;
}

void MarkedSentence::leave_out_ends() {
  const std::string_view all = text;
  const auto is_space = [&](size_t at) { return is_space_at(all, at); };
  const auto is_final = [&](size_t at) { return is_final_mark(decode_utf8_at(all.substr(at)).value); };
  const auto is_mark = [&](size_t at) { return is_pause(decode_utf8_at(all.substr(at)).value) || is_final(at); };
  const auto of = [&](const Kept& k) { return all.substr(static_cast<size_t>(k.at.begin), static_cast<size_t>(k.at.count())); };

  size_t first = 0, begin = 0;  // the first placeholder and the first byte that are translated
  for (; first < kept.size() && kept[first].placeholder && static_cast<size_t>(kept[first].at.begin) == begin; ++first) {
    const size_t end = static_cast<size_t>(kept[first].at.end);
    const size_t limit = first + 1 < kept.size() ? static_cast<size_t>(kept[first + 1].at.begin) : all.size();
    const size_t apart = skip(all, end, limit, is_space);
    const size_t mark = skip(all, apart, limit, is_mark);
    const size_t next = skip(all, mark, limit, is_space);
    const bool another = limit == end && first + 1 < kept.size();
    if (mark > apart && next > mark)
      begin = next;  // for example a placeholder with a colon
    else if (apart > end || another || (mark == end && is_picture(of(kept[first]))))
      begin = apart;
    else
      break;
  }

  const size_t marks = skip_back(all, all.size(), kept.empty() ? begin : static_cast<size_t>(kept.back().at.end), is_final);
  size_t last = kept.size(), end = marks;
  for (; last > first && kept[last - 1].placeholder; --last) {
    const Kept& k = kept[last - 1];
    if (static_cast<size_t>(k.at.end) != skip_back(all, end, begin, is_space)) break;
    const size_t before = static_cast<size_t>(k.at.begin), word = skip_back(all, before, begin, is_space);
    const bool apart =
        word < before || skip_back(all, before, begin, is_mark) < before || (last > first + 1 && kept[last - 2].at.end == k.at.begin);
    if (!apart && (!is_picture(of(k)) || belongs_to_word(of(k)))) break;
    end = word;
  }
  front = {0, static_cast<int64_t>(begin)};
  back = {static_cast<int64_t>(all.size()), static_cast<int64_t>(all.size())};
  if (last == kept.size()) return;
  const bool has_own_marks = skip_back(all, end, begin, is_final) < end;
  back = {static_cast<int64_t>(end), static_cast<int64_t>(has_own_marks ? all.size() : marks)};
}

std::string MarkedSentence::translated_text() const {
  if (front.count() == 0 && back.count() == 0) return text;
  return text.substr(static_cast<size_t>(front.end), static_cast<size_t>(back.begin - front.end)) +
         text.substr(static_cast<size_t>(back.end));
}

Range MarkedSentence::in_text(Range translated) const {
  const auto place = [&](int64_t at) {
    at += front.count();
    return back.count() > 0 && at >= back.begin ? at + back.count() : at;
  };
  const int64_t begin = place(translated.begin);
  return {begin, translated.count() > 0 ? place(translated.end - 1) + 1 : begin};
}

}  // namespace starling
