// Translations that were made before, by the exact sentence and how it was searched: bounded in bytes, the longest unused one goes first.
#pragma once

#include <cstdint>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "decode/document_parts.h"

namespace starling {

using Candidates = std::vector<PartTranslation>;  // of a sentence, best first

class TranslationCache {
 public:
  // 0 bytes: remembers nothing.
  explicit TranslationCache(int64_t most_bytes) : most_bytes_(most_bytes) {}

  // Null when it is not remembered; valid until the next call.
  const Candidates* find(const std::string& key);
  void add(const std::string& key, const Candidates& translations);
  int64_t bytes() const { return bytes_; }
  size_t size() const { return entries_.size(); }

  // The key of a sentence: its text and every option that may change its translation.
  static std::string key(std::string_view sentence, const SearchOptions& options);

 private:
  struct Entry {
    std::string key;
    Candidates translations;
    int64_t bytes;
  };
  int64_t most_bytes_, bytes_ = 0;
  std::list<Entry> order_;                                                    // the last used first
  std::unordered_map<std::string_view, std::list<Entry>::iterator> entries_;  // views of the entries' keys
};

}  // namespace starling
