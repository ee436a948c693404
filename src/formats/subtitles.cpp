#include "formats/subtitles.h"

#include <algorithm>

#include "base/ascii.h"
#include "base/error.h"
#include "base/utf8.h"
#include "document/plain_tags.h"
#include "document/sentences.h"
#include "text/unicode.h"

namespace starling {
namespace {

constexpr int64_t kLineWidth = 42;                              // columns of the longest line, as broadcasters ask for
constexpr size_t kMostLines = 1000;                             // of a cue; what follows them is none
constexpr size_t kMostJoined = 6;                               // cues that are translated as one,
constexpr size_t kMostBytes = 600;                              // and their bytes
constexpr double kClauseShare = 0.08;                           // of the text, by which a cut behind a clause may miss its place,
constexpr double kMostBonus = 10;                               // and columns, at the most
constexpr size_t kMostReopened = 20, kMostReopenedBytes = 400;  // tags that are open again on each line
constexpr size_t kLongestTime = 40;                             // bytes of a tag with a time
constexpr std::string_view kArrow = "-->";

struct FileLine {
  size_t begin = 0, end = 0, next = 0;  // without and with its end
};

FileLine file_line_at(std::string_view text, size_t begin) {
  const size_t end = std::min(text.find('\n', begin), text.size());
  return {begin, end > begin && text[end - 1] == '\r' ? end - 1 : end, std::min(end + 1, text.size())};
}

bool is_blank(std::string_view line) { return line.find_first_not_of(" \t\r") == std::string_view::npos; }

// "00:01:02,500 --> 00:01:04,000" with what may follow it; hours may be missing in WebVTT.
bool is_times(std::string_view line) {
  const size_t arrow = line.find(kArrow);
  if (arrow == std::string_view::npos || arrow < 5) return false;
  const auto is_time = [](std::string_view t) {
    t = trimmed(t, " ");
    return t.size() >= 5 && t.find(':') != std::string_view::npos && t.find_first_not_of("0123456789:.,") == std::string_view::npos;
  };
  std::string_view to = line.substr(arrow + kArrow.size());
  to.remove_prefix(std::min(to.find_first_not_of(' '), to.size()));
  return is_time(line.substr(line.find_first_not_of(' '), arrow - line.find_first_not_of(' '))) && is_time(to.substr(0, to.find(' ')));
}

// Whether a line is what another person says: it begins with a dash, or with a voice of WebVTT.
bool begins_turn(std::string_view line) {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  if (line.starts_with("<v ") || line.starts_with("<v.")) return true;
  for (const std::string_view dash : {"-", "\u2013", "\u2014", "\u2010"})
    if (line.starts_with(dash)) return true;
  return false;
}

// Columns of a character: letters of East Asia take two, marks that combine none.
int64_t columns_of(char32_t c) {
  const bool wide = (c >= 0x1100 && c <= 0x115F) || (c >= 0x2E80 && c <= 0xA4CF) || (c >= 0xAC00 && c <= 0xD7A3) ||
                    (c >= 0xF900 && c <= 0xFAFF) || (c >= 0xFE30 && c <= 0xFE6F) || (c >= 0xFF00 && c <= 0xFF60) || c >= 0x20000;
  return is_default_ignorable(c) || (c >= 0x300 && c < 0x370) ? 0 : 1 + wide;
}

// Columns that text takes, without its tags.
int64_t columns(std::string_view text) {
  int64_t all = 0;
  for (const HtmlToken& token : scan_plain_tags(text)) {
    if (token.kind != HtmlToken::text) continue;
    for (size_t at = token.begin; at < token.end;) {
      const auto [c, length] = decode_utf8_at(text.substr(at));
      all += columns_of(c);
      at += static_cast<size_t>(std::max(length, 1));
    }
  }
  return all;
}

// Places where a text can be cut, in bytes, with the columns before them: spaces, and in scripts without spaces all characters.
struct Place {
  size_t end = 0, next = 0;  // bytes: what stands before the place, and what behind it
  int64_t before = 0;        // columns
  bool clause = false;       // a mark stands before it
};

std::vector<Place> places_of(std::string_view text) {
  std::vector<Place> places;
  int64_t before = 0;
  char32_t last = 0;
  for (const HtmlToken& token : scan_plain_tags(text)) {
    if (token.kind != HtmlToken::text) continue;
    for (size_t at = token.begin; at < token.end;) {
      const auto [c, length] = decode_utf8_at(text.substr(at));
      const size_t next = at + static_cast<size_t>(std::max(length, 1));
      const int64_t width = columns_of(c);
      const bool mark = last && character_class(last) == CharacterClass::punctuation;
      if (c == ' ' && before > 0)
        places.push_back({at, next, before, mark});
      else if (width == 2 && before > 0 && character_class(c) != CharacterClass::punctuation && last != ' ')
        places.push_back({at, at, before, mark});
      before += width;
      last = c;
      at = next;
    }
  }
  return places;
}

// Cuts a text into pieces with the shares of the columns; the last ones are empty where there are not enough places. Tags that are open at
// a cut are closed there and opened again behind it.
std::vector<std::string> cut_by_shares(std::string_view text, std::span<const int64_t> shares, double most_bonus) {
  const std::vector<Place> places = places_of(text);
  const int64_t all = columns(text);
  int64_t sum = 0, so_far = 0;
  for (const int64_t share : shares) sum += share;
  std::vector<std::pair<size_t, size_t>> cuts;
  size_t from = 0;
  for (size_t i = 0; i + 1 < shares.size() && from < places.size(); ++i) {
    so_far += shares[i];
    const double wanted = static_cast<double>(all) * static_cast<double>(so_far) / static_cast<double>(std::max<int64_t>(1, sum));
    const double bonus = std::min(kClauseShare * static_cast<double>(all), most_bonus);
    const auto distance = [&](size_t p) { return std::abs(static_cast<double>(places[p].before) - wanted); };
    const auto cost = [&](size_t p) { return distance(p) - (places[p].clause ? bonus : 0); };
    const auto near = std::lower_bound(places.begin() + static_cast<ptrdiff_t>(from), places.end(), wanted,
                                       [](const Place& p, double w) { return static_cast<double>(p.before) < w; });
    size_t best = std::min(static_cast<size_t>(near - places.begin()), places.size() - 1);
    for (size_t p = best; p > from && distance(p - 1) <= cost(best) + bonus;)
      if (cost(--p) <= cost(best)) best = p;
    for (size_t p = static_cast<size_t>(near - places.begin()); p < places.size() && distance(p) <= cost(best) + bonus; ++p)
      if (cost(p) < cost(best)) best = p;
    cuts.emplace_back(places[best].end, places[best].next);
    from = best + 1;
  }
  std::vector<std::string> pieces(shares.size());
  const std::vector<HtmlToken> tokens = scan_plain_tags(text);
  std::vector<size_t> open;
  size_t piece = 0, begin = 0, reopened = 0;
  for (size_t t = 0; t <= tokens.size(); ++t) {
    const size_t end = t < tokens.size() ? tokens[t].end : text.size();
    const bool is_text = t < tokens.size() && tokens[t].kind == HtmlToken::text;
    while (piece < cuts.size() && is_text && cuts[piece].first < end) {
      pieces[piece] += text.substr(begin, cuts[piece].first - begin);
      for (size_t o = open.size(); o > 0; --o) pieces[piece] += "</" + tokens[open[o - 1]].name + ">";
      begin = cuts[piece].second;
      ++piece;
      for (const size_t o : open) pieces[piece] += text.substr(tokens[o].begin, tokens[o].end - tokens[o].begin);
    }
    pieces[piece] += text.substr(begin, std::max(end, begin) - begin);
    begin = std::max(end, begin);
    if (t == tokens.size() || tokens[t].partner == SIZE_MAX) continue;
    const size_t bytes = tokens[t].end - tokens[t].begin;
    if (tokens[t].kind == HtmlToken::open && open.size() < kMostReopened && reopened + bytes <= kMostReopenedBytes)
      open.push_back(t), reopened += bytes;
    if (tokens[t].kind == HtmlToken::close && std::erase(open, tokens[t].partner) > 0)
      reopened -= tokens[tokens[t].partner].end - tokens[tokens[t].partner].begin;
  }
  return pieces;
}

std::string in_lines(const std::string& text, std::string_view line_end) {
  const int64_t fewest = (columns(text) + kLineWidth - 1) / kLineWidth;
  std::string all = text;
  for (int64_t lines = std::max<int64_t>(fewest, 1); lines <= fewest + 1; ++lines) {  // a line more where words are long
    const std::vector<int64_t> shares(static_cast<size_t>(lines), 1);
    int64_t longest = 0;
    all.clear();
    for (const std::string& line : cut_by_shares(text, shares, 0)) {
      if (!line.empty()) all += (all.empty() ? "" : std::string(line_end)) + line;
      longest = std::max(longest, columns(line));
    }
    if (longest <= kLineWidth) break;
  }
  return all;
}

// Moves tags at both ends of a text to `front` and `back`: positions ({\an8}), voices, and pairs around all of it.
void strip(std::string& text, std::string& front, std::string& back) {
  constexpr int kMostRounds = 4;
  for (int round = 0; round < kMostRounds; ++round) {
    const size_t before = text.size();
    const bool voice = text.starts_with("<v") && text.size() > 2 && (text[2] == ' ' || text[2] == '.');
    if (const size_t end = text.find(voice ? '>' : '}'); end != std::string::npos && (voice || text.starts_with("{\\"))) {
      front += text.substr(0, end + 1);
      text.erase(0, end + 1);
      if (voice && text.ends_with("</v>")) back.insert(0, "</v>"), text.resize(text.size() - 4);
    }
    const std::vector<HtmlToken> tokens = scan_plain_tags(text);
    size_t first = 0, last = tokens.size();
    while (first + 1 < last && tokens[first].kind == HtmlToken::open && tokens[first].partner == last - 1) ++first, --last;
    if (first > 0) {
      const size_t begin = tokens[first - 1].end, end = tokens[last].begin;
      front += text.substr(0, begin);
      back.insert(0, text.substr(end));
      text = text.substr(begin, end - begin);
    }
    text = std::string(trimmed(text, " "));
    if (text.size() == before) return;
  }
}

// Takes the tags out of a text of WebVTT that say when its words are spoken or how they look, which no translation can keep, and makes
// characters of entities.
std::string plain_webvtt(std::string_view text) {
  std::string plain;
  size_t close = 0;  // the next ">"
  for (size_t at = 0; at < text.size();) {
    const std::string_view rest = text.substr(at);
    if (close < at) close = text.find('>', at);
    const size_t end = close == text.npos || close < at ? rest.npos : close - at;
    const bool time = rest.size() > 1 && rest[0] == '<' && rest[1] >= '0' && rest[1] <= '9' && end <= kLongestTime &&
                      rest.substr(0, end).find(':') != rest.npos;
    const bool look = rest.starts_with("<c>") || rest.starts_with("<c.") || rest.starts_with("</c>") || rest.starts_with("<lang") ||
                      rest.starts_with("</lang>");
    const HtmlEntity entity = rest[0] == '&' ? html_entity(rest) : HtmlEntity();
    if ((time || look) && end != rest.npos) {
      at += end + 1;
    } else if (entity.length > 0 && !entity.text.empty()) {
      plain += entity.text;
      at += entity.length;
    } else {
      plain += text[at++];
    }
  }
  return plain;
}

// Writes characters that have a meaning in WebVTT as entities, except those of tags.
std::string escaped_webvtt(std::string_view text) {
  constexpr std::string_view kTags[] = {"<v ", "<v.", "</v>", "<ruby>", "</ruby>", "<rt>", "</rt>", "<lang ", "</lang>"};
  std::string escaped;
  for (const HtmlToken& token : scan_plain_tags(text)) {
    for (size_t at = token.begin; at < token.end;) {
      const std::string_view rest = text.substr(at, token.end - at);
      const bool tag = token.kind != HtmlToken::text ||
                       std::any_of(std::begin(kTags), std::end(kTags), [&](std::string_view t) { return rest.starts_with(t); });
      const size_t end = tag ? std::min(rest.find('>'), rest.size() - 1) + 1 : 1;
      if (tag)
        escaped += rest.substr(0, end);
      else
        append_escaped(escaped, rest.substr(0, 1));
      at += end;
    }
  }
  return escaped;
}

// Line breaks as converters write them, \N, become spaces.
std::string with_spaces_for_breaks(std::string_view text) {
  std::string all;
  for (size_t at = 0; at < text.size();) {
    const size_t line = std::min(text.find("\\N", at), text.size());
    all += text.substr(at, line - at);
    if (line < text.size()) all += ' ';
    at = line + 2;
  }
  return all;
}

// Whether a text ends a sentence, so that what follows is another one.
bool ends_sentence(std::string_view text) {
  std::u32string letters;
  for (const HtmlToken& token : scan_plain_tags(text))
    if (token.kind == HtmlToken::text) letters += decode_utf8(std::string(text.substr(token.begin, token.end - token.begin)));
  while (!letters.empty() && is_one_of(letters.back(), U" \"'\u201D\u2019\u00BB\u300D\u300F")) letters.pop_back();
  return letters.empty() || is_one_of(letters.back(), U".!?\u2026:)]\u3002\uFF01\uFF1F\u061F\u0964\u266A\u266B#*");
}

}  // namespace

bool is_subtitles(std::string_view text) {
  text.remove_prefix(byte_order_mark(text));
  if (text.starts_with("WEBVTT")) return text.size() == 6 || is_ascii_space(text[6]);
  for (size_t at = 0, lines = 0; at < text.size() && lines < 3; ++lines) {
    const FileLine line = file_line_at(text, at);
    const std::string_view bytes = text.substr(line.begin, line.end - line.begin);
    if (is_times(bytes)) return true;
    if (!is_blank(bytes) && bytes.find_first_not_of("0123456789 ") != std::string_view::npos) return false;
    at = line.next;
  }
  return false;
}

Subtitles::Subtitles(std::string text)
    : text_(std::move(text)), webvtt_(std::string_view(text_).substr(byte_order_mark(text_)).starts_with("WEBVTT")) {
  if (const auto bad = invalid_utf8_offset(text_))
    throw DataError(
        fmt::format("byte {} of the subtitles does not belong to UTF-8; convert them, for instance with iconv -f cp1252", *bad));
  check();
}

void Subtitles::read() {
  bool joins = false;
  for (size_t at = 0; at < text_.size();) {
    const FileLine line = file_line_at(text_, at);
    at = line.next;
    if (!is_times(std::string_view(text_).substr(line.begin, line.end - line.begin))) continue;
    const size_t before = parts_;
    at = add_cue(at, joins);
    joins = parts_ == before + 1 && !ends_sentence(groups_.back().back().text);
    add_texts(groups_.size() - joins);
    end_group();
  }
  add_texts(groups_.size());
}

void Subtitles::add_texts(size_t groups) {
  for (; given_ < groups; ++given_) {
    TextUnit unit;
    for (const Part& part : groups_[given_]) unit.text += (unit.text.empty() ? "" : " ") + part.text;
    count_held(unit.text.size() + groups_[given_].size() * sizeof(Part));
    add(std::move(unit));
  }
}

// Adds the lines of a cue, which begins behind its times, and returns where it ends.
size_t Subtitles::add_cue(size_t begin, bool joins) {
  size_t end = begin, next = begin, turns = 0;
  std::vector<FileLine> all;
  while (next < text_.size() && all.size() < kMostLines) {
    const FileLine line = file_line_at(text_, next);
    const std::string_view bytes = std::string_view(text_).substr(line.begin, line.end - line.begin);
    if (webvtt_ ? bytes.empty() : is_blank(bytes)) break;
    if (is_times(bytes)) {  // of the next cue: there is no blank line between them
      const auto is_counter = [&](const FileLine& l) {
        const std::string_view counter = std::string_view(text_).substr(l.begin, l.end - l.begin);
        return !counter.empty() && counter.find_first_not_of("0123456789 ") == std::string_view::npos;
      };
      if (!all.empty() && is_counter(all.back())) next = all.back().begin, all.pop_back();
      break;
    }
    all.push_back(line);
    next = line.next;
  }
  if (all.empty()) return next;
  end = all.back().end;
  for (const FileLine& line : all) turns += begins_turn(std::string_view(text_).substr(line.begin, line.end - line.begin));
  if (turns > 0 && all.size() > 1) {  // a turn may take several lines
    for (size_t i = 0; i < all.size();) {
      size_t last = i;
      while (last + 1 < all.size() &&
             !begins_turn(std::string_view(text_).substr(all[last + 1].begin, all[last + 1].end - all[last + 1].begin)))
        ++last;
      add_part(all[i].begin, all[last].end, false);
      i = last + 1;
    }
  } else {
    add_part(begin, end, joins);
  }
  return next;
}

void Subtitles::add_part(size_t begin, size_t end, bool joins) {
  Part part;
  part.place = {static_cast<int64_t>(begin), static_cast<int64_t>(end)};
  for (size_t at = begin; at < end;) {
    const FileLine line = file_line_at(std::string_view(text_).substr(0, end), at);
    const std::string_view one = trimmed(std::string_view(text_).substr(line.begin, line.end - line.begin));
    if (!one.empty()) part.text += part.text.empty() ? "" : " ", part.text += one;
    at = line.next;
  }
  std::replace(part.text.begin(), part.text.end(), '\t', ' ');
  if (webvtt_) part.text = plain_webvtt(part.text);
  part.text = with_spaces_for_breaks(part.text);
  strip(part.text, part.front, part.back);
  if (!has_letter(part.text)) return;
  part.characters = std::max<int64_t>(1, columns(part.text));
  joins = joins && !groups_.empty() && groups_.back().size() < kMostJoined;
  size_t bytes = part.text.size();
  if (joins)
    for (const Part& before : groups_.back()) bytes += before.text.size();
  if (!joins || bytes > kMostBytes) groups_.emplace_back();
  groups_.back().push_back(std::move(part));
  ++parts_;
}

void Subtitles::drop_group() {
  groups_.erase(groups_.begin(), groups_.begin() + static_cast<ptrdiff_t>(given_));
  given_ = 0;
}

void Subtitles::restart() {
  groups_.clear();
  given_ = parts_ = done_ = 0;
}

void Subtitles::write_group(std::span<const std::string> translations, bool last) {
  const std::string_view line_end = text_.find("\r\n") == std::string::npos ? "\n" : "\r\n";
  std::string out;
  for (size_t n = 0; n < given_; ++n) {
    const Group& group = groups_[n];
    if (translations[n] == UnitFile::group()[n].text) continue;  // it is its own translation
    std::vector<int64_t> shares;
    for (const Part& part : group) shares.push_back(part.characters);
    std::vector<std::string> pieces = cut_by_shares(translations[n], shares, kMostBonus);
    for (size_t i = 0; i < group.size(); ++i) {
      const Part& part = group[i];
      if (pieces[i].empty() && i > 0) pieces[i] = pieces[i - 1];  // too few words: they stay on the screen
      out.append(text_, done_, static_cast<size_t>(part.place.begin) - done_);
      const std::string lines = in_lines(pieces[i], line_end);
      out += part.front + (webvtt_ ? escaped_webvtt(lines) : lines) + part.back;
      done_ = static_cast<size_t>(part.place.end);
    }
  }
  write(out);
  if (last) write(std::string_view(text_).substr(done_));
}

}  // namespace starling
