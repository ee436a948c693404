#include "config/suggestion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

namespace starling {
namespace {

constexpr size_t kFar = std::numeric_limits<size_t>::max();
constexpr size_t kMost = 3;  // suggestions; more would not help

// Edit distance with swaps of neighbours (optimal string alignment).
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before, last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before = last;
    last = row;
  }
  return last[b.size()];
}

struct Name {
  std::string section, key;  // section: "" = none
};

Name parts_of(std::string_view name) {
  const std::string text = folded_name(name);
  const size_t dot = text.rfind('.');
  return dot == std::string::npos ? Name{"", text} : Name{text.substr(0, dot), text.substr(dot + 1)};
}

std::vector<std::string> words_of(const std::string& key) {
  std::vector<std::string> words;
  for (size_t at = 0; (at = key.find_first_not_of('-', at)) != std::string::npos;) {
    const size_t end = std::min(key.find('-', at), key.size());
    words.push_back(key.substr(at, end - at));
    at = end;
  }
  return words;
}

// Returns how many characters may be wrong.
size_t allowed(std::string_view text) { return text.size() < 3 ? 0 : text.size() / 3; }

bool near(std::string_view a, std::string_view b) { return edit_distance(a, b) <= allowed(a); }

// The cost of a key in a section other than the named one: a correct key there is likelier than a wrong one here.
size_t section_distance(const Name& wanted, const Name& candidate) {
  if (wanted.section.empty() || wanted.section == candidate.section) return 0;
  return near(wanted.section, candidate.section) ? edit_distance(wanted.section, candidate.section) : kFar;
}

size_t distance(const Name& wanted, const Name& candidate) {
  const size_t key = edit_distance(wanted.key, candidate.key), section = section_distance(wanted, candidate);
  const bool hyphen_for_dot =
      wanted.section.empty() && !candidate.section.empty() && edit_distance(wanted.key, candidate.section + "-" + candidate.key) <= 1;
  if (hyphen_for_dot) return 1;
  if (key > allowed(wanted.key)) return kFar;
  const size_t longer = wanted.section.empty() && !candidate.section.empty();  // --threads is nearer to --threads than --train.threads is
  if (section != kFar) return 2 * (key + section) + longer;
  return key <= 1 && wanted.key.size() > 3 ? 2 * (key + wanted.section.size()) : kFar;
}

// Returns how many words of the candidate's key were not named; kFar if it lacks one that was.
size_t missing_words(const Name& wanted, const Name& candidate) {
  const std::vector<std::string> words = words_of(wanted.key), there = words_of(candidate.key);
  const auto is_there = [&](const std::string& word) {
    return std::any_of(there.begin(), there.end(), [&](const std::string& w) {
      return edit_distance(word, w) <= word.size() / 4 || (word.size() > 2 && w.starts_with(word));
    });
  };
  if (words.empty() || words.size() > there.size() || !std::all_of(words.begin(), words.end(), is_there)) return kFar;
  return there.size() - words.size() + (section_distance(wanted, candidate) == kFar ? kMost : 0);
}

}  // namespace

std::string folded_name(std::string_view name) {
  name.remove_prefix(std::min(name.find_first_not_of('-'), name.size()));
  std::string s(name);
  for (char& c : s) c = c == '_' ? '-' : (c >= 'A' && c <= 'Z') ? static_cast<char>(c + 32) : c;
  return s;
}

std::vector<std::string> nearest(std::string_view name, const std::vector<std::string>& candidates) {
  if (name.empty() || name.size() > 100) return {};
  const Name wanted = parts_of(name);
  for (size_t (*const measure)(const Name&, const Name&) : {distance, missing_words}) {
    std::vector<std::string> best;
    size_t least = kFar;
    for (const auto& candidate : candidates) {
      const size_t d = measure(wanted, parts_of(candidate));
      if (d < least) {
        best.clear();
        least = d;
      }
      if (d == least && d != kFar) best.push_back(candidate);
    }
    if (!best.empty() && best.size() <= kMost) return best;
  }
  return {};
}

std::string moved_name(std::string_view name, const std::vector<std::string>& candidates) {
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return "";
  const std::string_view section = name.substr(0, dot + 1), key = name.substr(dot);
  std::string found;
  for (const std::string& c : candidates) {
    if (!c.starts_with(section) || !c.ends_with(key) || c.size() <= name.size()) continue;
    if (!found.empty()) return "";
    found = c;
  }
  return found;
}

std::string moved_hint(std::string_view name, const std::vector<std::string>& candidates) {
  const std::string moved = moved_name(name, candidates);
  return moved.empty() ? "" : fmt::format("; {} is now {}", name, moved);
}

std::string closest(std::string_view name, const std::vector<std::string>& candidates) {
  const std::vector<std::string> all = nearest(name, candidates);
  return all.empty() ? "" : all.front();
}

std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates) {
  std::vector<std::string> all = nearest(name, candidates);
  if (all.empty()) return "";
  for (std::string& one : all) one = "'" + one + "'";
  const std::string last = all.back();
  all.pop_back();
  return fmt::format("; did you mean {}{}{}?", fmt::join(all, ", "), all.empty() ? "" : " or ", last);
}

}  // namespace starling
