// Subword-nmt (Sennrich, Haddow and Birch 2016): words are merged from characters by pairs, in the order of a file of codes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace starling::moses {

class SubwordNmt {
 public:
  /// Reads codes, of version 0.1 or 0.2. Throws DataError, beginning with `name` and the line.
  SubwordNmt(std::string_view codes, const std::string& name);

  /// Returns how many characters each piece of a word has; one without a space.
  std::vector<size_t> cut(std::u32string_view word) const;

  /// Whether a piece of text, as pieces() of WordPieces writes it, can come from these codes.
  bool makes(std::string_view piece) const;
  int64_t size() const { return static_cast<int64_t>(merges_.size()); }

  /// Bytes of memory that codes take besides their own, in a vocabulary and while it is made.
  static uint64_t bytes_of(std::string_view codes);
  /// Whether a text looks like codes.
  static bool is_codes(std::string_view text);

 private:
  struct Merge {
    int32_t rank, result;
  };
  int32_t symbol(const std::string& text);
  const Merge* merge_of(int32_t left, int32_t right) const;

  std::unordered_map<std::string, int32_t> symbols_;
  std::unordered_map<uint64_t, Merge> merges_;  // by both symbols
  bool end_apart_ = false;                      // version 0.1: the end of a word is a symbol of its own
};

}  // namespace starling::moses
