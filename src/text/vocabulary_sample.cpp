#include "text/vocabulary_sample.h"

#include <algorithm>
#include <span>

#include "base/hash64.h"

namespace starling {

size_t LineSampler::Hash::operator()(std::string_view line) const { return hash64(std::as_bytes(std::span(line)), seed); }

LineSampler::LineSampler(uint64_t seed, int64_t max_lines, int64_t max_bytes)
    : max_lines_(static_cast<uint64_t>(max_lines)), max_bytes_(static_cast<uint64_t>(max_bytes)), lines_(0, Hash{seed}) {}

void LineSampler::add(std::string_view line) {
  const uint64_t hash = lines_.hash_function()(line), order = seen_++;
  if (hash >= threshold_) return;
  const auto [at, fresh] = lines_.try_emplace(std::string(line), Entry{0, order});
  ++at->second.count;
  if (!fresh) return;
  bytes_ += line.size();
  largest_.emplace(hash, &at->first);
  while (bytes_ > max_bytes_ || lines_.size() > max_lines_) {
    const auto [last, text] = largest_.top();
    largest_.pop();
    threshold_ = last;
    bytes_ -= text->size();
    lines_.erase(lines_.find(*text));
  }
}

std::vector<SampledLine> LineSampler::take() {
  std::vector<std::pair<uint64_t, SampledLine>> ordered;
  ordered.reserve(lines_.size());
  while (!lines_.empty()) {
    auto node = lines_.extract(lines_.begin());
    ordered.emplace_back(node.mapped().order, SampledLine{std::move(node.key()), node.mapped().count});
  }
  largest_ = {};
  bytes_ = 0;
  std::sort(ordered.begin(), ordered.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<SampledLine> lines;
  lines.reserve(ordered.size());
  for (auto& [order, line] : ordered) lines.push_back(std::move(line));
  return lines;
}

}  // namespace starling
