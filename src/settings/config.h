// The whole configuration of a training run: one struct per section of the YAML file, with all defaults in one place.
// Sections that belong to other folders (data, model, optimizer) use those folders' option structs; this file only names their keys.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "backend/device_choice.h"
#include "base/files.h"
#include "cleaning/options.h"
#include "comm/mesh.h"
#include "config/config.h"
#include "data/corpus.h"
#include "decode/beam_search.h"
#include "guard/options.h"
#include "models/config.h"
#include "optim/options.h"
#include "replica/refine.h"
#include "strategies/options.h"
#include "text/languages.h"
#include "text/vocabulary.h"

namespace starling {

template <class Visitor>
void visit(Visitor& v, CorpusFiles& c) {
  v.field("source", c.source, "source text, one sentence per line; plain, .gz or .zst");
  v.field("target", c.target, "target text, one sentence per line; plain, .gz or .zst");
  v.field("tsv", c.tsv, "in place of source and target: one file, source and target separated by a tab; or a .tmx or .csv file");
  v.field("weight", c.weight, "how often an epoch shows a sentence of this corpus, on average", 0.0, 10000.0);
  v.numbers("weights", c.weights, "its weight in each stage of a curriculum (data.stages); empty = weight in all of them", 0.0, 10000.0);
  v.field("sentence-weights", c.sentence_weights,
          "a file with a number for each pair, one per line, by which its loss is multiplied; plain, .gz or .zst; empty = 1 for all");
  v.field("scores", c.scores,
          "a file with a number for each pair, one per line, higher for better ones, by which `starling clean` chooses (clean.min-score, "
          "clean.best-share); training does not read it; empty = none");
  v.field("clean", c.clean,
          "keys of the section clean with other values for this corpus, such as [language=false, max-ratio=5]; empty = as for all");
  v.field("alignment", c.alignment,
          "a file with the links of each pair, one line per pair, as fast_align writes them (0-0 1-2), along which attention is guided "
          "(train.guided-alignment); column = the third column of the tsv; empty = none");
  v.field("source-language", c.source_language, "code of the corpus's source language; empty = data.source-language");
  v.field("target-language", c.target_language,
          "code of its target language; empty = data.target-language; corpora of several make a model for several directions");
  v.field("tag", c.tag,
          "pieces of the vocabulary, separated by spaces, put in front of each source sentence; empty = none, or >>CODE<< if there are "
          "several target languages");
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
           "normalisation of text, and so of translations, before it is split into pieces: spaces = only unusual spaces and control "
           "characters, the others are SentencePiece's; fixed when the vocabulary is trained");
  v.field("sample-lines", c.training.sample_lines,
          "different lines that the vocabulary is trained on, a seeded sample weighted by their counts; 0 = 40 MB of text, or less where "
          "memory is short",
          0, 1000000000);
  v.field("character-coverage", c.training.character_coverage, "share of the characters that get a piece of their own", 0.98, 1.0);
  v.field("byte-fallback", c.training.byte_fallback,
          "characters that get no piece become pieces of their bytes, so that nothing is unknown; takes 256 of the pieces");
  v.field("split-digits", c.training.split_digits, "every digit is a piece of its own");
  v.field("user-defined-symbols", c.training.whole,
          "texts that are always one piece of their own, such as placeholders; without commas and spaces");
}

enum class Objective : uint8_t { likelihood, mixed };
constexpr auto words(Objective) { return std::array{"likelihood", "mixed"}; }

