// Blocks of some thousand pairs are read by one thread, encoded in chunks by all, and written in order; encoding takes nearly all
// of the time, so nothing more elaborate would be faster.
#include "data/tokenize.h"

#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <exception>
#include <filesystem>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "text/vocabulary_format.h"

namespace starling {
namespace {

constexpr size_t kBlockPairs = 16384;  // a block is cut by pairs or bytes, whatever comes first
constexpr size_t kBlockBytes = size_t{8} << 20;
constexpr size_t kChunkPairs = 256;  // pairs a thread takes at a time

struct TextPair {
  size_t begin, source, target;  // in Block::text: first byte, lengths
};

struct Block {
  std::string text;
  std::vector<TextPair> pairs;

  bool read(PairReader& reader) {
    text.clear();
    pairs.clear();
    std::string_view source, target;
    while (pairs.size() < kBlockPairs && text.size() < kBlockBytes && reader.next(source, target)) {
      pairs.push_back({text.size(), source.size(), target.size()});
      text.append(source).append(target);
    }
    return !pairs.empty();
  }
};

struct Chunk {  // what one task makes of kChunkPairs pairs
  std::vector<int32_t> tokens;
  std::vector<PairLengths> lengths;  // of the pairs kept
  FilterCounts counts;
};

class Encoder {
 public:
  Encoder(const DataOptions& data, const Vocabulary& source, const Vocabulary& target) : data_(data), source_(source), target_(target) {}

  void encode(const Block& block, size_t chunk_index, Chunk& chunk) const {
    chunk.tokens.clear();
    chunk.lengths.clear();
    chunk.counts = {};
    const size_t begin = chunk_index * kChunkPairs, end = std::min(begin + kChunkPairs, block.pairs.size());
    for (size_t i = begin; i < end; ++i) {
      const TextPair& at = block.pairs[i];
      const std::string_view text(block.text);
      const EncodedPair pair =
          encode_pair(source_, target_, text.substr(at.begin, at.source), text.substr(at.begin + at.source, at.target));
      if (!passes(pair, chunk.counts)) continue;
      chunk.tokens.insert(chunk.tokens.end(), pair.source.begin(), pair.source.end());
      chunk.tokens.insert(chunk.tokens.end(), pair.target.begin(), pair.target.end());
      chunk.lengths.push_back({static_cast<int32_t>(pair.source.size()), static_cast<int32_t>(pair.target.size())});
    }
  }

 private:
  // The filters, in the order in which they are counted.
  bool passes(const EncodedPair& pair, FilterCounts& counts) const {
    const auto [shorter, longer] = std::minmax({pair.source.size(), pair.target.size()});
    ++counts.total;
    if (shorter <= 1) return ++counts.empty, false;
    if (longer > static_cast<size_t>(data_.max_length)) return ++counts.too_long, false;
    if (data_.max_ratio > 0 && static_cast<double>(longer - 1) > data_.max_ratio * static_cast<double>(shorter - 1))
      return ++counts.ratio, false;
    return ++counts.kept, true;
  }

