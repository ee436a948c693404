// The file: ids, zeros up to a multiple of eight bytes, one 64-bit entry a pair and one more, ShardFacts. A pair's entry is the
// position of its first id (40 bits) and its source length (24 bits); the next entry's position is where it ends. In a shard with
// weights those of the pairs, f32, follow the entries, and zeros up to a multiple of eight bytes. In one with links there follow a 64-bit
// number for each pair, that of the links of all pairs up to it, and the links, two 16-bit positions each (source, target), and zeros.
#include "data/token_shard.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/hash64.h"

namespace starling {
namespace {

constexpr char kMagic[8] = {'S', 'T', 'A', 'R', 'L', 'T', 'O', 'K'};  // ends the file
constexpr int kLengthBits = 24;
constexpr uint64_t kMaxTokens = uint64_t{1} << (64 - kLengthBits);
constexpr size_t kBuffer = size_t{1} << 20;  // bytes per system call
constexpr size_t kEnd = sizeof(ShardFacts) + sizeof kMagic;
constexpr size_t kUnsummed = sizeof(uint64_t) + sizeof kMagic;  // the checksum and what follows

uint64_t rounded_up(uint64_t bytes) { return (bytes + 7) / 8 * 8; }

bool has(const ShardFacts& facts, uint32_t what) { return ((facts.version - kTokenStoreVersion) & what) != 0; }

uint64_t links_begin(const ShardFacts& facts) {
  const auto kept = static_cast<uint64_t>(facts.counts.kept);
  const uint64_t weights = has(facts, kWithWeights) ? rounded_up(sizeof(float) * kept) : 0;
  return rounded_up(facts.tokens * facts.token_bytes) + 8 * (kept + 1) + weights;
}

// Without the links themselves, whose number is in the file.
uint64_t file_bytes(const ShardFacts& facts) {
  return links_begin(facts) + (has(facts, kWithLinks) ? 8 * static_cast<uint64_t>(facts.counts.kept) : 0) + kEnd;
}
bool fits(const ShardFacts& facts, uint64_t bytes) {
  return has(facts, kWithLinks) ? bytes >= file_bytes(facts) : bytes == file_bytes(facts);
}

// Reads a file in pieces, hashes all bytes except the last kUnsummed, and keeps the last kEnd.
class PassingFile {
 public:
  void add(std::span<const std::byte> bytes) {
    size_ += bytes.size();
    tail_.insert(tail_.end(), bytes.begin(), bytes.end());
    if (tail_.size() <= kEnd) return;
    const size_t ready = tail_.size() - kEnd;
    hash_.update(std::span(tail_).first(ready));
    tail_.erase(tail_.begin(), tail_.begin() + static_cast<std::ptrdiff_t>(ready));
  }
  uint64_t size() const { return size_; }
  std::span<const std::byte> tail() const { return tail_; }
  uint64_t checksum() {
    hash_.update(std::span(tail_).first(kEnd - kUnsummed));
    return hash_.digest();
  }

 private:
  Hash64 hash_;
  std::vector<std::byte> tail_;
  uint64_t size_ = 0;
};

}  // namespace

void refuse_token_file(const std::string& path, const std::string& what) {
  throw DataError(fmt::format("{}: {}; delete the file, it will be rebuilt from the text", path, what));
}

FilterCounts& FilterCounts::operator+=(const FilterCounts& other) {
  total += other.total;
  kept += other.kept;
  empty += other.empty;
  too_long += other.too_long;
  ratio += other.ratio;
  return *this;
}

std::string shard_path(const std::string& directory, uint64_t fingerprint, uint64_t number) {
  return join_path(directory, fmt::format("train.{:016x}.{:05}", fingerprint, number));
}

ShardFacts verify_shard(FileSystem& files, const std::string& directory, uint64_t fingerprint, uint64_t number) {
  const std::string path = shard_path(directory, fingerprint, number);
  PassingFile file;
  files.read_pieces(path, [&](std::span<const std::byte> bytes) { file.add(bytes); });
  if (file.size() < kEnd) refuse_token_file(path, "is cut short");
  ShardFacts facts;
  std::memcpy(&facts, file.tail().data(), sizeof facts);
  if (std::memcmp(file.tail().data() + sizeof facts, kMagic, sizeof kMagic) != 0) refuse_token_file(path, "is not a whole shard of tokens");
  if (facts.version < kTokenStoreVersion || facts.version > kTokenStoreVersion + kWithWeights + kWithLinks)
    refuse_token_file(path, fmt::format("has version {} instead of {}", facts.version, kTokenStoreVersion));
  if (facts.checksum != file.checksum()) refuse_token_file(path, "its checksum is wrong");
  if (facts.fingerprint != fingerprint || facts.number != number) refuse_token_file(path, "is another shard, renamed");
  const bool possible = (facts.token_bytes == 2 || facts.token_bytes == 4) && facts.tokens <= file.size() && facts.counts.kept >= 0 &&
                        static_cast<uint64_t>(facts.counts.kept) <= file.size();
  if (!possible || !fits(facts, file.size())) refuse_token_file(path, "has the wrong size");
  return facts;
}

// ---- writing

// A file that has a temporary name until it is committed, written in pieces of a megabyte.
class ShardWriter::File {
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
    } catch (...) {  // the error that led here matters more; the next build overwrites the remains
    }
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  void write(const void* bytes, size_t size) {
    const auto* from = static_cast<const std::byte*>(bytes);
    buffer_.insert(buffer_.end(), from, from + size);
    if (buffer_.size() >= kBuffer) flush();
  }
  uint64_t checksum() {
    flush();
    return hash_.digest();
  }
  void commit() {
    flush();
    file_->sync();
    file_->close();
    files_.rename(temporary_, path_);
    committed_ = true;
  }

