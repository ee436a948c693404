// The index (train.index): a head, the filter counts of each corpus, the facts of each shard, a checksum of it all.
#include "data/token_store.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <functional>
#include <set>

#include "base/error.h"
#include "base/hash64.h"
#include "base/start_threads.h"
#include "data/tokenize.h"

namespace starling {
namespace {

constexpr char kIndexMagic[8] = {'S', 'T', 'A', 'R', 'L', 'I', 'D', 'X'};
constexpr const char* kIndexName = "train.index";
constexpr uint64_t kMaxIndexBytes = uint64_t{1} << 30;  // ten million shards

struct IndexHead {
  char magic[8];
  uint64_t fingerprint, source_size, target_size, corpora, shards;
  uint32_t version, unused;
};
static_assert(sizeof(IndexHead) == 56 && sizeof(FilterCounts) == 40);

struct Index {
  IndexHead head{};
  std::vector<FilterCounts> counts;
  std::vector<ShardFacts> shards;
};

std::string index_path(const std::string& directory) { return join_path(directory, kIndexName); }

// Returns whether a name is that of a store's file, complete or being written, of this or the first version: shard_path, the index, the
// tokens.
bool is_of_store(std::string_view name) {
  if (name.ends_with(".new")) name.remove_suffix(4);
  if (name == kIndexName || name == "train.tokens" || name == ".tmp-train.index") return true;
  constexpr std::string_view kBegin = "train.";
  constexpr size_t kFingerprint = 16;
  if (!name.starts_with(kBegin) || name.size() < kBegin.size() + kFingerprint + 6 || name[kBegin.size() + kFingerprint] != '.')
    return false;
  const std::string_view fingerprint = name.substr(kBegin.size(), kFingerprint), number = name.substr(kBegin.size() + kFingerprint + 1);
  return fingerprint.find_first_not_of("0123456789abcdef") == fingerprint.npos && number.find_first_not_of("0123456789") == number.npos;
}

uint64_t checksum(std::string_view bytes) { return hash64(std::as_bytes(std::span(bytes))); }

template <class T>
void put(std::string& bytes, const T* values, size_t count) {
  bytes.append(reinterpret_cast<const char*>(values), count * sizeof(T));
}

std::string to_bytes(const Index& index) {
  std::string bytes;
  put(bytes, &index.head, 1);
  put(bytes, index.counts.data(), index.counts.size());
  put(bytes, index.shards.data(), index.shards.size());
  const uint64_t sum = checksum(bytes);
  put(bytes, &sum, 1);
  return bytes;
}

template <class T>
void get(std::string_view& bytes, std::vector<T>& values, uint64_t count) {
  values.resize(count);
  if (count == 0) return;
  std::memcpy(values.data(), bytes.data(), count * sizeof(T));
  bytes.remove_prefix(count * sizeof(T));
}

Index read_index(FileSystem& files, const std::string& directory) {
  const std::string path = index_path(directory), content = files.read_file(path, kMaxIndexBytes);
  Index index;
  if (content.size() < sizeof index.head + sizeof(uint64_t)) refuse_token_file(path, "is cut short");
  std::memcpy(&index.head, content.data(), sizeof index.head);
  const bool ours = std::memcmp(index.head.magic, kIndexMagic, sizeof kIndexMagic) == 0;
  if (!ours) refuse_token_file(path, "is not an index of tokens, or one of an older version");
  if (index.head.version != kTokenStoreVersion)
    refuse_token_file(path, fmt::format("has version {} instead of {}", index.head.version, kTokenStoreVersion));
  std::string_view bytes(content);
  uint64_t sum = 0;
  std::memcpy(&sum, bytes.data() + bytes.size() - sizeof sum, sizeof sum);
  bytes.remove_suffix(sizeof sum);
  if (sum != checksum(bytes)) refuse_token_file(path, "its checksum is wrong");
  bytes.remove_prefix(sizeof index.head);
  const uint64_t corpora = index.head.corpora, shards = index.head.shards;
  if (corpora > bytes.size() || shards > bytes.size() || bytes.size() != corpora * sizeof(FilterCounts) + shards * sizeof(ShardFacts))
    refuse_token_file(path, "has the wrong size");
  get(bytes, index.counts, corpora);
  get(bytes, index.shards, shards);
  return index;
}

// Runs a task for each shard and rethrows the failure with the lowest number, whatever the number of threads.
void for_each_shard(uint64_t count, int threads, const std::function<void(uint64_t)>& task) {
  std::atomic<uint64_t> next{0};
  std::vector<std::exception_ptr> failures(count);
  work_side_by_side(std::min<uint64_t>(count, static_cast<uint64_t>(std::max(threads, 1))), [&](size_t) {
    for (uint64_t i; (i = next++) < count;) {
      try {
        task(i);
      } catch (...) {
        failures[i] = std::current_exception();
      }
    }
  });
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

}  // namespace

std::vector<std::optional<ShardFacts>> verified_shards(FileSystem& files, const std::string& directory, uint64_t fingerprint, int threads) {
  std::vector<std::string> names;
  if (files.exists(directory)) names = files.list(directory);
  std::vector<std::optional<ShardFacts>> shards(2 * names.size());  // half of them may be missing
  for_each_shard(shards.size(), threads, [&](uint64_t i) {
    if (!std::binary_search(names.begin(), names.end(), file_name(shard_path(directory, fingerprint, i)))) return;
    try {
      shards[i] = verify_shard(files, directory, fingerprint, i);
    } catch (const DataError&) {  // damaged: counts as missing
    }
  });
  return shards;
}

// ---- reading

TokenStore::TokenStore(TokenStore&&) noexcept = default;
TokenStore& TokenStore::operator=(TokenStore&&) noexcept = default;
TokenStore::~TokenStore() = default;

TokenStore TokenStore::open(FileSystem& files, const std::string& directory, int threads) {
  const Index index = read_index(files, directory);
  for_each_shard(index.shards.size(), threads, [&](uint64_t i) {
    if (verify_shard(files, directory, index.head.fingerprint, i) != index.shards[i])
      refuse_token_file(shard_path(directory, index.head.fingerprint, i), "does not belong to the index");
  });
  TokenStore store;
  store.source_size_ = static_cast<int32_t>(index.head.source_size);
  store.target_size_ = static_cast<int32_t>(index.head.target_size);
  store.fingerprint_ = index.head.fingerprint;
  store.counts_ = index.counts;
  for (const ShardFacts& facts : index.shards) {
    if (facts.counts.kept > 0) {
      store.shard_begins_.push_back(store.pairs_);
      store.shards_.emplace_back(files, directory, facts);
      store.weighted_ = store.weighted_ || store.shards_.back().weighted();
      store.linked_ = store.linked_ || store.shards_.back().linked();
    }
    store.pairs_ += facts.counts.kept;
    store.tokens_ += static_cast<int64_t>(facts.tokens);
  }
  for (int64_t begin = 0; const FilterCounts& count : store.counts_) {
    store.begins_.push_back(begin);
    if (count.kept < 0 || count.kept > store.pairs_ - begin) refuse_token_file(index_path(directory), "its counts contradict each other");
    begin += count.kept;
  }
  return store;
}

StoreState TokenStore::look(FileSystem& files, const std::string& directory, const DataOptions& data, const Vocabulary& source,
                            const Vocabulary& target) {
  const uint64_t fingerprint = token_fingerprint(data, source, target);
  try {
    const Index index = read_index(files, directory);
    for (uint64_t i = 0; i < index.shards.size(); ++i)
      if (!files.exists(shard_path(directory, index.head.fingerprint, i))) return StoreState::missing;
    return index.head.fingerprint == fingerprint ? StoreState::current : StoreState::other;
  } catch (const DataError&) {
  } catch (const IoError&) {
  }
  return StoreState::missing;
}

void TokenStore::require_own(FileSystem& files, const std::string& directory) {
  if (!files.exists(directory)) return;
  for (const std::string& name : files.list(directory))
    if (!is_of_store(name) && !name.starts_with(".nfs"))  // NFS: a removed file that a process still has open
      throw ConfigError(
          fmt::format("{}: contains {}, but this is where the tokens of the training text are kept; move that elsewhere, or choose "
                      "another train.output",
                      directory, name));
}

void TokenStore::remove(FileSystem& files, const std::string& directory) {
  if (!files.exists(directory)) return;
  for (const std::string& name : files.list(directory))
    if (is_of_store(name)) files.remove(join_path(directory, name));
  files.remove(directory);
}

FilterCounts TokenStore::counts() const {
  FilterCounts sum;
  for (const FilterCounts& counts : counts_) sum += counts;
  return sum;
}

const ShardReader& TokenStore::shard_of(int64_t& i) const {
  CHECK(i >= 0 && i < pairs_, "pair {} of {}", i, pairs_);
  const auto after = std::upper_bound(shard_begins_.begin(), shard_begins_.end(), i);
  const auto at = static_cast<size_t>(after - shard_begins_.begin()) - 1;
  i -= shard_begins_[at];
  return shards_[at];
}

PairLengths TokenStore::lengths(int64_t i) const {
  const ShardReader::Pair pair = shard_of(i).pair(i);
  return {static_cast<int32_t>(pair.source), static_cast<int32_t>(pair.target)};
}

void TokenStore::append(int64_t i, PackedTokens& source, PackedTokens& target) const {
  const ShardReader& shard = shard_of(i);
  const ShardReader::Pair pair = shard.pair(i);
  const auto copy = [&](PackedTokens& to, uint64_t begin, uint64_t count, int32_t vocabulary_size) {
    shard.append(i, begin, count, vocabulary_size, to.tokens);
    to.offsets.push_back(static_cast<int32_t>(to.tokens.size()));
  };
  copy(source, pair.begin, pair.source, source_size_);
  copy(target, pair.begin + pair.source, pair.target, target_size_);
}

// ---- writing

TokenStoreWriter::TokenStoreWriter(FileSystem& files, const std::string& directory, uint64_t fingerprint, int64_t source_size,
                                   int64_t target_size, uint32_t version)
    : files_(files),
      directory_(directory),
      fingerprint_(fingerprint),
      source_size_(static_cast<uint64_t>(source_size)),
      target_size_(static_cast<uint64_t>(target_size)),
      version_(version) {
  files.make_directories(directory);
}

TokenStoreWriter::~TokenStoreWriter() = default;

void TokenStoreWriter::append(std::span<const int32_t> source, std::span<const int32_t> target, float weight,
                              std::span<const TokenLink> links) {
  if (!shard_) {
    const int token_bytes = std::max(source_size_, target_size_) <= 65536 ? 2 : 4;
    shard_ = std::make_unique<ShardWriter>(files_, directory_, fingerprint_, next_shard(), token_bytes, version_);
  }
  shard_->append(source, target, weight, links);
}

void TokenStoreWriter::end_shard(const FilterCounts& counts) {
  if (counts.total == 0) return;
  if (!shard_) shard_ = std::make_unique<ShardWriter>(files_, directory_, fingerprint_, next_shard(), 2);  // all its pairs were dropped
  shards_.push_back(shard_->finish(counts));
  shard_.reset();
  corpus_counts_ += counts;
}

void TokenStoreWriter::keep_shard(const ShardFacts& facts) {
  CHECK(!shard_ && facts.number == next_shard() && facts.fingerprint == fingerprint_, "shard {}", facts.number);
  shards_.push_back(facts);
  corpus_counts_ += facts.counts;
}

void TokenStoreWriter::end_corpus(const FilterCounts& counts_of_last_shard) {
  end_shard(counts_of_last_shard);
  counts_.push_back(corpus_counts_);
  corpus_counts_ = {};
}

void TokenStoreWriter::finish() {
  CHECK(!shard_ && corpus_counts_.total == 0, "{} pairs belong to no corpus", corpus_counts_.total);
  Index index;
  std::memcpy(index.head.magic, kIndexMagic, sizeof kIndexMagic);
  index.head.fingerprint = fingerprint_;
  index.head.source_size = source_size_;
  index.head.target_size = target_size_;
  index.head.corpora = counts_.size();
  index.head.shards = shards_.size();
  index.head.version = kTokenStoreVersion;
  index.counts = counts_;
  index.shards = shards_;
  files_.sync_directory(directory_);  // the shards are durable before the index lists them
  files_.replace_file(index_path(directory_), to_bytes(index));
  std::set<std::string> keep{kIndexName};
  for (const ShardFacts& facts : shards_) keep.insert(file_name(shard_path(directory_, fingerprint_, facts.number)));
  for (const std::string& name : files_.list(directory_))
    if (is_of_store(name) && !keep.contains(name)) files_.remove(join_path(directory_, name));
}

}  // namespace starling