struct TrainConfig {
  std::string output = "run";
  std::string initial_model;  // the model that a new run starts from; empty: random weights
  bool restart = false;       // for one start: sets aside a run that cannot be resumed
  Objective objective = Objective::likelihood;
  uint64_t seed = 1;
  int64_t batch_tokens = 4000;     // target tokens per update, over all micro-batches
  int64_t micro_batch_tokens = 0;  // target tokens computed at once; 0: chosen to fit
  OptimizerOptions optimizer;
  double label_smoothing = 0.1;
  double guided_alignment = 0.1;         // factor of the loss that guides attention along the corpora's links, where they have any; 0: off
  double r_drop = 0;                     // R-Drop's alpha, 0: off
  double r_drop_from = 0;                // share of the run's updates before R-Drop begins
  double clip_start = 8;                 // bound of the states at the first update; falls to model.clip over clip_steps
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
  int64_t batch_follows_noise = 0;       // most target tokens of a batch that follows the noise scale, 0: off
  double batch_growth_exponent = 0.5;    // the learning rate grows with the batch to this power
};
constexpr int64_t kNoStepLimit = 1000000000000;
constexpr double kMostMinutes = 1e9;
template <class Visitor>
void visit(Visitor& v, TrainConfig& c) {
  v.field("output", c.output, "run directory: checkpoints, vocabulary, logs, model");
  v.field("initial-model", c.initial_model,
          "a model or run directory that a new run starts from: weights, architecture and vocabulary (docs/guides/fine-tuning.md); a run "
          "that has a checkpoint continues that");
  v.field("restart", c.restart,
          "for one start: if the run directory has a best model or a record of updates but no usable checkpoint, start from scratch and "
          "keep what was there in before-restart");
  v.choice("objective", c.objective,
           "what is maximised: the likelihood of the references, or a mixture of it with the expected GLEU of sampled translations "
           "(section refine), without label smoothing");
  v.field("seed", c.seed, "seed of initial weights, data order, dropout and vocabulary sample");
  v.field("batch-tokens", c.batch_tokens, "target tokens per update, over all workers (but see strategy.batch)", 1, 100000000);
  v.numbers(
      "batch-doubles-at", c.batch_doubles_at,
      "shares of the run, in tokens, at each of which the batch doubles (docs/guides/optimizers.md); the run must end by max-tokens or "
      "max-epochs",
      0.0, 1.0);
  v.field("batch-follows-noise", c.batch_follows_noise,
          "double the batch whenever the gradient's noise scale is four times the batch, up to this many target tokens; 0 = off", 0,
          100000000);
  v.field("batch-growth-exponent", c.batch_growth_exponent,
          "multiply the learning rate by k to this power when the batch has grown k-fold; 0 = leave it unchanged", 0.0, 1.0);
  v.field("micro-batch-tokens", c.micro_batch_tokens,
          "target tokens per micro-batch, with gradient accumulation; 0 = chosen to fit memory; changes the result only by rounding", 0,
          100000000);
  visit(v, c.optimizer);
  v.field("warmup-tokens", c.warmup_tokens, "in place of warmup: linear warm-up, target tokens of all workers; 0 = off", 0, 1000000000000);
  v.field("beta2-tokens", c.beta2_tokens,
          "in place of beta2: target tokens of all workers after which the second moment has forgotten half; 0 = off", 0, 1000000000000)
      .needs("train.optimizer", optimizers_with(&OptimizerTraits::adam));
  v.field("label-smoothing", c.label_smoothing, "probability mass spread over the whole vocabulary", 0.0, 0.99);
  v.field("guided-alignment", c.guided_alignment,
          "where a corpus has an alignment: the factor of a loss that makes one head of the decoder attend to the source tokens that a "
          "token is linked to (docs/guides/alignment.md); 0 = off",
          0.0, 100.0);
  v.field("r-drop", c.r_drop,
          "runs each sentence twice with different dropout and penalises the divergence of the two distributions of each token with this "
          "factor (alpha of R-Drop; docs/guides/optimizers.md): takes twice the time; 1 to 5 is usual, for small corpora; 0 = off",
          0.0, 100.0);
  v.field("r-drop-from", c.r_drop_from,
          "share of the run before R-Drop begins; of train.max-steps, max-tokens or max-epochs, whichever ends the run first", 0.0, 1.0)
      .needs("train.r-drop");
  v.field("clip-start", c.clip_start, "the bound at the first update, from where it falls geometrically to model.clip", 0.0, 1000.0)
      .needs("model.clip");
  v.field("clip-steps", c.clip_steps, "updates until the bound is model.clip; 0 = max-steps, or 100000 where that is 0", 0, 1000000000000)
      .needs("model.clip");
  v.choice("precision", c.precision, {"auto", "bf16", "f32"},
           "number format of matrix products; weights are f32; auto = bf16 on cards and on processors that multiply it faster than f32");
  v.field("device", c.device, kDeviceHelp);
  v.field("threads", c.threads, "computing threads; 0 = all cores this process may use", 0, 4096);
  v.field("max-steps", c.max_steps,
          "stop after this many updates; 0 = stop at max-tokens, max-epochs or max-minutes or, if none is given, after 100000", 0,
          kNoStepLimit);
  v.field("max-tokens", c.max_tokens, "stop after this many target tokens of all workers, in full batches; 0 = off", 0, 1000000000000000);
  v.field("max-epochs", c.max_epochs, "stop after this many passes over the data; 0 = off", 0, 1000000000);
  v.field("max-minutes", c.max_minutes, "stop after this many minutes of wall clock, resumed runs included; 0 = off", 0.0, kMostMinutes);
}

constexpr const char* kScriptMetric = "script";  // what valid.script prints; more is better

