// The training data as token ids in memory-mapped files in the run directory: text is tokenised once, and a corpus larger than memory
// costs only address space. The pairs are in shards (token_shard.h), which an index lists; README.md has the format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/batch.h"
#include "base/files.h"
#include "base/task_progress.h"
#include "data/corpus.h"
#include "data/token_shard.h"
#include "text/vocabulary.h"

namespace starling {

struct PairLengths {
  int32_t source = 0, target = 0;  // tokens, end of sentence included
};

// What a directory contains for given inputs: no finished store, one built from other files, vocabularies or filters, or theirs.
enum class StoreState { missing, other, current };

// How a store is built; none of it changes the tokens.
struct StoreBuild {
  int threads = 1;
  Say say;                       // reports progress, damage and what is reused; may be empty
  bool checked = false;          // the checking pass has just read the corpora without finding a defect
  int64_t shard_pairs = 131072;  // lines of a corpus per shard; the most work that a kill can lose
};

class TokenStore {
 public:
  /// Returns whether `directory` has a store built from these inputs. Only reads, and no more than necessary; throws IoError if an input
  /// file is missing. A store whose index is damaged, or that lacks a shard, counts as missing: it is rebuilt from the text.
  static StoreState look(FileSystem& files, const std::string& directory, const DataOptions& data, const Vocabulary& source,
                         const Vocabulary& target);

  /// Opens the store in `directory` (<run>/data) if it was built from exactly these files, vocabularies and filters and nothing in it is
  /// damaged; otherwise checks the corpora and tokenises what is missing. Complete shards from an interrupted build are reused. The result
  /// does not depend on the number of threads. Throws ConfigError (as require_own does, too), DataError (file:line) or IoError.
  static TokenStore open_or_build(FileSystem& files, const std::string& directory, const DataOptions& data, const Vocabulary& source,
                                  const Vocabulary& target, const StoreBuild& build);

  /// Throws ConfigError if the directory exists and contains anything but tokens, because a new store replaces its content.
  static void require_own(FileSystem& files, const std::string& directory);

  /// Removes the tokens, finished or not, and the directory unless it contains something else.
  static void remove(FileSystem& files, const std::string& directory);

  /// Opens a finished store and verifies every checksum; throws IoError if there is none, DataError if it is damaged.
  static TokenStore open(FileSystem& files, const std::string& directory, int threads = 1);

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
  bool reused() const { return reused_; }  // whether open_or_build found it current

  /// Returns the lengths of pair i; throws DataError if its entry is damaged.
  PairLengths lengths(int64_t i) const;
  /// Appends pair i to both sides, end of sentence included; throws DataError if an id lies outside the vocabulary.
  void append(int64_t i, PackedTokens& source, PackedTokens& target) const;
  bool weighted() const { return weighted_; }  // whether any pair has a loss weight
  float weight(int64_t i) const { return shard_of(i).weight(i); }
  bool linked() const { return linked_; }  // whether any pair may have links
  /// Appends the links of pair i.
  void append_links(int64_t i, std::vector<TokenLink>& to) const { shard_of(i).append_links(i, to); }

 private:
  TokenStore() = default;
  const ShardReader& shard_of(int64_t& i) const;  // changes i to the pair's index in the shard

  std::vector<ShardReader> shards_;    // only those with pairs
  std::vector<int64_t> shard_begins_;  // index in the store of each shard's first pair
  int64_t pairs_ = 0, tokens_ = 0;
  int32_t source_size_ = 0, target_size_ = 0;  // of the vocabularies
  uint64_t fingerprint_ = 0;
  bool reused_ = false, weighted_ = false, linked_ = false;
  std::vector<FilterCounts> counts_;
  std::vector<int64_t> begins_;
};

// Writes a store pair by pair. Shards appear one by one; the store exists only after finish(). Errors are IoError.
class TokenStoreWriter {
 public:
  /// Creates `directory` if necessary; the sizes are those of the vocabularies. version: of the shards, which says what pairs have.
  TokenStoreWriter(FileSystem& files, const std::string& directory, uint64_t fingerprint, int64_t source_size, int64_t target_size,
                   uint32_t version = kTokenStoreVersion);
  /// Removes a shard that was not ended.
  ~TokenStoreWriter();

  /// Appends a pair to the current shard; both sides end with end of sentence and are at most 2^24 - 1 tokens long.
  void append(std::span<const int32_t> source, std::span<const int32_t> target, float weight = 1, std::span<const TokenLink> links = {});
  /// Ends the current shard if pairs were read for it; `counts` describes these pairs, and `counts.kept` is the number appended.
  void end_shard(const FilterCounts& counts);
  /// Takes over an existing, verified shard, which must be the next one.
  void keep_shard(const ShardFacts& facts);
  /// Ends the current corpus, after ending its last shard.
  void end_corpus(const FilterCounts& counts_of_last_shard = {});
  /// Writes the index and removes files of other stores from the directory.
  void finish();

  uint64_t next_shard() const { return shards_.size(); }

 private:
  FileSystem& files_;
  std::string directory_;
  uint64_t fingerprint_, source_size_, target_size_;
  uint32_t version_;
  std::unique_ptr<ShardWriter> shard_;
  std::vector<ShardFacts> shards_;
  std::vector<FilterCounts> counts_;
  FilterCounts corpus_counts_;  // of the current corpus
};

/// Verifies the existing shards of store `fingerprint`, several at a time, and returns the facts of those that are intact, by number.
std::vector<std::optional<ShardFacts>> verified_shards(FileSystem& files, const std::string& directory, uint64_t fingerprint, int threads);

}  // namespace starling
