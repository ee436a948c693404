// `starling bench translate`: decoding speed in large batches and for single sentences.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "decode/model_directory.h"

namespace starling {

struct BenchTranslateOptions {
  std::string model;  // model directory; empty: untrained weights with architecture `config`
  ModelConfig config;
  std::vector<std::string> sources;  // raw text
  int64_t vocabulary = 8000;         // without a model: pieces of the vocabulary that is trained on the sources
  std::vector<int64_t> beams{1, 4};
  std::function<SearchOptions(SearchOptions)> search = std::identity{};  // changes the search settings of the model or its family
  int64_t batch_sentences = 64;
  int64_t output_length = 0;  // tokens that every translation has; 0: as the model decides (untrained: the source's length)
  std::vector<std::string> precisions{"auto"};  // auto, bf16, f32 or int8, measured one after the other
  int threads = 0;
  std::string device = "auto";
  int64_t latency_sentences = 100;  // sentences translated one by one, on one thread
};

struct BenchTranslateRow {
  std::string precision;  // "auto" resolved
  int64_t beam = 0;
  double tokens_per_second = 0, sentences_per_second = 0;  // in batches, on all threads
  double single_tokens_per_second = 0;                     // one by one, on one thread
  double latency_p50_ms = 0, latency_p95_ms = 0;
  // Time of the same matrix products alone on one thread, divided by the processor time of all of translating; on a card, by its elapsed
  // time.
  double product_share = 0, single_product_share = 0;
  double speedup = 1, single_speedup = 1;  // tokens/s relative to the first precision with this beam
};

struct BenchTranslateResult {
  std::string machine;
  std::string model;
  int64_t sentences = 0;
  std::vector<BenchTranslateRow> rows;  // by beam, then by precision
  int64_t peak_bytes = 0;
};

BenchTranslateResult bench_translate(const BenchTranslateOptions& options);

}  // namespace starling