 private:
  void flush() {
    hash_.update(buffer_);
    file_->write(std::span<const std::byte>(buffer_));
    buffer_.clear();
  }

  FileSystem& files_;
  std::string path_, temporary_;
  std::unique_ptr<OutputFile> file_;
  std::vector<std::byte> buffer_;
  Hash64 hash_;
  bool committed_ = false;
};

ShardWriter::ShardWriter(FileSystem& files, const std::string& directory, uint64_t fingerprint, uint64_t number, int token_bytes,
                         uint32_t version)
    : file_(std::make_unique<File>(files, shard_path(directory, fingerprint, number))) {
  facts_.number = number;
  facts_.fingerprint = fingerprint;
  facts_.token_bytes = static_cast<uint32_t>(token_bytes);
  facts_.version = version;
}

ShardWriter::~ShardWriter() = default;

void ShardWriter::append(std::span<const int32_t> source, std::span<const int32_t> target, float weight, std::span<const TokenLink> links) {
  CHECK(!source.empty() && !target.empty() && source.size() >> kLengthBits == 0 && target.size() >> kLengthBits == 0, "lengths {} and {}",
        source.size(), target.size());
  CHECK(facts_.tokens + source.size() + target.size() < kMaxTokens, "{} tokens", facts_.tokens);
  entries_.push_back((facts_.tokens << kLengthBits) | source.size());
  weights_.push_back(weight);
  links_.insert(links_.end(), links.begin(), links.end());
  link_ends_.push_back(links_.size());
  for (const std::span<const int32_t> side : {source, target}) {
    facts_.tokens += side.size();
    if (facts_.token_bytes == 4) {
      file_->write(side.data(), side.size_bytes());
    } else {
      narrow_.assign(side.begin(), side.end());
      file_->write(narrow_.data(), narrow_.size() * sizeof(uint16_t));
    }
  }
}

ShardFacts ShardWriter::finish(const FilterCounts& counts) {
  CHECK(counts.kept == static_cast<int64_t>(entries_.size()), "kept {} of {} pairs appended", counts.kept, entries_.size());
  facts_.counts = counts;
  entries_.push_back(facts_.tokens << kLengthBits);
  const uint64_t zeros = 0, bytes = facts_.tokens * facts_.token_bytes;
  file_->write(&zeros, rounded_up(bytes) - bytes);
  file_->write(entries_.data(), 8 * entries_.size());
  const auto write_whole = [&](const auto& numbers) {
    const uint64_t size = sizeof numbers[0] * numbers.size();
    file_->write(numbers.data(), size);
    file_->write(&zeros, rounded_up(size) - size);
  };
  if (has(facts_, kWithWeights)) write_whole(weights_);
  if (has(facts_, kWithLinks)) {
    write_whole(link_ends_);
    write_whole(links_);
  }
  file_->write(&facts_, sizeof facts_ - sizeof facts_.checksum);
  facts_.checksum = file_->checksum();
  file_->write(&facts_.checksum, sizeof facts_.checksum);
  file_->write(kMagic, sizeof kMagic);
  file_->commit();
  return facts_;
}

// ---- reading

