// From text to a token store: reading, cutting into pieces on several threads, filtering, writing in the order of the text.
#pragma once

#include <cstdint>
#include <functional>
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

/// Pieces of both sides, each with its vocabulary's end of sentence. No filter is applied: a blank line is end of sentence alone.
EncodedPair encode_pair(const Vocabulary& source_vocabulary, const Vocabulary& target_vocabulary, std::string_view source,
                        std::string_view target);

/// All pairs of a corpus, unfiltered and in order: for validation sets. Throws like PairReader.
std::vector<EncodedPair> encode_corpus(const CorpusFiles& files, const Vocabulary& source, const Vocabulary& target);

/// Tokenises all corpora into `writer` and finishes it; the bytes do not depend on `threads`.
void tokenize(const DataOptions& data, const Vocabulary& source, const Vocabulary& target, int threads, TokenStoreWriter& writer,
              const std::function<void(int64_t pairs)>& progress = {});

/// What a token store depends on, as a hash: the files' paths, sizes and times of change, the vocabularies, the filters.
uint64_t token_fingerprint(const DataOptions& data, const Vocabulary& source, const Vocabulary& target);

}  // namespace starling