// A text to validate on.
struct ValidSet {
  std::string source, target;                    // files
  std::string source_language, target_language;  // codes; "": not said
  std::string tag;                               // pieces in front of each source
  // What reports call it: its direction and file, such as "en:de valid.en".
  std::string name() const { return (target_language.empty() ? "" : source_language + ":" + target_language + " ") + file_name(source); }
};
template <class Visitor>
void visit(Visitor& v, ValidSet& c) {
  v.field("source", c.source, "source text, one sentence per line");
  v.field("target", c.target, "its reference translation");
  v.field("source-language", c.source_language, "code of the source's language; empty = data.source-language");
  v.field("target-language", c.target_language, "code of the target's language; empty = data.target-language");
  v.field("tag", c.tag, "as data.train.0.tag");
}

struct ValidConfig {
  std::string source, target;  // the only text
  std::vector<ValidSet> sets;  // or one of each direction; with neither there is no validation
  int64_t every = 0;           // updates, 0: see distances() in run/post_update_actions.h
  std::vector<std::string> metrics = {"cross-entropy", "bleu", "chrf"};
  std::string tokenize = "auto";  // see metrics/tokenizer_choice.h
  std::string script;             // the metric kScriptMetric
  double script_minutes = 10;
  bool keep_translations = false;
  SearchOptions search;        // see search_defaults() for presets
  int64_t early_stopping = 0;  // validations without improvement, 0: off
  std::string early_stopping_metric = "first";
  int64_t batch_tokens = 4000;

  // Returns whether the configuration asks for validation.
  bool enabled() const { return (!source.empty() || !sets.empty()) && !metrics.empty(); }
  // Returns all texts.
  std::vector<ValidSet> texts() const { return sets.empty() && !source.empty() ? std::vector{ValidSet{source, target}} : sets; }
  // Returns the metric that selects the best model and decides early stopping; "" if there are no metrics.
  std::string deciding_metric() const {
    if (early_stopping_metric != "first") return early_stopping_metric;
    return metrics.empty() ? "" : metrics.front();
  }
};
template <class Visitor>
void visit(Visitor& v, ValidConfig& c) {
  v.field("source", c.source, "source text for validation; empty = no validation");
  v.field("target", c.target, "its reference translation");
  v.records(
      "sets", c.sets,
      "in place of source and target: a list of texts, of one direction each, for models with several directions; scores are their means");
  v.field("every", c.every,
          "updates between two validations; 0 = a tenth of the run, in updates or minutes, but at most 1000 updates; in a run limited by "
          "minutes, validations take at most a quarter of the time",
          0, 1000000000);
  v.choice("metrics", c.metrics, {"cross-entropy", "bleu", "chrf", "chrf++", "ter", "gleu", "script"},
           "what is measured: cross-entropy per target token (nats), the others on one decoding, as raw text; script = by valid.script");
  v.field(
      "script", c.script,
      "a shell command that scores translations, higher is better: its arguments are the files of the translations, the sources and the "
      "references, and it prints a number at the end of its last line; needs script among the metrics");
  v.field("script-minutes", c.script_minutes, "a script that runs longer is killed", 0.01, 10000.0).needs("valid.script");
  v.field("keep-translations", c.keep_translations,
          "keep the translations of each validation in the run directory, validations/UPDATE.txt");
  v.field("tokenize", c.tokenize,
          "tokenizer of bleu and gleu: 13a, intl, char, zh, ja-mecab, none, spm:FILE (a SentencePiece model); auto = chosen by the "
          "references, 13a where spaces separate words");
  visit(v, c.search);
  v.field("early-stopping", c.early_stopping,
          "stop after this many validations in a row without improvement in any of metrics; 0 = off; a constant metric never stops a run",
          0, 1000000);
  v.choice("early-stopping-metric", c.early_stopping_metric, {"first", "cross-entropy", "bleu", "chrf", "chrf++", "ter", "gleu", "script"},
           "metric that selects the best checkpoint; the others break ties, in their order; first = the first of metrics");
  v.field("batch-tokens", c.batch_tokens, "target tokens computed at once in validation", 1, 100000000);
}

struct CheckpointConfig {
  int64_t every = 0;   // updates, 0: see distances() in run/post_update_actions.h
  double minutes = 0;  // 0: off
  int64_t keep = 3;
  bool beside_training = true;
  std::string second_directory;
};
template <class Visitor>
void visit(Visitor& v, CheckpointConfig& c) {
  v.field("every", c.every,
          "updates between two checkpoints; 0 = a tenth of the run, in updates or minutes, but at most 1000 updates or 30 minutes", 0,
          1000000000);
  v.field("minutes", c.minutes, "longest time between two checkpoints, in minutes, whatever every says; 0 = off", 0.0, kMostMinutes);
  v.field("keep", c.keep, "most recent checkpoints that are kept, besides the best", 1, 1000000);
  v.field("beside-training", c.beside_training,
          "copy what a checkpoint needs, and write it while training goes on, where there is memory for the copy and all ranks see the run "
          "directory");
  v.field(
      "second-directory", c.second_directory,
      "directory, best on another disk, that keeps a copy of each checkpoint and of the best model under the run's name; a run whose own "
      "directory is lost continues from there");
}

