// One file of a token store: the pairs from about a hundred thousand lines of a corpus. It contains its own description and checksum, so
// that an interrupted build resumes after the last complete shard, and damage costs one shard instead of the store.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/batch.h"
#include "base/files.h"
#include "base/mapping_guard.h"

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

constexpr uint32_t kTokenStoreVersion = 6;  // up to 5 the checksums were others
// What is added to the version of a shard whose pairs have loss weights, and links between their tokens.
constexpr uint32_t kWithWeights = 1, kWithLinks = 2;

// The description of a shard, in the store's index and at the end of the shard's file.
struct ShardFacts {
  FilterCounts counts;
  uint64_t number = 0;       // index of the shard in its store
  uint64_t fingerprint = 0;  // of the store
  uint64_t tokens = 0;       // both sides
  uint32_t token_bytes = 0, version = kTokenStoreVersion;
  uint64_t checksum = 0;  // of the whole file, except this number and what follows it
  bool operator==(const ShardFacts&) const = default;
};
static_assert(sizeof(ShardFacts) == 80);

/// Throws DataError for a damaged or wrong file of the store, a shard or the index.
[[noreturn]] void refuse_token_file(const std::string& path, const std::string& what);

/// Returns the path of shard `number` in `directory`.
std::string shard_path(const std::string& directory, uint64_t fingerprint, uint64_t number);

/// Reads the file once and verifies it; throws IoError if it cannot be read, DataError naming the file if it is damaged or belongs to
/// another store or place.
ShardFacts verify_shard(FileSystem& files, const std::string& directory, uint64_t fingerprint, uint64_t number);

// A shard that is being written; it gets its final name in finish(). Errors are IoError.
class ShardWriter {
 public:
  ShardWriter(FileSystem& files, const std::string& directory, uint64_t fingerprint, uint64_t number, int token_bytes,
              uint32_t version = kTokenStoreVersion);
  /// Removes what was written, unless finish() succeeded.
  ~ShardWriter();

  /// Appends a pair; both sides end with end of sentence and are at most 2^24 - 1 tokens long.
  void append(std::span<const int32_t> source, std::span<const int32_t> target, float weight = 1, std::span<const TokenLink> links = {});
  /// Writes what is left, syncs and renames; `counts.kept` must be the number of pairs appended.
  ShardFacts finish(const FilterCounts& counts);

 private:
  class File;
  std::unique_ptr<File> file_;
  ShardFacts facts_;
  std::vector<uint64_t> entries_;
  std::vector<float> weights_;
  std::vector<TokenLink> links_;
  std::vector<uint64_t> link_ends_;
  std::vector<uint16_t> narrow_;  // scratch of append
};

// Reads a memory-mapped shard. Each access checks what it reads, so that damage to the file causes an error and never a stray read.
class ShardReader {
 public:
  struct Pair {
    uint64_t begin, source, target;  // position of the first token; lengths
  };

  /// Throws DataError unless the file has the size implied by `facts` (from verify_shard).
  ShardReader(FileSystem& files, const std::string& directory, const ShardFacts& facts);

  int64_t pairs() const { return facts_.counts.kept; }
  Pair pair(int64_t i) const;
  bool weighted() const { return weights_ != nullptr; }
  /// Returns the loss weight of a pair; 1 in a shard without weights. Throws DataError if it is damaged.
  float weight(int64_t i) const;
  bool linked() const { return link_ends_ != nullptr; }
  /// Appends the links of a pair, none in a shard without them. Throws DataError for links that are damaged.
  void append_links(int64_t i, std::vector<TokenLink>& to) const;
  /// Appends `count` ids from position `begin`; throws DataError if an id is not below `vocabulary_size`. `i` is the pair, for the message.
  void append(int64_t i, uint64_t begin, uint64_t count, int32_t vocabulary_size, std::vector<int32_t>& to) const;

 private:
  uint64_t link_end(int64_t i) const;

  std::string path_;
  ShardFacts facts_;
  std::unique_ptr<MappedFile> file_;
  MappingGuard guard_;
  const std::byte *tokens_ = nullptr, *entries_ = nullptr, *weights_ = nullptr, *link_ends_ = nullptr, *links_ = nullptr;
};

}  // namespace starling
