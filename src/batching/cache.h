// Caches translations by the exact sentence and its search options. The cache is bounded in bytes and evicts the least recently used entry
// first.
#pragma once

#include <cstdint>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "decode/document_parts.h"

namespace starling {

using Candidates = std::vector<PartTranslation>;  // the translations of a sentence, best first

class TranslationCache {
 public:
  // With 0 bytes nothing is cached.
  explicit TranslationCache(int64_t most_bytes) : most_bytes_(most_bytes) {}

  // Returns null if the key is not cached. The result is valid until the next call.
  const Candidates* find(const std::string& key);
  void add(const std::string& key, const Candidates& translations);
  int64_t bytes() const { return bytes_; }
  size_t size() const { return entries_.size(); }

  // Returns what begins the keys of all sentences with these options, which are followed by the sentence: every option that may change a
  // translation.
  static std::string key(const SearchOptions& options);

 private:
  struct Entry {
    std::string key;
    Candidates translations;
    int64_t bytes;
  };
  int64_t most_bytes_, bytes_ = 0;
  std::list<Entry> order_;                                                    // most recently used first
  std::unordered_map<std::string_view, std::list<Entry>::iterator> entries_;  // views of the entries' keys
};

}  // namespace starling