  const DataOptions& data_;
  const Vocabulary &source_, &target_;
};

// Runs task(0..count-1) on up to `threads` threads; rethrows the first failure.
void run_tasks(size_t count, int threads, const std::function<void(size_t)>& task) {
  std::atomic<size_t> next{0};
  std::exception_ptr failure;
  std::mutex failure_mutex;
  const auto work = [&] {
    try {
      for (size_t i; (i = next++) < count;) task(i);
    } catch (...) {
      const std::lock_guard lock(failure_mutex);
      if (!failure) failure = std::current_exception();
      next = count;
    }
  };
  std::vector<std::thread> helpers;
  for (size_t i = 1; i < std::min(count, static_cast<size_t>(std::max(threads, 1))); ++i) helpers.emplace_back(work);
  work();
  for (std::thread& helper : helpers) helper.join();
  if (failure) std::rethrow_exception(failure);
}

void write_chunk(const Chunk& chunk, TokenStoreWriter& writer) {
  const int32_t* at = chunk.tokens.data();
  for (const PairLengths& lengths : chunk.lengths) {
    const std::span<const int32_t> source(at, lengths.source), target(at + lengths.source, lengths.target);
    writer.append(source, target);
    at += lengths.source + lengths.target;
  }
}

std::string facts_of_file(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0)
    throw IoError(fmt::format("{}: cannot be opened: {}; check the path and its permissions", path, std::strerror(errno)));
  std::error_code error;
  const std::string absolute = std::filesystem::absolute(path, error).lexically_normal().string();
  return fmt::format("{}\n{} {}.{}\n", absolute, info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
}

}  // namespace

EncodedPair encode_pair(const Vocabulary& source_vocabulary, const Vocabulary& target_vocabulary, std::string_view source,
                        std::string_view target) {
  EncodedPair pair{source_vocabulary.encode(source), target_vocabulary.encode(target)};
  pair.source.push_back(source_vocabulary.eos());
  pair.target.push_back(target_vocabulary.eos());
  return pair;
}

std::vector<EncodedPair> encode_corpus(const CorpusFiles& files, const Vocabulary& source, const Vocabulary& target) {
  PairReader reader(files);
  std::vector<EncodedPair> pairs;
  std::string_view source_line, target_line;
  while (reader.next(source_line, target_line)) pairs.push_back(encode_pair(source, target, source_line, target_line));
  return pairs;
}

void tokenize(const DataOptions& data, const Vocabulary& source, const Vocabulary& target, int threads, TokenStoreWriter& writer,
              const std::function<void(int64_t pairs)>& progress) {
  const Encoder encoder(data, source, target);
  Block block;
  std::vector<Chunk> chunks;
  int64_t pairs = 0;
  for (const CorpusFiles& files : data.train) {
    PairReader reader(files);
    FilterCounts counts;
    while (block.read(reader)) {
      chunks.resize((block.pairs.size() + kChunkPairs - 1) / kChunkPairs);
      run_tasks(chunks.size(), threads, [&](size_t i) { encoder.encode(block, i, chunks[i]); });
      for (const Chunk& chunk : chunks) {
        write_chunk(chunk, writer);
        counts += chunk.counts;
      }
      pairs += static_cast<int64_t>(block.pairs.size());
      if (progress) progress(pairs);
    }
    writer.end_corpus(counts);
  }
  writer.finish();
}

uint64_t token_fingerprint(const DataOptions& data, const Vocabulary& source, const Vocabulary& target) {
  std::string facts =
      fmt::format("starling tokens 1\n{:016x} {:016x}\n{} {}\n", source.hash(), target.hash(), data.max_length, data.max_ratio);
  for (const CorpusFiles& files : data.train) {
    if (files.tsv.empty()) {
      facts += "pair\n" + facts_of_file(files.source) + facts_of_file(files.target);
    } else {
      facts += "tsv\n" + facts_of_file(files.tsv);
    }
  }
  return vocabulary_format::hash(facts);
}

StoreState TokenStore::look(FileSystem& files, const std::string& directory, const DataOptions& data, const Vocabulary& source,
                            const Vocabulary& target) {
  const uint64_t fingerprint = token_fingerprint(data, source, target);
  try {
    return open(files, directory).fingerprint() == fingerprint ? StoreState::current : StoreState::other;
  } catch (const DataError&) {
  } catch (const IoError&) {
  }
  return StoreState::missing;
}

TokenStore TokenStore::open_or_build(FileSystem& files, const std::string& directory, const DataOptions& data, const Vocabulary& source,
                                     const Vocabulary& target, int threads, const std::function<void(int64_t pairs)>& progress) {
  check_options(data);
  const uint64_t fingerprint = token_fingerprint(data, source, target);
  try {
    TokenStore store = open(files, directory);
    store.reused_ = true;
    if (store.fingerprint() == fingerprint) return store;
  } catch (const DataError&) {  // damaged or of another version: made again
  } catch (const IoError&) {    // not there
  }
  check_corpora(data);
  {
    TokenStoreWriter writer(files, directory, fingerprint, source.size(), target.size());
    tokenize(data, source, target, threads, writer, progress);
  }
  return open(files, directory);
}

}  // namespace starling