ShardReader::ShardReader(FileSystem& files, const std::string& directory, const ShardFacts& facts)
    : path_(shard_path(directory, facts.fingerprint, facts.number)), facts_(facts), file_(files.map(path_)), guard_(file_->bytes(), path_) {
  const uint64_t size = file_->bytes().size();
  if (!fits(facts, size)) refuse_token_file(path_, "has the wrong size");
  tokens_ = file_->bytes().data();
  entries_ = tokens_ + rounded_up(facts.tokens * facts.token_bytes);
  if (has(facts, kWithWeights)) weights_ = entries_ + 8 * (facts.counts.kept + 1);
  if (!has(facts, kWithLinks)) return;
  link_ends_ = tokens_ + links_begin(facts);
  links_ = link_ends_ + 8 * facts.counts.kept;
  const uint64_t links = pairs() > 0 ? link_end(pairs() - 1) : 0;
  if (links > size || size != file_bytes(facts) + rounded_up(sizeof(TokenLink) * links)) refuse_token_file(path_, "has the wrong size");
}

uint64_t ShardReader::link_end(int64_t i) const {
  uint64_t end = 0;
  if (i >= 0) std::memcpy(&end, link_ends_ + 8 * i, sizeof end);
  guard_.require_whole();
  return end;
}

void ShardReader::append_links(int64_t i, std::vector<TokenLink>& to) const {
  CHECK(i >= 0 && i < pairs(), "pair {} of {}", i, pairs());
  if (!link_ends_) return;
  const Pair of = pair(i);
  const uint64_t begin = link_end(i - 1), end = link_end(i);
  if (begin > end || end > link_end(pairs() - 1)) refuse_token_file(path_, fmt::format("the links of pair {} are damaged", i));
  if (begin == end) return;
  const size_t old = to.size();
  to.resize(old + (end - begin));
  std::memcpy(to.data() + old, links_ + sizeof(TokenLink) * begin, sizeof(TokenLink) * (end - begin));
  guard_.require_whole();
  for (size_t k = old; k < to.size(); ++k)
    if (to[k].source >= of.source || to[k].target >= of.target) refuse_token_file(path_, fmt::format("a link of pair {} is damaged", i));
}

float ShardReader::weight(int64_t i) const {
  CHECK(i >= 0 && i < pairs(), "pair {} of {}", i, pairs());
  if (!weights_) return 1;
  float weight = 0;
  std::memcpy(&weight, weights_ + static_cast<int64_t>(sizeof weight) * i, sizeof weight);
  guard_.require_whole();
  if (!(weight >= 0 && weight <= 1e6f)) refuse_token_file(path_, fmt::format("the weight of pair {} is damaged", i));
  return weight;
}

ShardReader::Pair ShardReader::pair(int64_t i) const {
  CHECK(i >= 0 && i < pairs(), "pair {} of {}", i, pairs());
  uint64_t words[2];
  std::memcpy(words, entries_ + 8 * i, sizeof words);
  guard_.require_whole();
  const uint64_t begin = words[0] >> kLengthBits, end = words[1] >> kLengthBits;
  const uint64_t source = words[0] & ((uint64_t{1} << kLengthBits) - 1);
  if (begin > end || end > facts_.tokens || source == 0 || source >= end - begin || (end - begin - source) >> kLengthBits != 0)
    refuse_token_file(path_, fmt::format("the entry of pair {} is damaged", i));
  return {begin, source, end - begin - source};
}

namespace {

// Copies ids; returns the first that is too large, or -1.
template <class Token>
int64_t widen(const std::byte* from, uint64_t count, uint32_t limit, std::vector<int32_t>& to) {
  const size_t old = to.size();
  to.resize(old + count);
  for (uint64_t k = 0; k < count; ++k) {
    Token token;
    std::memcpy(&token, from + k * sizeof token, sizeof token);
    if (token >= limit) return token;
    to[old + k] = static_cast<int32_t>(token);
  }
  return -1;
}

}  // namespace

void ShardReader::append(int64_t i, uint64_t begin, uint64_t count, int32_t vocabulary_size, std::vector<int32_t>& to) const {
  const std::byte* from = tokens_ + begin * facts_.token_bytes;
  const auto limit = static_cast<uint32_t>(vocabulary_size);
  const int64_t wrong = facts_.token_bytes == 2 ? widen<uint16_t>(from, count, limit, to) : widen<uint32_t>(from, count, limit, to);
  guard_.require_whole();
  if (wrong >= 0) refuse_token_file(path_, fmt::format("pair {} has the id {} of a vocabulary of {} pieces", i, wrong, vocabulary_size));
}

}  // namespace starling
