#include "batching/cache.h"

#include <fmt/ranges.h>

#include "decode/glossary.h"

namespace starling {
namespace {

constexpr int64_t kEntryBytes = 256;  // approximate size of an entry besides its texts

int64_t size_of(const std::string& key, const Candidates& translations) {
  int64_t bytes = kEntryBytes + static_cast<int64_t>(key.size());
  for (const PartTranslation& c : translations)
    bytes += static_cast<int64_t>(sizeof c + c.text.size() +
                                  4 * (c.hypothesis.tokens.size() + c.hypothesis.alignment.size() + c.hypothesis.log_probabilities.size()));
  for (const PartTranslation& c : translations)
    for (const auto& row : c.hypothesis.attention) bytes += static_cast<int64_t>(sizeof row + 4 * row.size());
  return bytes;
}

// Writes the values of all options.
struct KeyWriter {
  template <class T, class... Rest>
  void field(const char*, const T& value, Rest&&...) {
    key += fmt::format("{}\x1f", value);
  }
  template <class T>
  void choice(const char*, const T& value, const char*) {
    key += fmt::format("{}\x1f", static_cast<int>(value));
  }
  std::string key;
};

}  // namespace

std::string TranslationCache::key(const SearchOptions& options) {
  SearchOptions o = options;
  KeyWriter writer;
  visit(writer, o);
  return fmt::format("{}{} {} {} {} {} {}\n", writer.key, o.n_best, o.fixed_length, o.alignment, o.attention, fmt::join(o.end_ids, ","),
                     o.glossary ? o.glossary->hash() : 0);
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
