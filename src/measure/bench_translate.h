// `starling bench translate`: speed of decoding in large batches and of single sentences.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "decode/model_directory.h"

namespace starling {

struct BenchTranslateOptions {
  std::string model;  // model directory; empty: untrained weights of `config`
  ModelConfig config;
  std::vector<std::string> sources;  // raw text
  int64_t vocabulary = 8000;         // pieces of the vocabulary that is trained on the sources when there is no model
  std::vector<int64_t> beams{1, 4};
  std::function<SearchOptions(SearchOptions)> search = std::identity{};  // the model's or its family's search, changed
  int64_t batch_sentences = 64;
  int64_t output_length = 0;  // every translation has exactly this many tokens; 0: as the model ends (untrained: source length)
  std::vector<std::string> precisions{"auto"};  // auto, bf16, f32, int8; measured one after the other
  int threads = 0;
  std::string device = "auto";
  int64_t latency_sentences = 100;  // sentences translated one by one, on one thread
};

struct BenchTranslateRow {
  std::string precision;  // what "auto" came to
  int64_t beam = 0;
  double tokens_per_second = 0, sentences_per_second = 0;  // batches, all threads
  double single_tokens_per_second = 0;                     // one by one, one thread
  double latency_p50_ms = 0, latency_p95_ms = 0;
  // Time of the same matrix products alone on one thread, over the processor time of all; on a card over the time of translating.
  double product_share = 0, single_product_share = 0;
  double speedup = 1, single_speedup = 1;  // tokens per second over those of the first precision with this beam
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
