// The whole configuration of a training run: one struct per section of the YAML file, with the defaults in one place.
// Sections that other folders own (data, model, optimizer) are those folders' own option structs; this file only names their keys.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "backend/device_choice.h"
#include "comm/mesh.h"
#include "config/config.h"
#include "data/corpus.h"
#include "decode/beam_search.h"
#include "models/config.h"
#include "optim/options.h"
#include "replica/refine.h"
#include "strategies/options.h"
#include "text/languages.h"
#include "text/vocabulary.h"

namespace starling {

template <class Visitor>
void visit(Visitor& v, CorpusFiles& c) {
  v.field("source", c.source, "source text, one sentence a line; plain, .gz or .zst");
  v.field("target", c.target, "target text, one sentence a line; plain, .gz or .zst");
  v.field("tsv", c.tsv, "in place of source and target: one file, source and target separated by a tab");
  v.field("weight", c.weight, "how often an epoch shows a sentence of this corpus, on average", 0.0, 10000.0);
}

struct VocabConfig {
  std::string source, target;  // empty: inside the run directory
  bool joint = true;
  VocabularyOptions training;  // its seed is train.seed
};
template <class Visitor>
void visit(Visitor& v, VocabConfig& c) {
  v.field("source", c.source,
          "SentencePiece model of the source side (of both when joint); trained if the file is missing; empty = in the run directory");
  v.field("target", c.target, "SentencePiece model of the target side when not joint; empty = in the run directory");
  v.field("joint", c.joint, "one vocabulary for both sides");
  v.field("size", c.training.size, "pieces", 16, 1000000);
  v.choice("type", c.training.type, {"unigram", "bpe"}, "kind of subword model");
  v.choice("normalization", c.training.normalization, {"spaces", "identity", "nfkc", "nmt_nfkc", "nfkc_cf", "nmt_nfkc_cf"},
           "what happens to text, also of translations, before it is cut into pieces: spaces = odd spaces and control characters only, "
           "the others are SentencePiece's; decided when the vocabulary is trained");
  v.field("sample-lines", c.training.sample_lines,
          "different lines that the vocabulary is trained on, a seeded sample weighted by their counts; 0 = 40 MB of text, or less where "
          "memory is short",
          0, 1000000000);
  v.field("character-coverage", c.training.character_coverage, "share of the characters that get a piece of their own", 0.98, 1.0);
}

enum class Objective : uint8_t { likelihood, mixed };
constexpr auto words(Objective) { return std::array{"likelihood", "mixed"}; }

struct TrainConfig {
  std::string output = "run";
  std::string initial_model;  // that a new run starts from; empty: random weights
  bool restart = false;       // for one start: what cannot be continued is set aside
  Objective objective = Objective::likelihood;
  uint64_t seed = 1;
  int64_t batch_tokens = 4000;     // target tokens an update, over all micro-batches
  int64_t micro_batch_tokens = 0;  // target tokens computed at once; 0: chosen to fit
  OptimizerOptions optimizer;
  double label_smoothing = 0.1;
  double r_drop = 0;                     // R-Drop's alpha, 0: off
  double r_drop_from = 0;                // share of the run's updates before it begins
  double clip_start = 8;                 // bound of the states at the first update; model.clip at the last of clip_steps
  int64_t clip_steps = 0;                // 0: max_steps, or the default of step_limit()
  std::string precision = "auto";        // auto | bf16 | f32
  std::string device = "auto";           // backend/device_choice.h
  int threads = 0;                       // 0: all cores of the affinity mask
  int64_t max_steps = 0;                 // updates, 0: see step_limit()
  int64_t max_tokens = 0;                // target tokens, 0: off
  int64_t max_epochs = 0;                // 0: off
  double max_minutes = 0;                // wall clock, 0: off
  int64_t warmup_tokens = 0;             // 0: optimizer.warmup updates
  int64_t beta2_tokens = 0;              // 0: optimizer.beta2
  std::vector<double> batch_doubles_at;  // shares of the run
  int64_t batch_follows_noise = 0;       // target tokens that it grows to at most, 0: off
  double batch_growth_exponent = 0.5;    // of the rate, by the batch
};
constexpr int64_t kNoStepLimit = 1000000000000;
constexpr double kMostMinutes = 1e9;
template <class Visitor>
void visit(Visitor& v, TrainConfig& c) {
  v.field("output", c.output, "run directory: checkpoints, vocabulary, logs, model");
  v.field("initial-model", c.initial_model,
          "a model or run directory that a new run starts from: weights, architecture and vocabulary (docs/guides/fine-tuning.md); a run "
          "that has a "
          "checkpoint continues that");
  v.field("restart", c.restart,
          "for one start: a run directory with a best model or a record of updates but no usable checkpoint begins anew, and what is there "
          "is kept in before-restart");
  v.choice("objective", c.objective,
           "what is maximised: the likelihood of the references, or a mixture of it with the expected GLEU of sampled translations "
           "(section refine), without label smoothing");
  v.field("seed", c.seed, "seed of initial weights, data order, dropout and vocabulary sample");
  v.field("batch-tokens", c.batch_tokens, "target tokens an update, of all workers together (but see strategy.batch)", 1, 100000000);
  v.numbers("batch-doubles-at", c.batch_doubles_at,
            "shares of the run, in tokens, at each of which the batch becomes twice as large (docs/guides/optimizers.md); the run ends by "
            "max-tokens or max-epochs",
            0.0, 1.0);
  v.field("batch-follows-noise", c.batch_follows_noise,
          "the batch doubles whenever the gradient's noise scale is four times as large, up to so many target tokens; 0 = off", 0,
          100000000);
  v.field("batch-growth-exponent", c.batch_growth_exponent,
          "a batch that has grown k times as large has the learning rate times k to the power of this; 0 = as it is", 0.0, 1.0);
  v.field("micro-batch-tokens", c.micro_batch_tokens,
          "target tokens computed at once, gradients are accumulated; 0 = chosen to fit; does not change the result beyond rounding", 0,
          100000000);
  visit(v, c.optimizer);
  v.field("warmup-tokens", c.warmup_tokens, "in place of warmup: linear warm-up, target tokens of all workers; 0 = off", 0, 1000000000000);
  v.field("beta2-tokens", c.beta2_tokens,
          "in place of beta2: target tokens of all workers after which the second moment has forgotten half; 0 = off", 0, 1000000000000)
      .needs("train.optimizer", {OptimizerKind::adam, OptimizerKind::adamw, OptimizerKind::muon});
  v.field("label-smoothing", c.label_smoothing, "probability mass spread over the whole vocabulary", 0.0, 0.99);
  v.field(
      "r-drop", c.r_drop,
      "passes each sentence twice with different dropout, and draws the two distributions of each token together with this factor (alpha "
      "of R-Drop; docs/guides/optimizers.md): twice the time; 1 to 5 is usual, for small corpora; 0 = off",
      0.0, 100.0);
  v.field("r-drop-from", c.r_drop_from,
          "share of the run's updates that come before it; of train.max-steps, max-tokens or max-epochs, whichever ends the run first", 0.0,
          1.0)
      .needs("train.r-drop");
  v.field("clip-start", c.clip_start, "the bound at the first update, from where it falls geometrically to model.clip", 0.0, 1000.0)
      .needs("model.clip");
  v.field("clip-steps", c.clip_steps, "updates until the bound is model.clip; 0 = max-steps, or 100000 where that is 0", 0, 1000000000000)
      .needs("model.clip");
  v.choice("precision", c.precision, {"auto", "bf16", "f32"},
           "of matrix products; weights are f32; auto = bf16 on cards and where the processor has it");
  v.field("device", c.device, kDeviceHelp);
  v.field("threads", c.threads, "computing threads; 0 = all cores this process may use", 0, 4096);
  v.field("max-steps", c.max_steps,
          "stop after so many updates; 0 = at the max-tokens, max-epochs or max-minutes that are given, or, without any, after 100000", 0,
          kNoStepLimit);
  v.field("max-tokens", c.max_tokens, "stop after so many target tokens of all workers, in full batches; 0 = off", 0, 1000000000000000);
  v.field("max-epochs", c.max_epochs, "stop after so many passes over the data; 0 = off", 0, 1000000000);
  v.field("max-minutes", c.max_minutes, "stop after so many minutes of wall clock, resumed runs included; 0 = off", 0.0, kMostMinutes);
}

struct ValidConfig {
  std::string source, target;  // both empty: no validation
  int64_t every = 0;           // updates, 0: see distances() in due.h
  std::vector<std::string> metrics = {"cross-entropy", "bleu", "chrf"};
  std::string tokenize = "auto";  // see metrics/tokenizer_choice.h
  SearchOptions search;           // see search_defaults() for presets
  int64_t early_stopping = 0;     // validations without improvement, 0: off
  std::string early_stopping_metric = "first";
  int64_t batch_tokens = 4000;

