// `starling quantize`: makes a model with 8-bit weights and measures what they cost. Quality and speed are measured on the same sentences
// in the same run; matrices that cost too much stay floats. docs/guides/quantization.md explains the report.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "base/task_progress.h"
#include "decode/model_directory.h"
#include "metrics/significance.h"

namespace starling {

struct QuantizeOptions {
  std::string model, output;              // model to read, model directory to write
  std::string source, target;             // files with the sentences to measure on
  std::string target_language;            // of a model of several
  std::string tokenize = "auto";          // of BLEU: see metrics/tokenizer_choice.h
  double max_bleu_loss = 0.2;             // points
  double max_log_perplexity_loss = 0.01;  // nats per target token
  int64_t beam = 0;                       // 0: the model's
  int64_t batch_sentences = 64;           // translated at once
  int64_t matrix_sentences = 200;         // sentences on which each matrix is measured alone
  int threads = 0;
  std::string device = "auto";
  bool force = false;  // write all matrices as integers if nothing meets the bounds
};

struct PrecisionScores {
  std::string name;              // "f32", "bf16", "int8", or "int8, all" when some matrices had to stay floats
  double bleu = 0;               // 0 to 100
  double log_perplexity = 0;     // cross-entropy of the references, nats per target token
  double tokens_per_second = 0;  // in translation
};

struct MatrixReport {
  std::string name;
  Shape shape;
  bool quantized = true;
  double cost = 0;  // log-perplexity with only this matrix as integers, minus that with floats
  // Set if the model bounds the inputs of the matrix:
  double input_bound = 0, utilisation = 0, saturated = 0;  // mean magnitude / bound; share of inputs beyond the bound
};

struct QuantizeResult {
  std::string machine, source, target;
  std::string tokenizer;  // of BLEU, as in signatures
  std::string model;      // name of the original directory, with that of its run
  int64_t step = 0;       // updates that it was trained for
  int64_t sentences = 0, target_tokens = 0, beam = 0;
  int64_t truncated = 0;                // sides cut at 1,000 tokens
  std::vector<PrecisionScores> scores;  // "f32" first, "int8" last
  ScoreInterval bleu_difference;        // int8 - f32
  std::vector<MatrixReport> matrices;
  bool within_bounds = false;
  bool written = false;
};

// Measures, chooses the precision of each matrix and, if the bounds hold or `force` is set, writes the directory. `progress` gets a line
// for each stage, `measured` the result before it is written; `screen` shows the progress of a long stage. Throws ConfigError if the model
// is quantised already or the output exists, DataError if the files do not belong together, and IoError, before anything is measured, if
// the output cannot be created.
QuantizeResult quantize_model(FileSystem& files, const QuantizeOptions& options, const std::function<void(const std::string&)>& progress,
                              const std::function<void(const QuantizeResult&)>& measured = {}, const TaskScreen& screen = {});

// Returns how many of the matrices that are still integers become floats before the next measurement, the most costly first: at least one,
// at most half. `costs` are their costs in descending order, `excess` is what must be gained. If costs give no answer (excess <= 0: only
// BLEU is too low; or nothing costs anything), returns an eighth.
size_t floats_of_step(std::span<const double> costs, double excess);

// Returns the content of quantization.json.
nlohmann::ordered_json quantization_report(const QuantizeOptions& options, const QuantizeResult& result);

}  // namespace starling
