// The two files: train.index (one 64-bit entry a pair, filter counts by corpus, trailer) and train.tokens (header, ids). A pair's entry
// is the position of its first token (40 bits) and its source length (24 bits); the next entry's position is where it ends.
#include "data/token_store.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "text/vocabulary_format.h"

namespace starling {
namespace {

constexpr char kIndexMagic[8] = {'S', 'T', 'A', 'R', 'L', 'I', 'D', 'X'};
constexpr char kTokenMagic[8] = {'S', 'T', 'A', 'R', 'L', 'T', 'O', 'K'};
constexpr uint32_t kVersion = 1;
constexpr int kLengthBits = 24;
constexpr size_t kBuffer = size_t{1} << 20;  // bytes a system call
constexpr uint64_t kMaxTokens = uint64_t{1} << (64 - kLengthBits);

struct TokenHeader {  // at the beginning of train.tokens
  char magic[8];
  uint32_t version, token_bytes;
  uint64_t fingerprint;
};
static_assert(sizeof(TokenHeader) == 24);

struct IndexTrailer {  // at the end of train.index, so that both files are written from front to back
  uint64_t corpora, pairs, tokens, source_size, target_size;
  uint64_t fingerprint;
  uint64_t checksum;  // of the filter counts and of this trailer with checksum 0
  uint32_t version, token_bytes;
  char magic[8];
};
static_assert(sizeof(IndexTrailer) == 72 && sizeof(FilterCounts) == 40);

std::string index_path(const std::string& directory) { return directory + "/train.index"; }
std::string token_path(const std::string& directory) { return directory + "/train.tokens"; }

[[noreturn]] void damaged(const std::string& path, const std::string& what) {
  throw DataError(fmt::format("{}: {}; delete the file, it is made again from the text", path, what));
}

uint64_t trailer_checksum(IndexTrailer trailer, std::string_view counts) {
  trailer.checksum = 0;
  return vocabulary_format::hash(std::string(counts).append(reinterpret_cast<const char*>(&trailer), sizeof trailer));
}

int32_t token_bytes_for(int64_t source_size, int64_t target_size) { return std::max(source_size, target_size) <= 65536 ? 2 : 4; }

}  // namespace

FilterCounts& FilterCounts::operator+=(const FilterCounts& other) {
  total += other.total;
  kept += other.kept;
  empty += other.empty;
  too_long += other.too_long;
  ratio += other.ratio;
  return *this;
}

// ---- reading

struct TokenStore::Entry {
  uint64_t begin, source, target;  // position of the first token; lengths
};

TokenStore::TokenStore(TokenStore&&) noexcept = default;
TokenStore& TokenStore::operator=(TokenStore&&) noexcept = default;
TokenStore::~TokenStore() = default;

TokenStore TokenStore::open(FileSystem& files, const std::string& directory) {
  TokenStore store;
  store.directory_ = directory;
  store.index_file_ = files.map(index_path(directory));
  store.token_file_ = files.map(token_path(directory));
  store.read_index(store.index_file_->bytes());
  store.read_token_header(store.token_file_->bytes());
  return store;
}

void TokenStore::read_index(std::span<const std::byte> bytes) {
  const std::string path = index_path(directory_);
  IndexTrailer trailer;
  if (bytes.size() < sizeof trailer) damaged(path, "is cut short");
  const std::span<const std::byte> before = bytes.first(bytes.size() - sizeof trailer);
  std::memcpy(&trailer, bytes.data() + before.size(), sizeof trailer);
  if (std::memcmp(trailer.magic, kIndexMagic, sizeof kIndexMagic) != 0) damaged(path, "is not a complete index of tokens");
  if (trailer.version != kVersion) damaged(path, fmt::format("has version {} instead of {}", trailer.version, kVersion));
  if (trailer.corpora > before.size() / sizeof(FilterCounts)) damaged(path, "has a damaged trailer");
  const std::span<const std::byte> counts = before.last(trailer.corpora * sizeof(FilterCounts));
  if (trailer.checksum != trailer_checksum(trailer, {reinterpret_cast<const char*>(counts.data()), counts.size()}))
    damaged(path, "has a damaged trailer");
  const size_t entry_bytes = before.size() - counts.size();
  if (entry_bytes % 8 != 0 || entry_bytes / 8 != trailer.pairs + 1) damaged(path, "has a wrong size");

  entries_ = bytes.data();
  pairs_ = static_cast<int64_t>(trailer.pairs);
  tokens_ = static_cast<int64_t>(trailer.tokens);
  token_bytes_ = static_cast<int32_t>(trailer.token_bytes);
  source_size_ = static_cast<int32_t>(trailer.source_size);
  target_size_ = static_cast<int32_t>(trailer.target_size);
  fingerprint_ = trailer.fingerprint;
  counts_.resize(trailer.corpora);
  std::memcpy(counts_.data(), counts.data(), counts.size());
  for (int64_t begin = 0; const FilterCounts& count : counts_) {
    begins_.push_back(begin);
    begin += count.kept;
  }
}

void TokenStore::read_token_header(std::span<const std::byte> bytes) {
  const std::string path = token_path(directory_);
  TokenHeader header;
  if (bytes.size() < sizeof header) damaged(path, "is cut short");
  std::memcpy(&header, bytes.data(), sizeof header);
  const bool same =
      header.version == kVersion && header.token_bytes == static_cast<uint32_t>(token_bytes_) && header.fingerprint == fingerprint_;
  if (std::memcmp(header.magic, kTokenMagic, sizeof kTokenMagic) != 0 || !same) damaged(path, "does not belong to train.index");
  if (bytes.size() != sizeof header + static_cast<size_t>(tokens_) * header.token_bytes) damaged(path, "has a wrong size");
  token_data_ = bytes.data() + sizeof header;
}

FilterCounts TokenStore::counts() const {
  FilterCounts sum;
  for (const FilterCounts& counts : counts_) sum += counts;
  return sum;
}

TokenStore::Entry TokenStore::entry(int64_t i) const {
  CHECK(i >= 0 && i < pairs_, "pair {} of {}", i, pairs_);
  uint64_t words[2];
  std::memcpy(words, entries_ + 8 * i, sizeof words);
  const uint64_t begin = words[0] >> kLengthBits, end = words[1] >> kLengthBits;
  const uint64_t source = words[0] & ((uint64_t{1} << kLengthBits) - 1);
  if (begin > end || end > static_cast<uint64_t>(tokens_) || source == 0 || source >= end - begin ||
      (end - begin - source) >> kLengthBits != 0)
    damaged(index_path(directory_), fmt::format("the entry of pair {} is damaged", i));
  return {begin, source, end - begin - source};
}

PairLengths TokenStore::lengths(int64_t i) const {
  const Entry at = entry(i);
  return {static_cast<int32_t>(at.source), static_cast<int32_t>(at.target)};
}

template <class Token>
void TokenStore::append_as(const Entry& at, int64_t i, PackedTokens& source, PackedTokens& target) const {
  const std::byte* from = token_data_ + at.begin * sizeof(Token);
  const auto copy = [&](PackedTokens& to, uint64_t count, int32_t vocabulary_size) {
    const size_t old = to.tokens.size();
    to.tokens.resize(old + count);
    for (uint64_t k = 0; k < count; ++k, from += sizeof(Token)) {
      Token token;
      std::memcpy(&token, from, sizeof token);
      if (token >= static_cast<uint32_t>(vocabulary_size))
        damaged(token_path(directory_), fmt::format("pair {} has the id {} of a vocabulary of {} pieces", i, token, vocabulary_size));
      to.tokens[old + k] = static_cast<int32_t>(token);
    }
    to.offsets.push_back(static_cast<int32_t>(to.tokens.size()));
  };
  copy(source, at.source, source_size_);
  copy(target, at.target, target_size_);
}

void TokenStore::append(int64_t i, PackedTokens& source, PackedTokens& target) const {
  const Entry at = entry(i);
  token_bytes_ == 2 ? append_as<uint16_t>(at, i, source, target) : append_as<uint32_t>(at, i, source, target);
}

// ---- writing

// A file under another name until committed, written in pieces of a megabyte.
class TokenStoreWriter::File {
 public:
  File(FileSystem& files, const std::string& path)
      : files_(files), path_(path), temporary_(path + ".new"), file_(files.create(temporary_)) {
    buffer_.reserve(kBuffer);
  }
  ~File() {
    if (committed_) return;
    file_.reset();
    try {
      files_.remove(temporary_);
    } catch (...) {  // the error that brought us here matters more; the next build writes over the remains
    }
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  void write(const void* bytes, size_t size) {
    const auto* from = static_cast<const std::byte*>(bytes);
    buffer_.insert(buffer_.end(), from, from + size);
    if (buffer_.size() >= kBuffer) flush();
  }
  void close() {
    flush();
    file_->sync();
    file_->close();
  }
  void commit() {
    files_.rename(temporary_, path_);
    committed_ = true;
  }

 private:
  void flush() {
    file_->write(std::span<const std::byte>(buffer_));
    buffer_.clear();
  }

  FileSystem& files_;
  std::string path_, temporary_;
  std::unique_ptr<OutputFile> file_;
  std::vector<std::byte> buffer_;
  bool committed_ = false;
};

TokenStoreWriter::TokenStoreWriter(FileSystem& files, const std::string& directory, uint64_t fingerprint, int64_t source_size,
                                   int64_t target_size)
    : files_(files),
      directory_(directory),
      token_bytes_(token_bytes_for(source_size, target_size)),
      fingerprint_(fingerprint),
      source_size_(static_cast<uint64_t>(source_size)),
      target_size_(static_cast<uint64_t>(target_size)) {
  files.make_directories(directory);
  tokens_ = std::make_unique<File>(files, token_path(directory));
  index_ = std::make_unique<File>(files, index_path(directory));
  TokenHeader header{{}, kVersion, static_cast<uint32_t>(token_bytes_), fingerprint};
  std::memcpy(header.magic, kTokenMagic, sizeof kTokenMagic);
  tokens_->write(&header, sizeof header);
}

TokenStoreWriter::~TokenStoreWriter() = default;

void TokenStoreWriter::append(std::span<const int32_t> source, std::span<const int32_t> target) {
  CHECK(!source.empty() && !target.empty() && source.size() >> kLengthBits == 0 && target.size() >> kLengthBits == 0, "lengths {} and {}",
        source.size(), target.size());
  CHECK(tokens_written_ + source.size() + target.size() < kMaxTokens, "{} tokens", tokens_written_);
  const uint64_t entry = (tokens_written_ << kLengthBits) | source.size();
  index_->write(&entry, sizeof entry);
  for (const std::span<const int32_t> side : {source, target}) {
    tokens_written_ += side.size();
    if (token_bytes_ == 4) {
      tokens_->write(side.data(), side.size_bytes());
    } else {
      narrow_.assign(side.begin(), side.end());
      tokens_->write(narrow_.data(), narrow_.size() * sizeof(uint16_t));
    }
  }
  ++pairs_written_;
  ++corpus_pairs_;
}

void TokenStoreWriter::end_corpus(const FilterCounts& counts) {
  CHECK(counts.kept == corpus_pairs_, "kept {} of {} pairs appended", counts.kept, corpus_pairs_);
  counts_.push_back(counts);
  corpus_pairs_ = 0;
}

void TokenStoreWriter::finish() {
  CHECK(corpus_pairs_ == 0, "{} pairs belong to no corpus", corpus_pairs_);
  const uint64_t last = tokens_written_ << kLengthBits;
  index_->write(&last, sizeof last);
  const std::string_view counts(reinterpret_cast<const char*>(counts_.data()), counts_.size() * sizeof(FilterCounts));
  index_->write(counts.data(), counts.size());
  IndexTrailer trailer{counts_.size(),
                       pairs_written_,
                       tokens_written_,
                       source_size_,
                       target_size_,
                       fingerprint_,
                       0,
                       kVersion,
                       static_cast<uint32_t>(token_bytes_),
                       {}};
  std::memcpy(trailer.magic, kIndexMagic, sizeof kIndexMagic);
  trailer.checksum = trailer_checksum(trailer, counts);
  index_->write(&trailer, sizeof trailer);

  tokens_->close();
  index_->close();
  tokens_->commit();
  index_->commit();
  files_.sync_directory(directory_);
}

}  // namespace starling
