#include "text/links.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/ascii.h"
#include "base/error.h"

namespace starling {
namespace {

// Calls take(source, target, separator) for each pair of a line.
template <class Take>
void each_link(std::string_view line, std::string_view separators, Take take) {
  const char *at = line.data(), *const end = at + line.size();
  for (;;) {
    while (at < end && is_ascii_space(*at)) ++at;
    if (at == end) return;
    const char* const begin = at;
    int32_t pair[2] = {};
    char separator = 0;
    for (int side = 0; side < 2; ++side) {
      const auto [next, error] = std::from_chars(at, end, pair[side]);
      const bool stops = next == end || (side == 1 && is_ascii_space(*next));
      const bool whole =
          error == std::errc() && pair[side] >= 0 && (side == 0 ? !stops && separators.find(*next) != separators.npos : stops);
      if (!whole) {
        const std::string_view word(begin, static_cast<size_t>(std::find_if(begin, end, is_ascii_space) - begin));
        throw DataError(
            fmt::format("'{}' is not a link; links are pairs of positions from 0 on, source-target, such as 0-0 1-2", word.substr(0, 40)));
      }
      if (side == 0) separator = *next;
      at = next + (side == 0);
    }
    take(pair[0], pair[1], separator);
  }
}

// The tokens that positions of an alignment stand for.
class Positions {
 public:
  Positions(AlignmentUnit unit, const LinkedSide& side) {
    const auto pieces = static_cast<int64_t>(side.pieces.ids.size());
    if (unit == AlignmentUnit::pieces) {
      for (int64_t i = 0; i < pieces; ++i) of_position_.push_back({i});
      return;
    }
    const std::vector<int64_t> word = word_of_bytes(side.text);
    of_position_.resize(word.empty() ? 0 : static_cast<size_t>(*std::max_element(word.begin(), word.end()) + 1));
    int64_t own = -1;
    for (int64_t i = pieces; i-- > 0;) {  // a piece may begin with the space before its word, or be nothing else
      const Range& bytes = side.pieces.bytes[static_cast<size_t>(i)];
      if (bytes.count() > 0 && word[static_cast<size_t>(bytes.end - 1)] >= 0) own = word[static_cast<size_t>(bytes.end - 1)];
      if (own >= 0) of_position_[static_cast<size_t>(own)].push_back(i);
    }
  }
  const std::vector<int64_t>& operator()(int32_t position, const char* side, const std::pair<int32_t, int32_t>& link) const {
    if (static_cast<size_t>(position) >= of_position_.size())
      throw DataError(
          fmt::format("the link {}-{} is beyond the {}, which has {} positions", link.first, link.second, side, of_position_.size()));
    return of_position_[static_cast<size_t>(position)];
  }

 private:
  std::vector<std::vector<int64_t>> of_position_;
};

}  // namespace

Links parse_links(std::string_view line) {
  Links links;
  each_link(line, "-", [&](int32_t source, int32_t target, char) { links.emplace_back(source, target); });
  return links;
}

GoldLinks parse_gold_links(std::string_view line) {
  GoldLinks links;
  each_link(line, "-?p", [&](int32_t source, int32_t target, char separator) {
    (separator == '-' ? links.sure : links.possible).emplace_back(source, target);
  });
  return links;
}

std::vector<int64_t> word_of_bytes(std::string_view text) {
  std::vector<int64_t> words(text.size(), -1);
  int64_t count = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (is_ascii_space(text[i])) continue;
    if (i == 0 || is_ascii_space(text[i - 1])) ++count;
    words[i] = count - 1;
  }
  return words;
}

std::vector<TokenLink> token_links(const Links& links, AlignmentUnit unit, const LinkedSide& source, const LinkedSide& target,
                                   int64_t prefix) {
  std::vector<TokenLink> all;
  if (links.empty()) return all;
  const auto add = [&](int64_t s, int64_t t) {
    constexpr int64_t kMost = std::numeric_limits<uint16_t>::max();
    if (s <= kMost && t <= kMost) all.push_back({static_cast<uint16_t>(s), static_cast<uint16_t>(t)});
  };
  const Positions from(unit, source), to(unit, target);
  std::vector<bool> linked(target.pieces.ids.size() + 1, false);
  for (const auto& link : links) {
    // Both are asked for, since a word without pieces must not hide that the other is not there.
    const std::vector<int64_t>&targets = to(link.second, "target", link), &sources = from(link.first, "source", link);
    for (const int64_t t : targets)
      for (const int64_t s : sources) {
        add(prefix + s, t);
        linked[static_cast<size_t>(t)] = true;
      }
  }
  for (size_t t = 0; t < linked.size(); ++t)
    if (!linked[t]) add(prefix + static_cast<int64_t>(source.pieces.ids.size()), static_cast<int64_t>(t));
  const auto order = [](const TokenLink& a, const TokenLink& b) { return std::pair(a.target, a.source) < std::pair(b.target, b.source); };
  std::sort(all.begin(), all.end(), order);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

std::vector<TokenLink> moved_links(std::span<const TokenLink> links, std::span<const TokenRange> source,
                                   std::span<const TokenRange> target) {
  std::vector<TokenLink> all;
  if (links.empty()) return all;
  const size_t source_end = source.back().last, target_end = target.back().last;
  std::vector<bool> linked(target_end + 1, false);  // to a word
  for (const TokenLink& link : links)
    for (size_t t = target[link.target].first; t <= target[link.target].last; ++t)
      for (size_t s = source[link.source].first; s <= source[link.source].last; ++s) {
        all.push_back({static_cast<uint16_t>(s), static_cast<uint16_t>(t)});
        if (s != source_end) linked[t] = true;
      }
  std::erase_if(all, [&](const TokenLink& l) { return l.source == source_end && l.target != target_end && linked[l.target]; });
  const auto order = [](const TokenLink& a, const TokenLink& b) { return std::pair(a.target, a.source) < std::pair(b.target, b.source); };
  std::sort(all.begin(), all.end(), order);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

}  // namespace starling
