// Blocks of about a thousand pairs go through a pipeline of fixed size: one thread reads some million lines per second, each worker encodes
// some ten thousand, and the caller's thread writes. A shard ends after a fixed number of lines, so that its content depends on nothing
// else.
#include "data/tokenize.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/ordered_pipeline.h"
#include "data/pair_tables.h"
#include "text/listed_pieces.h"
#include "text/vocabulary_format.h"

namespace starling {
namespace {

constexpr size_t kBlockPairs = 1024;  // a block ends after this many pairs or bytes, whichever comes first
constexpr size_t kBlockBytes = size_t{1} << 20;

const char* unit_of(const DataOptions& data) { return words(data.alignment_unit)[static_cast<size_t>(data.alignment_unit)]; }

struct TextPair {
  size_t begin, source, target, links;  // in Block::text: first byte, lengths
  float weight;
  int64_t line;
};

struct Block {  // some pairs of one shard, or a whole shard that already exists
  std::string text;
  std::vector<TextPair> pairs;
  std::optional<ShardFacts> done;
  bool ends_shard = false, ends_corpus = false;
  size_t corpus = 0;
  uint64_t bytes_read = 0;  // of all text, so far

  std::vector<int32_t> tokens;  // the worker's result: source and target of each pair kept
  std::vector<PairLengths> lengths;
  std::vector<float> weights;  // of the same pairs
  std::vector<std::vector<TokenLink>> links;
  FilterCounts counts;

  void clear() {
    text.clear();
    pairs.clear();
    tokens.clear();
    lengths.clear();
    weights.clear();
    links.clear();
    done.reset();
    ends_shard = ends_corpus = false;
    counts = {};
  }
};

// Divides the corpora into blocks and skips the lines of existing shards.
class BlockReader {
 public:
  BlockReader(const DataOptions& data, int64_t shard_pairs, const std::vector<std::optional<ShardFacts>>& done)
      : data_(data), shard_pairs_(shard_pairs), done_(done) {}

  // Returns false at the end of the last corpus.
  bool read(Block& block) {
    block.clear();
    if (!reader_) {
      if (corpus_ == data_.train.size()) return false;
      reader_.emplace(data_.train[corpus_++]);
    }
    block.corpus = corpus_ - 1;
    std::string_view source, target;
    bool more = reader_->next(source, target);
    if (more && in_shard_ == 0 && shard_ < done_.size() && done_[shard_]) {
      pass_over(*done_[shard_]);
      block.done = done_[shard_++];
    } else {
      while (more) {
        const std::string_view links = reader_->links();
        block.pairs.push_back({block.text.size(), source.size(), target.size(), links.size(), reader_->weight(), reader_->line_number()});
        block.text.append(source).append(target).append(links);
        block.ends_shard = ++in_shard_ == shard_pairs_;
        if (block.ends_shard || block.pairs.size() == kBlockPairs || block.text.size() >= kBlockBytes) break;
        more = reader_->next(source, target);
      }
      block.ends_corpus = !more;
      if (block.ends_shard || (block.ends_corpus && in_shard_ > 0)) {
        ++shard_;
        in_shard_ = 0;
      }
    }
    block.bytes_read = earlier_bytes_ + reader_->bytes_read();
    if (block.ends_corpus) {
      earlier_bytes_ = block.bytes_read;
      reader_.reset();
    }
    return true;
  }

 private:
  // Skips the pairs of a shard after the first, which has been read.
  void pass_over(const ShardFacts& shard) {
    std::string_view source, target;
    for (int64_t i = 1; i < shard.counts.total; ++i)
      if (!reader_->next(source, target))
        throw DataError(
            fmt::format("{}:{}: the text ends here, but its tokens were made from more; delete the directory data in the run's directory",
                        data_.train[corpus_ - 1].name(), reader_->line_number()));
  }

  const DataOptions& data_;
  int64_t shard_pairs_;
  const std::vector<std::optional<ShardFacts>>& done_;
  size_t corpus_ = 0;  // the next corpus
  std::optional<PairReader> reader_;
  uint64_t earlier_bytes_ = 0;  // of the earlier corpora
  size_t shard_ = 0;            // the current shard, or the next if in_shard_ is 0
  int64_t in_shard_ = 0;        // pairs read of the current shard
};

// Puts the corpus's tag, or that which was typed (-1: none), in front of a source that is not blank, and ends of sentences behind both
// sides.
EncodedPair framed(EncodedPair pair, const Vocabulary& source, const Vocabulary& target, std::span<const int32_t> tag, int32_t typed) {
  const std::vector<int32_t> prefix = source.listed().prefix_with(tag, typed);
  if (!pair.source.empty()) pair.source.insert(pair.source.begin(), prefix.begin(), prefix.end());
  pair.source.push_back(source.eos());
  pair.target.push_back(target.eos());
  return pair;
}

class Encoder {
 public:
  Encoder(const DataOptions& data, const Vocabulary& source, const Vocabulary& target) : data_(data), source_(source), target_(target) {
    for (size_t i = 0; i < data.train.size(); ++i) tags_.push_back(source.ids_of(data.train[i].tag, fmt::format("data.train.{}.tag", i)));
  }