struct LogConfig {
  int64_t every = 0;  // updates, 0: see distances() in run/post_update_actions.h
  std::string format = "starling";
  std::string progress = "auto";  // auto | always | never
  bool tensorboard = false;
};
template <class Visitor>
void visit(Visitor& v, LogConfig& c) {
  v.field("every", c.every,
          "updates between two log lines; 0 = a tenth of the run, in updates, or a twentieth in minutes, but at most 100 updates", 0,
          1000000000);
  v.choice("format", c.format, {"starling"}, "format of the log lines");
  v.choice("progress", c.progress, {"auto", "always", "never"}, "the live line; auto = when the output is a terminal");
  v.field("tensorboard", c.tensorboard,
          "also write the numbers of the log lines for TensorBoard: tensorboard --logdir RUN shows them; with fairseq's tags, train/loss, "
          "valid/bleu");
}

struct Config {
  // Not a key: what load_run_config (run/fine_tuning.h) chose, as "section.key" and value, and the reason, for the log.
  std::vector<std::pair<std::string, std::string>> chosen;
  std::string chosen_for;
  // Not a key: "section.key" of the keys that the file or an override gives, and of the chosen ones.
  std::set<std::string> named;
  DataOptions data;
  Languages languages;  // of section data
  CleanOptions clean;   // for the verb `clean`
  VocabConfig vocab;
  ModelConfig model;
  std::vector<std::string> model_for;  // key model.for: programs, as words
  TrainConfig train;
  RefineOptions refine;
  StrategyOptions strategy;
  ParallelOptions parallel;
  ValidConfig valid;
  CheckpointConfig checkpoint;
  GuardConfig guard;
  LogConfig log;
};

// One command-line override: "section.key" and the text of its value.
using Override = std::pair<std::string, std::string>;

// Returns the text that the file or the overrides give for a key, if any.
using GivenText = std::function<std::optional<std::string>(const std::string& section, const std::string& key)>;
// Sets initial values before any value is read; may be empty.
using Basis = std::function<void(const GivenText& given, Config& config)>;

// Applies, in this order, the defaults, model.preset with the search of its family, `basis`, the file (none if `path` is "") and the
// overrides. Throws IoError if the file cannot be read, ConfigError for anything wrong in it or in the combination of values. A
// configuration without training data is accepted: see require_data.
Config load_config(const std::string& path, const std::vector<Override>& overrides = {}, const Basis& basis = {});

// The same from text; `file` is the name used in messages.
Config parse_config(std::string_view text, const std::string& file, const std::vector<Override>& overrides = {}, const Basis& basis = {});

// Loads the configuration that a run has recorded; keys may be where an older version had them.
Config load_record(const std::string& path);

// Sets the model of a preset, and the search that was published with its family.
void set_preset(const std::string& name, Config& config);

// Throws ConfigError unless the configuration names valid training data. streams: as in check_options (data/corpus.h).
void require_data(const Config& config, bool streams = false);

// Whether a corpus has an alignment along which attention is guided.
bool guides_attention(const Config& config);

// Returns YAML that reads back to the same Config: every key with its help as a comment if `full`, otherwise the keys that differ from the
// defaults and those that are named (for an omitted key, the corpus would choose the value).
std::string dump_config(const Config& config, bool full);

// Returns what differs from the defaults as YAML: equal for equivalent configurations, whichever keys are named.
std::string config_identity(const Config& config);

// Returns all keys, one per line: "section.key: value", in lists "data.train.0.source: value".
std::vector<std::string> config_lines(const Config& config);

// Returns the update at which train.max-steps ends the run; kNoStepLimit if other limits end it.
int64_t step_limit(const TrainConfig& config);

// Returns whether any limit that ends a run is given, in updates, tokens, epochs or minutes.
bool has_limit(const TrainConfig& config);

// Returns a sentence for each key that is set but has no effect without another; those of sections model and strategy are refused earlier.
std::vector<std::string> idle_keys(const Config& config);

// Returns the bound of the model's states at an update (counted from 1), between train.clip-start and model.clip; 0: none.
double state_clip(const Config& config, int64_t step);

// Returns every "section.key".
std::vector<std::string> all_config_names();

// Returns all keys with help, allowed values and defaults, for `starling train --help-all`; config_reference_markdown() returns them as the
// tables of docs/reference/config.md.
std::string config_reference();
std::vector<ConfigKeyHelp> config_key_help();
// Returns the keys that most people set, with examples, for the help of a verb.
std::string everyday_reference(std::string_view verb);
std::string config_reference_markdown();

}  // namespace starling
