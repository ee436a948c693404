#include "serve/prepared_text.h"

#include <algorithm>

namespace starling {
namespace {

constexpr const char* kBlank = " \t\r";

}  // namespace

PreparedText::PreparedText(const std::string& text, TextFormat, const std::string&) : between_(1) {
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const size_t first = std::min(text.find_first_not_of(kBlank, at), end);
    size_t last = end;
    while (last > first && std::string_view(kBlank).find(text[last - 1]) != std::string_view::npos) --last;
    between_.back() += text.substr(at, first - at);
    if (first < last) sentences_.push_back(text.substr(first, last - first)), between_.emplace_back();
    between_.back() += text.substr(last, end - last);
    if (end < text.size()) between_.back() += '\n';
    at = end + 1;
  }
}

std::string PreparedText::assemble(std::span<const Candidates> translations, size_t rank) const {
  CHECK(translations.size() == sentences_.size(), "{} translations of {} sentences", translations.size(), sentences_.size());
  std::string text = between_.front();
  for (size_t i = 0; i < translations.size(); ++i) {
    const Candidates& c = translations[i];
    if (!c.empty()) text += c[std::min(rank, c.size() - 1)].text;
    text += between_[i + 1];
  }
  return text;
}

}  // namespace starling
