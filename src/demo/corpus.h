// The demo corpus: English-German sentence pairs that are part of the program, so that `make demo` needs no download. They are data,
// corpus.zst; a program once made them from templates, so that no text of anybody is in them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace starling {

struct SentencePair {
  std::string source, target;  // English, German
};

// How many pairs there are.
constexpr int64_t kDemoTrain = 25000, kDemoValid = 500, kDemoTest = 1000;

// All of them, no source sentence twice; unpacked by the first call.
struct DemoCorpus {
  std::vector<SentencePair> train, valid, test;
};
const DemoCorpus& demo_corpus();

// Writes {train,valid,test}.{en,de} under `directory` (made if missing), the first so many pairs of each; IoError if it cannot.
void write_demo_corpus(const std::filesystem::path& directory, int64_t train_count, int64_t valid_count, int64_t test_count);

}  // namespace starling
