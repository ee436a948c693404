#include "text/normalization.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/error.h"

namespace starling {

void check_normalization(const std::string& name) {
  if (std::find(std::begin(kNormalizations), std::end(kNormalizations), name) == std::end(kNormalizations))
    throw ConfigError(fmt::format("the vocabulary's normalization is \"{}\"; choose {}", name, fmt::join(kNormalizations, ", ")));
}

std::string describe_normalization(const std::string& name) {
  if (name == "identity") return "identity: text stays as it is, except for the number of spaces";
  if (name == kSpaces) return "spaces: every kind of space becomes a space, control characters vanish, all else stays as it is";
  const std::string fold = name.ends_with("_cf") ? ", capitals become lower case" : "";
  const std::string marks = name.starts_with("nmt_") ? ", invisible characters vanish or become spaces" : "";
  return fmt::format("{}: width and compatibility forms become ordinary characters{}{}, in translations too", name, marks, fold);
}

std::string space_rules() {
  using Ranges = std::pair<int, int>[];
  std::string rules;
  // U+2581 is what SentencePiece itself writes for a space.
  for (const auto& [first, last] : Ranges{{0x09, 0x0d},
                                          {0x85, 0x85},
                                          {0xa0, 0xa0},
                                          {0x1680, 0x1680},
                                          {0x2000, 0x200a},
                                          {0x2028, 0x2029},
                                          {0x202f, 0x202f},
                                          {0x205f, 0x205f},
                                          {0x2581, 0x2581},
                                          {0x3000, 0x3000}})
    for (int c = first; c <= last; ++c) rules += fmt::format("{:x}\t20\n", c);
  for (const auto& [first, last] : Ranges{{0x01, 0x08}, {0x0e, 0x1f}, {0x7f, 0x84}, {0x86, 0x9f}, {0xfeff, 0xfeff}})
    for (int c = first; c <= last; ++c) rules += fmt::format("{:x}\t\n", c);
  return rules;
}

}  // namespace starling
