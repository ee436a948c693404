// The demo corpus: English-German sentence pairs made by a grammar, so that `make demo` needs no download.
// A pair is a pure function of (seed, index); the English sentence determines the German one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace starling {

struct SentencePair {
  std::string source, target;  // English, German
};

// The pair number `index` of the stream `seed`.
SentencePair demo_sentence(uint64_t seed, uint64_t index);

// The name of the template that made that pair, and all names there are.
std::string_view demo_template(uint64_t seed, uint64_t index);
std::span<const std::string_view> demo_template_names();

// Which file a source sentence belongs to: decided by a hash of the sentence alone, so that no seed puts a test sentence into train.
enum class DemoSplit : uint8_t { train, valid, test };
DemoSplit demo_split(std::string_view source);

// Writes {train,valid,test}.{en,de} under `directory` (made if missing), every source sentence once; IoError if it cannot.
void write_demo_corpus(const std::filesystem::path& directory, uint64_t seed, int64_t train_count, int64_t valid_count, int64_t test_count);

}  // namespace starling
