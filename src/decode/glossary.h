// Glossaries: what words and phrases of the source must be called in the translation. docs/guides/glossaries.md.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "decode/search.h"
#include "decode/terms.h"
#include "text/vocabulary.h"

namespace starling {

class Glossary {
 public:
  static constexpr size_t kMostSpellings = 100;  // of a term

  /// Takes lines of a term of the source, a tab and its translation; more tabs and spellings may follow, such as inflected forms, of which
  /// a translation needs one, kMostSpellings at most. A term that has several lines has the spellings of all. Empty lines are skipped.
  /// Throws DataError naming `name` and the line.
  static std::shared_ptr<const Glossary> parse(std::string_view text, const std::string& name);
  static std::shared_ptr<const Glossary> load(const std::string& path);

  /// Returns the spellings of each term in a sentence, in its order: the longest terms from the left, as whole words, Terms::kMost at
  /// most. A term also matches
  /// with a capital letter at its beginning, or in capitals, which its spellings then have as well.
  std::vector<std::vector<std::string>> terms_in(std::string_view sentence) const;
  /// The number of spellings of all terms.
  size_t size() const { return spellings_; }
  size_t terms() const { return entries_.size(); }
  /// Of its text: for the keys of caches.
  uint64_t hash() const { return hash_; }

 private:
  struct Entry {
    std::u32string source, lower;
    std::vector<std::string> spellings;
  };
  std::vector<Entry> entries_;  // in the order of their sources in lower case
  size_t spellings_ = 0;
  uint64_t hash_ = 0;
};

// Writes terms in the tokens of a vocabulary, which must outlive it.
class TermSpeller {
 public:
  explicit TermSpeller(const Vocabulary& target);
  /// Returns the terms; null if there are none. Spellings that have characters without a piece are left out, and so are terms without
  /// spellings and all terms beyond Terms::kMost.
  std::shared_ptr<const Terms> spell(const std::vector<std::vector<std::string>>& terms) const;
  /// Returns the options for a sentence: with the terms that it has of their glossary and, if there are any, a beam that has room for them.
  SearchOptions with_terms(SearchOptions options, std::string_view sentence) const;

 private:
  void add_spellings(const std::string& text, std::vector<Terms::Spelling>& spellings) const;

  const Vocabulary& target_;
  const bool by_word_;  // each word has pieces of its own, which end with @@ but for the last
  std::shared_ptr<const PieceShapes> shapes_;
  std::vector<int32_t> mark_;  // the pieces of "("
};

}  // namespace starling