  // Whether validation is asked for.
  bool enabled() const { return !source.empty() && !metrics.empty(); }
  // The metric that decides about "best" and early stopping; "" when there are no metrics.
  std::string deciding_metric() const {
    if (early_stopping_metric != "first") return early_stopping_metric;
    return metrics.empty() ? "" : metrics.front();
  }
};
template <class Visitor>
void visit(Visitor& v, ValidConfig& c) {
  v.field("source", c.source, "source text for validation; empty = no validation");
  v.field("target", c.target, "its reference translation");
  v.field("every", c.every,
          "updates between two validations; 0 = a tenth of the run, in updates or minutes, and 1000 at most; of a run in minutes they take "
          "a quarter at most",
          0, 1000000000);
  v.choice("metrics", c.metrics, {"cross-entropy", "bleu", "chrf", "chrf++", "ter", "gleu"},
           "what is measured: cross-entropy per target token (nats), the others on one decoding, as raw text");
  v.field(
      "tokenize", c.tokenize,
      "tokenizer of bleu and gleu: 13a, intl, char, zh, ja-mecab, none, spm:FILE (a SentencePiece model); auto = by the references, 13a "
      "where words have spaces between them");
  visit(v, c.search);
  v.field("early-stopping", c.early_stopping,
          "stop after so many validations in a row in which none of metrics has improved; 0 = off; a constant metric stops nothing", 0,
          1000000);
  v.choice("early-stopping-metric", c.early_stopping_metric, {"first", "cross-entropy", "bleu", "chrf", "chrf++", "ter", "gleu"},
           "metric that decides about the best checkpoint, ties are left to the others in their order; first = the first of metrics");
  v.field("batch-tokens", c.batch_tokens, "target tokens computed at once in validation", 1, 100000000);
}

struct CheckpointConfig {
  int64_t every = 0;   // updates, 0: see distances() in due.h
  double minutes = 0;  // 0: off
  int64_t keep = 3;
};
template <class Visitor>
void visit(Visitor& v, CheckpointConfig& c) {
  v.field("every", c.every,
          "updates between two checkpoints; 0 = a tenth of the run, in updates or minutes, and 1000 updates or 30 minutes at most", 0,
          1000000000);
  v.field("minutes", c.minutes, "minutes after which a checkpoint follows the one before it, whatever every says; 0 = off", 0.0,
          kMostMinutes);
  v.field("keep", c.keep, "most recent checkpoints that are kept, besides the best", 1, 1000000);
}

struct LogConfig {
  int64_t every = 0;  // updates, 0: see distances() in due.h
  std::string format = "starling";
  std::string progress = "auto";  // auto | always | never
};
template <class Visitor>
void visit(Visitor& v, LogConfig& c) {
  v.field("every", c.every,
          "updates between two log lines; 0 = a tenth of the run, in updates, or a twentieth in minutes, and 100 updates at most", 0,
          1000000000);
  v.choice("format", c.format, {"starling"}, "format of the log lines");
  v.choice("progress", c.progress, {"auto", "always", "never"}, "the live line; auto = when the output is a terminal");
}

struct Config {
  // No key: what load_run_config chose, "section.key" and value, and why, for the log.
  std::vector<std::pair<std::string, std::string>> chosen;
  std::string chosen_for;
  // No key: "section.key" of the keys that the file or an override gives, and of what was chosen.
  std::set<std::string> named;
  DataOptions data;
  Languages languages;  // of section data
  VocabConfig vocab;
  ModelConfig model;
  TrainConfig train;
  RefineOptions refine;
  StrategyOptions strategy;
  ParallelOptions parallel;
  ValidConfig valid;
  CheckpointConfig checkpoint;
  LogConfig log;
};

// One command-line override: "section.key" and the text of its value.
using Override = std::pair<std::string, std::string>;

// The text that the file or the overrides give a key, if they do.
using GivenText = std::function<std::optional<std::string>(const std::string& section, const std::string& key)>;
// Sets what the values begin with before any is read; may be empty.
using Basis = std::function<void(const GivenText& given, Config& config)>;

// Defaults, then model.preset with the search of its family, then the file (none if `path` is ""), then the overrides. Throws IoError when
// the file cannot be read and ConfigError for everything wrong in it or in the combination of values. A configuration without training data
// passes: see require_data. `basis` comes after the presets.
Config load_config(const std::string& path, const std::vector<Override>& overrides = {}, const Basis& basis = {});

// The same from text; `file` is the name used in messages.
Config parse_config(std::string_view text, const std::string& file, const std::vector<Override>& overrides = {}, const Basis& basis = {});

// The configuration that a run has written down; keys may be where an older version had them.
Config load_record(const std::string& path);

// Sets the model of a preset, and the search that was published with its family.
void set_preset(const std::string& name, Config& config);

// ConfigError unless the configuration names training data that can be meant.
void require_data(const Config& config);

// YAML that reads back to the same Config: every key with its help as a comment, or only what differs from the defaults and what is named,
// since the corpus would choose a value for a key that is left out.
std::string dump_config(const Config& config, bool full);

// What differs from the defaults, as YAML: equal for configurations that mean the same, whichever keys are named.
std::string config_identity(const Config& config);

// All keys, a line each: "section.key: value"; of lists "data.train.0.source: value".
std::vector<std::string> config_lines(const Config& config);

// The update that train.max-steps ends a run at; kNoStepLimit where it is left to other limits.
int64_t step_limit(const TrainConfig& config);

// Whether a limit is given that ends a run, in updates, tokens, epochs or minutes.
bool has_limit(const TrainConfig& config);

// Keys that are set and do nothing without another, a sentence each; those of sections model and strategy are refused before.
std::vector<std::string> idle_keys(const Config& config);

// The bound of the model's states at an update (counted from 1), from train.clip-start to model.clip; 0: none.
double state_clip(const Config& config, int64_t step);

// Every "section.key".
std::vector<std::string> all_config_names();

// All keys with help, allowed values and defaults: for `starling train --help-all`, and as the tables of docs/reference/config.md.
std::string config_reference();
// Those that most people set, with examples: for `starling train --help`.
std::string everyday_reference();
std::string config_reference_markdown();

}  // namespace starling
