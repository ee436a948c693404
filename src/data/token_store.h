// The training data as token ids, in two memory-mapped files beside the run: text is cut into pieces once, and a corpus larger than
// memory costs address space only. docs/data.md describes the bytes. Every access is checked, so that a damaged file is an error
// and never a stray read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/batch.h"
#include "base/files.h"
#include "data/corpus.h"
#include "text/vocabulary.h"

namespace starling {

struct FilterCounts {
  int64_t total = 0;  // pairs read
  int64_t kept = 0;
  int64_t empty = 0;     // dropped: a side without tokens
  int64_t too_long = 0;  // dropped: a side longer than max_length
  int64_t ratio = 0;     // dropped: sides of too different lengths
  FilterCounts& operator+=(const FilterCounts& other);
  bool operator==(const FilterCounts&) const = default;
};

struct PairLengths {
  int32_t source = 0, target = 0;  // tokens, end of sentence included
};

// What a directory holds for given inputs: no finished store, one made from other files, vocabularies or filters, or theirs.
enum class StoreState { missing, other, current };

class TokenStore {
 public:
  /// Whether `directory` has a store made from these inputs. Reads only, and only what tells that; throws IoError if an input file is
  /// missing. A damaged store counts as missing: it is made again from the text.
  static StoreState look(FileSystem& files, const std::string& directory, const DataOptions& data, const Vocabulary& source,
                         const Vocabulary& target);

  /// The store in `directory` (<run>/data) if it was made from these very files, vocabularies and filters; else checks the corpora,
  /// tokenises them with `threads` threads and stores the result, which does not depend on the number of threads.
  /// Throws ConfigError, DataError (file:line) or IoError. `progress` is called with the number of pairs read so far.
  static TokenStore open_or_build(FileSystem& files, const std::string& directory, const DataOptions& data, const Vocabulary& source,
                                  const Vocabulary& target, int threads, const std::function<void(int64_t pairs)>& progress = {});

  /// Opens a finished store; throws IoError if there is none, DataError if it is damaged.
  static TokenStore open(FileSystem& files, const std::string& directory);

  TokenStore(TokenStore&&) noexcept;
  TokenStore& operator=(TokenStore&&) noexcept;
  ~TokenStore();

  int64_t size() const { return pairs_; }  // pairs kept, all corpora
  int64_t corpora() const { return static_cast<int64_t>(counts_.size()); }
  int64_t corpus_begin(int64_t corpus) const { return begins_.at(static_cast<size_t>(corpus)); }  // index of its first pair
  int64_t corpus_size(int64_t corpus) const { return counts_.at(static_cast<size_t>(corpus)).kept; }
  const FilterCounts& counts(int64_t corpus) const { return counts_.at(static_cast<size_t>(corpus)); }
  FilterCounts counts() const;  // sum over the corpora

  int64_t tokens() const { return tokens_; }  // both sides
  uint64_t fingerprint() const { return fingerprint_; }
  bool reused() const { return reused_; }  // open_or_build found it current

  /// Lengths of pair i; throws DataError if its entry is damaged.
  PairLengths lengths(int64_t i) const;
  /// Appends pair i to both sides, end of sentence included; throws DataError if an id lies outside the vocabulary.
  void append(int64_t i, PackedTokens& source, PackedTokens& target) const;

 private:
  TokenStore() = default;
  struct Entry;
  void read_index(std::span<const std::byte> bytes);
  void read_token_header(std::span<const std::byte> bytes);
  Entry entry(int64_t i) const;
  template <class Token>
  void append_as(const Entry& entry, int64_t i, PackedTokens& source, PackedTokens& target) const;

  std::string directory_;
  std::unique_ptr<MappedFile> index_file_, token_file_;
  const std::byte* entries_ = nullptr;     // [pairs_ + 1] uint64
  const std::byte* token_data_ = nullptr;  // [tokens_] of token_bytes_
  int64_t pairs_ = 0, tokens_ = 0;
  int32_t token_bytes_ = 0, source_size_ = 0, target_size_ = 0;  // sizes: of the vocabularies
  uint64_t fingerprint_ = 0;
  bool reused_ = false;
  std::vector<FilterCounts> counts_;
  std::vector<int64_t> begins_;
};

// Writes a store pair by pair with constant memory; nothing is visible under the final names before finish(). Errors are IoError.
class TokenStoreWriter {
 public:
  /// Creates `directory` if need be; the sizes are those of the vocabularies.
  TokenStoreWriter(FileSystem& files, const std::string& directory, uint64_t fingerprint, int64_t source_size, int64_t target_size);
  /// Removes what was written, unless finish() was reached.
  ~TokenStoreWriter();

  /// Appends a pair to the current corpus; both sides end with end of sentence and are at most 2^24 - 1 tokens long.
  void append(std::span<const int32_t> source, std::span<const int32_t> target);
  /// Ends the current corpus; `counts.kept` must be the number of pairs appended to it.
  void end_corpus(const FilterCounts& counts);
  /// Closes both files, syncs and renames them.
  void finish();

 private:
  class File;
  FileSystem& files_;
  std::string directory_;
  std::unique_ptr<File> tokens_, index_;
  int32_t token_bytes_;
  uint64_t fingerprint_, source_size_, target_size_;
  uint64_t tokens_written_ = 0, pairs_written_ = 0;
  int64_t corpus_pairs_ = 0;  // in the current corpus
  std::vector<FilterCounts> counts_;
  std::vector<uint16_t> narrow_;  // scratch of append
};

}  // namespace starling
