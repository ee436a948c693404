#include "document/own_placeholders.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>

#include "base/error.h"

namespace starling {
namespace {

constexpr int64_t kMostExpressionMemory = 8 << 20;  // bytes of a compiled one

}  // namespace

class OwnPlaceholders::Expression {
 public:
  explicit Expression(const std::string& text) : re2(text, options()) {}
  re2::RE2 re2;

 private:
  static re2::RE2::Options options() {
    re2::RE2::Options options;
    options.set_log_errors(false);
    options.set_max_mem(kMostExpressionMemory);
    return options;
  }
};

OwnPlaceholders::OwnPlaceholders(const std::vector<std::string>& expressions, const std::string& option) {
  for (const std::string& text : expressions) {
    const auto& expression = *expressions_.emplace_back(std::make_unique<Expression>(text));
    if (!expression.re2.ok())
      throw ConfigError(
          fmt::format("{} {} is not a valid regular expression (RE2): {}; put a backslash before characters that are meant literally",
                      option, text, expression.re2.error()));
    if (re2::RE2::PartialMatch("", expression.re2))
      throw ConfigError(fmt::format("{} {} matches the empty text; make it match at least one character, for instance with + instead of *",
                                    option, text));
  }
}

OwnPlaceholders::~OwnPlaceholders() = default;

void OwnPlaceholders::add_to(std::vector<Range>& found, std::string_view text) const {
  const size_t before = found.size();
  for (const auto& expression : expressions_) {
    const re2::StringPiece all(text.data(), text.size());
    re2::StringPiece match;
    for (size_t at = 0; at < text.size() && expression->re2.Match(all, at, text.size(), re2::RE2::UNANCHORED, &match, 1);) {
      const auto begin = static_cast<size_t>(match.data() - text.data()), end = begin + match.size();
      if (end > begin) found.push_back({static_cast<int64_t>(begin), static_cast<int64_t>(end)});
      at = std::max(end, at + 1);
    }
  }
  if (found.size() == before) return;
  std::sort(found.begin(), found.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
  std::vector<Range> whole;
  for (const Range& r : found)
    if (!whole.empty() && r.begin < whole.back().end)
      whole.back().end = std::max(whole.back().end, r.end);
    else
      whole.push_back(r);
  found = std::move(whole);
}

}  // namespace starling
