#include "evaluation/n_best_list.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "base/ascii.h"
#include "base/error.h"

namespace starling {
namespace {

constexpr std::string_view kBars = "|||";

// Whether a field can only have been written behind the text: NAME= value ..., alignments such as 0-0 1-2, attention such as 0.1,0.9.
bool is_feature(std::string_view field) {
  field = trimmed(field, " ");
  const std::string_view first = field.substr(0, field.find(' '));
  if (first.size() > 1 && first.ends_with('=')) return true;
  return first.find_first_of("-,") != std::string_view::npos && field.find_first_not_of("0123456789-,.e ") == std::string_view::npos;
}

}  // namespace

NBestEntry parse_n_best(std::string_view line) {
  NBestEntry entry;
  for (size_t begin = 0; begin <= line.size();) {
    const size_t end = std::min(line.find(kBars, begin), line.size());
    entry.fields.emplace_back(line.substr(begin, end - begin));
    begin = end + kBars.size();
  }
  const std::string_view number = trimmed(entry.fields.front(), " ");
  const auto [rest, error] = std::from_chars(number.data(), number.data() + number.size(), entry.sentence);
  if (entry.fields.size() < 2 || number.empty() || error != std::errc() || rest != number.data() + number.size() || entry.sentence < 0)
    throw DataError("not an entry of an n-best list; expected the number of the sentence and its text: 0 ||| text ||| ...");
  // The text may have bars itself: it ends where the fields begin that are counted from the end.
  size_t last = entry.fields.size() <= 4 ? 1 : entry.fields.size() - 3;
  while (last > 1 && is_feature(entry.fields[last])) --last;
  std::string text = entry.fields[1];
  for (size_t i = 2; i <= last; ++i) text += std::string(kBars) + entry.fields[i];
  entry.text = trimmed(text, " ");
  return entry;
}

std::string with_feature(const NBestEntry& entry, const std::string& name, double value) {
  const std::string feature = fmt::format("{}= {:.6f}", name, value);
  std::vector<std::string> fields = entry.fields;
  if (fields.size() < 3) return fmt::format("{} ||| {}", fmt::join(fields, "|||"), feature);
  std::string& features = fields[std::max<size_t>(fields.size() - 2, 2)];
  features = fmt::format(" {} {} ", trimmed(features, " "), feature);
  return fmt::format("{}", fmt::join(fields, "|||"));
}

}  // namespace starling
