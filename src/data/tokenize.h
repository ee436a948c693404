// Converts text to a token store: one thread reads, several tokenise and filter, and the caller's thread writes in the order of the text.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
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

/// Encodes both sides as if they were to be translated, each with its vocabulary's end of sentence; `tag` stands in front of the source. No
/// filter is applied: a blank line becomes end of sentence alone.
EncodedPair encode_pair(const Vocabulary& source_vocabulary, const Vocabulary& target_vocabulary, std::string_view source,
                        std::string_view target, std::span<const int32_t> tag = {});

/// Encodes all pairs of a corpus, unfiltered and in order. Throws like PairReader.
std::vector<EncodedPair> encode_corpus(const CorpusFiles& files, const Vocabulary& source, const Vocabulary& target);

/// Tokenises all corpora (with encode_as_it_stands) into `writer` and finishes it; the bytes do not depend on the number of threads. Shards
/// in `done`, by number, are reused.
void tokenize(const DataOptions& data, const Vocabulary& source, const Vocabulary& target, const StoreBuild& build,
              const std::vector<std::optional<ShardFacts>>& done, TokenStoreWriter& writer);

/// Hashes everything that a token store depends on: the files' paths, sizes and modification times, their tags, the vocabularies, the
/// filters.
uint64_t token_fingerprint(const DataOptions& data, const Vocabulary& source, const Vocabulary& target);

}  // namespace starling