  void encode(Block& block) const {
    const std::string_view text(block.text);
    const std::vector<int32_t>& tag = tags_[block.corpus];
    const bool aligned = !data_.train[block.corpus].alignment.empty();
    for (const TextPair& at : block.pairs) {
      const std::string_view line = text.substr(at.begin, at.source);
      std::string_view from = line;
      const std::string_view to = text.substr(at.begin + at.source, at.target);
      const int32_t typed = source_.take_tag(from);
      std::vector<TokenLink> links;
      EncodedPair words;
      if (aligned) {
        EncodedLine source = source_.encode_as_it_stands_with_bytes(from), target = target_.encode_as_it_stands_with_bytes(to);
        for (Range& bytes : source.bytes) bytes = {bytes.begin + (from.data() - line.data()), bytes.end + (from.data() - line.data())};
        links = links_of(block, at, {line, source}, {to, target},  // words are those of the whole line, as where it is translated
                         source.ids.empty() ? 0 : std::ssize(source_.listed().prefix_with(tag, typed)));
        words = {std::move(source.ids), std::move(target.ids)};
      } else {
        words = {source_.encode_as_it_stands(from), target_.encode_as_it_stands(to)};
      }
      const EncodedPair pair = framed(std::move(words), source_, target_, tag, typed);
      if (!passes(pair, block.counts)) continue;
      block.links.push_back(std::move(links));
      block.tokens.insert(block.tokens.end(), pair.source.begin(), pair.source.end());
      block.tokens.insert(block.tokens.end(), pair.target.begin(), pair.target.end());
      block.lengths.push_back({static_cast<int32_t>(pair.source.size()), static_cast<int32_t>(pair.target.size())});
      block.weights.push_back(at.weight);
    }
  }

