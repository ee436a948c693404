// From text to a token store: one thread reads, several cut into pieces and filter, the caller's writes in the order of the text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/corpus.h"
#include "data/token_store.h"
#include "text/vocabulary.h"

namespace starling {

struct EncodedPair {
  std::vector<int32_t> source, target;  // both end with end of sentence
};

/// Pieces of both sides as of text to be translated, each with its vocabulary's end of sentence. No filter is applied: a blank line is end
/// of sentence alone.
EncodedPair encode_pair(const Vocabulary& source_vocabulary, const Vocabulary& target_vocabulary, std::string_view source,
                        std::string_view target);

/// All pairs of a corpus, unfiltered and in order: for validation sets. Throws like PairReader.
std::vector<EncodedPair> encode_corpus(const CorpusFiles& files, const Vocabulary& source, const Vocabulary& target);

/// Tokenises all corpora, as they stand, into `writer` and finishes it; the bytes do not depend on the threads. Shards in `done`, by
/// number, are taken as they are.
void tokenize(const DataOptions& data, const Vocabulary& source, const Vocabulary& target, const StoreBuild& build,
              const std::vector<std::optional<ShardFacts>>& done, TokenStoreWriter& writer);

/// What a token store depends on, as a hash: the files' paths, sizes and times of change, the vocabularies, the filters.
uint64_t token_fingerprint(const DataOptions& data, const Vocabulary& source, const Vocabulary& target);

}  // namespace starling
