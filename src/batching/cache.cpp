#include "batching/cache.h"

#include <fmt/format.h>

namespace starling {
namespace {

constexpr int64_t kEntryBytes = 256;  // approximate size of an entry besides its texts

int64_t size_of(const std::string& key, const Candidates& translations) {
  int64_t bytes = kEntryBytes + static_cast<int64_t>(key.size());
  for (const PartTranslation& c : translations)
    bytes += static_cast<int64_t>(sizeof c + c.text.size() + 4 * (c.hypothesis.tokens.size() + c.hypothesis.alignment.size()));
  return bytes;
}

}  // namespace

std::string TranslationCache::key(std::string_view sentence, const SearchOptions& o) {
  return fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {}|{}|{}\n{}", o.beam, o.n_best, o.length_penalty,
                     static_cast<int>(o.length_penalty_form), o.coverage_penalty, o.prune_threshold, o.max_length_factor,
                     o.max_length_offset, o.allow_unknown, o.fixed_length, o.alignment, o.no_repeat_ngram, o.source_prefix, o.target_prefix,
                     o.suppress, sentence);
}

const Candidates* TranslationCache::find(const std::string& key) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return nullptr;
  order_.splice(order_.begin(), order_, found->second);
  return &found->second->translations;
}

void TranslationCache::add(const std::string& key, const Candidates& translations) {
  const int64_t bytes = size_of(key, translations);
  if (bytes > most_bytes_ || entries_.contains(key)) return;
  while (bytes_ + bytes > most_bytes_) {
    bytes_ -= order_.back().bytes;
    entries_.erase(order_.back().key);
    order_.pop_back();
  }
  order_.push_front({key, translations, bytes});
  entries_.emplace(order_.front().key, order_.begin());
  bytes_ += bytes;
}

}  // namespace starling
