#include "text/vocabulary_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace starling {
namespace {

constexpr double kStop = 1.1;   // SentencePiece's rounds end at this multiple of the requested pieces
constexpr size_t kShown = 400;  // bytes of errors

// Returns the number after `name`, or -1.
double number_behind(std::string_view line, std::string_view name) {
  const size_t at = line.find(name);
  return at == std::string_view::npos ? -1 : std::strtod(std::string(line.substr(at + name.size())).c_str(), nullptr);
}

}  // namespace

void TrainerLog::add(std::string_view bytes) {
  rest_.append(bytes);
  size_t begin = 0;
  for (size_t end; (end = rest_.find('\n', begin)) != std::string::npos; begin = end + 1)
    line(std::string_view(rest_).substr(begin, end - begin));
  rest_.erase(0, begin);
}

void TrainerLog::line(std::string_view line) {
  const size_t at = line.find("LOG(INFO) ");
  if (at == std::string_view::npos) {
    errors_.append(line).append(" ");
    if (errors_.size() > kShown) errors_.erase(0, errors_.size() - kShown);
    return;
  }
  const std::string_view text = line.substr(at + 10);
  if (text.starts_with("Normalizing")) {
    stage_ = "SentencePiece normalises the sample";
  } else if (text.starts_with("Making suffix array")) {
    stage_ = "SentencePiece sorts the sample's suffixes";
  } else if (text.starts_with("Extracting frequent")) {
    stage_ = "SentencePiece looks for frequent strings";
  } else if (text.starts_with("Initialized ")) {
    stage_ = "SentencePiece splits the sample into words";
  } else if (text.starts_with("EM sub_iter=")) {
    round(number_behind(text, "size="));
  } else if (text.starts_with("Added: ")) {
    const double merges = number_behind(text, "size=");
    stage_ = fmt::format("{:.0f} of {} pieces merged", merges, wanted_);
    fraction_ = std::clamp(merges / static_cast<double>(wanted_), 0.0, 1.0);
  }
}

// Each round keeps three quarters of the candidates until there are few more than requested, so progress is linear in their logarithm.
void TrainerLog::round(double candidates) {
  stage_ = fmt::format("{:.0f} candidates for {} pieces", candidates, wanted_);
  if (first_ == 0) first_ = candidates;
  const double stop = kStop * static_cast<double>(wanted_);
  fraction_ = first_ > stop && candidates > 0 ? std::clamp(std::log(first_ / candidates) / std::log(first_ / stop), 0.0, 1.0) : 1;
}

std::string TrainerLog::errors() const {
  std::string text = errors_;
  text.append(rest_);
  if (text.size() > kShown) text.erase(0, text.size() - kShown);
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text.empty() ? "it gave no reason" : text;
}

}  // namespace starling