 private:
  std::vector<TokenLink> links_of(const Block& block, const TextPair& at, const LinkedSide& source, const LinkedSide& target,
                                  int64_t prefix) const {
    const CorpusFiles& files = data_.train[block.corpus];
    try {
      const Links links = parse_links(std::string_view(block.text).substr(at.begin + at.source + at.target, at.links));
      return token_links(links, data_.alignment_unit, source, target, prefix);
    } catch (const DataError& error) {
      throw DataError(fmt::format("{}:{}: {}; data.alignment-unit is {}", files.aligned_in_column() ? files.tsv : files.alignment, at.line,
                                  error.what(), unit_of(data_)));
    }
  }

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
  std::vector<std::vector<int32_t>> tags_;  // by corpus
};

void write_pairs(const Block& block, TokenStoreWriter& writer) {
  const int32_t* at = block.tokens.data();
  for (size_t i = 0; i < block.lengths.size(); ++i) {
    const PairLengths& lengths = block.lengths[i];
    const std::span<const int32_t> source(at, lengths.source), target(at + lengths.source, lengths.target);
    writer.append(source, target, block.weights[i], block.links[i]);
    at += lengths.source + lengths.target;
  }
}

}  // namespace

EncodedPair encode_pair(const Vocabulary& source_vocabulary, const Vocabulary& target_vocabulary, std::string_view source,
                        std::string_view target, std::span<const int32_t> tag) {
  const int32_t typed = source_vocabulary.take_tag(source);
  return framed({source_vocabulary.encode(source), target_vocabulary.encode(target)}, source_vocabulary, target_vocabulary, tag, typed);
}

std::vector<EncodedPair> encode_corpus(const CorpusFiles& files, const Vocabulary& source, const Vocabulary& target) {
  PairReader reader(files);
  std::vector<EncodedPair> pairs;
  std::string_view source_line, target_line;
  const std::vector<int32_t> tag = source.ids_of(files.tag, files.name());
  while (reader.next(source_line, target_line)) pairs.push_back(encode_pair(source, target, source_line, target_line, tag));
  return pairs;
}

void tokenize(const DataOptions& data, const Vocabulary& source, const Vocabulary& target, const StoreBuild& build,
              const std::vector<std::optional<ShardFacts>>& done, TokenStoreWriter& writer) {
  BlockReader reader(data, build.shard_pairs, done);
  const Encoder encoder(data, source, target);
  TaskProgress progress("data", build.say);
  const auto all_bytes = static_cast<double>(std::max<uint64_t>(1, corpus_bytes(data)));
  FilterCounts shard;
  int64_t pairs = 0;
  const auto take = [&](Block& block) {
    const double fraction = static_cast<double>(block.bytes_read) / all_bytes;
    if (block.done) {
      writer.keep_shard(*block.done);
      pairs += block.done->counts.total;
      progress.estimate_from(fraction);
    } else {
      write_pairs(block, writer);
      shard += block.counts;
      pairs += block.counts.total;
      if (block.ends_corpus) writer.end_corpus(std::exchange(shard, {}));
      if (block.ends_shard) writer.end_shard(std::exchange(shard, {}));
    }
    if (progress.due()) progress.tell(fraction, fmt::format("{} pairs tokenised", pairs));
  };
  const size_t blocks = 4 + 2 * static_cast<size_t>(std::max(build.threads, 1));  // in flight; each a few MB at most
  run_in_order<Block>({.make = [&](Block& block) { return reader.read(block); },  //
                       .work = [&](Block& block) { encoder.encode(block); },
                       .take = take},
                      build.threads, blocks);
  writer.finish();
}

uint64_t token_fingerprint(const DataOptions& data, const Vocabulary& source, const Vocabulary& target) {
  std::string facts =
      fmt::format("starling tokens 2\n{:016x} {:016x}\n{} {}\n", source.hash(), target.hash(), data.max_length, data.max_ratio);
  for (const CorpusFiles& files : data.train) {
    if (files.tsv.empty()) {
      facts += "pair\n" + facts_of_file(files.source) + facts_of_file(files.target);
    } else {
      facts += "tsv\n" + facts_of_file(files.tsv);
      if (is_memory(files.tsv)) facts += fmt::format("{} {}\n", files.source_language, files.target_language);
    }
    if (!files.tag.empty()) facts += "tag\n" + files.tag + "\n";
    if (!files.sentence_weights.empty()) facts += "weights\n" + facts_of_file(files.sentence_weights);
    if (files.alignment.empty()) continue;
    facts += fmt::format("links of {}\n", unit_of(data));
    if (!files.aligned_in_column()) facts += facts_of_file(files.alignment);
  }
  return vocabulary_format::hash(facts);
}

namespace {

// Returns the error's text without its advice, which does not apply here.
std::string cause(const std::exception& error) {
  const std::string what = error.what();
  return what.substr(0, what.find(';'));
}

}  // namespace

TokenStore TokenStore::open_or_build(FileSystem& files, const std::string& directory, const DataOptions& data, const Vocabulary& source,
                                     const Vocabulary& target, const StoreBuild& build) {
  check_options(data);
  const uint64_t fingerprint = token_fingerprint(data, source, target);
  std::string defect;
  try {
    if (look(files, directory, data, source, target) != StoreState::other) {
      TokenStore store = open(files, directory, build.threads);
      store.reused_ = store.fingerprint() == fingerprint;
      if (store.reused_) return store;
    }
  } catch (const DataError& error) {
    defect = cause(error);
  } catch (const IoError&) {  // not there
  }
  require_own(files, directory);
  if (!build.checked) check_corpora(data, build.threads, build.say);
  if (!defect.empty() && build.say) build.say(fmt::format("data: {}; rebuilding the damaged parts from the text", defect));
  const auto done = verified_shards(files, directory, fingerprint, build.threads);
  int64_t pairs = 0;
  for (const auto& shard : done) pairs += shard ? shard->counts.total : 0;
  if (pairs > 0 && build.say) build.say(fmt::format("data: reusing the intact tokens of {} pairs; tokenising the rest", pairs));
  {
    const auto any = [&](std::string CorpusFiles::*fact) {
      return std::any_of(data.train.begin(), data.train.end(), [&](const CorpusFiles& c) { return !(c.*fact).empty(); });
    };
    const uint32_t with = (any(&CorpusFiles::sentence_weights) ? kWithWeights : 0) + (any(&CorpusFiles::alignment) ? kWithLinks : 0);
    TokenStoreWriter writer(files, directory, fingerprint, source.size(), target.size(), kTokenStoreVersion + with);
    tokenize(data, source, target, build, done, writer);
  }
  return open(files, directory, build.threads);
}

}  // namespace starling
