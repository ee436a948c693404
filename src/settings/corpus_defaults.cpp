#include "settings/corpus_defaults.h"

#include <algorithm>
#include <cmath>

#include "base/counted.h"
#include "base/error.h"
#include "base/files.h"
#include "base/utf8.h"
#include "data/line_reader.h"
#include "data/pair_tables.h"
#include "data/text_stream.h"
#include "text/script.h"

namespace starling {
namespace {

constexpr int64_t kSmall = 100000;  // pairs
constexpr double kEpochs = 3;       // of warm-up; more would be a large part of a run of a few minutes

// Estimated characters per piece, ends of sentences included, with vocabularies of 8,000. LibreOffice's texts have 4.4 in German, 4.2 in
// Russian and 5.0 in Thai; without the other letters in them, its Chinese, Korean and Japanese texts have 1.4, 1.8 and 2.3.
constexpr double kLetters = 4.5, kSyllables = 1.6, kKana = 3;
constexpr size_t kSample = 1 << 20;  // bytes examined
constexpr double kCompression = 3;   // assumed for archives that cannot be read
constexpr int64_t kShareOfRun = 8;   // the warm-up takes at most one part in this many
constexpr int64_t kShortest = kShortestWarmup;

double pieces_of(char32_t c) {
  switch (script_of(c)) {
    case Script::kana:
      return 1 / kKana;
    case Script::han:
    case Script::hangul:
      return 1 / kSyllables;
    default:
      return 1 / kLetters;
  }
}

// Estimates from the characters at the beginning of a file; 0 if it is not a file. links: those in its last column do not count.
double estimated_pieces(FileSystem& files, const CorpusFiles& corpus, const std::string& path) {
  if (path.empty() || files.info(path).kind != FileKind::file) return 0;
  const bool links = corpus.aligned_in_column();
  const auto size = static_cast<double>(files.info(path).size);
  try {
    LineReader reader = path == corpus.tsv ? open_pairs(corpus) : LineReader(path);
    double pieces = 0;
    size_t seen = 0;
    for (std::string_view line;;) {
      const uint64_t read = reader.bytes_read();
      if (!reader.next(line)) return pieces;
      // When the reader begins another block, everything before it has been counted.
      if (seen >= kSample && reader.bytes_read() > read) return pieces * size / static_cast<double>(read);
      for (const char32_t c : decode_utf8(links ? line.substr(0, line.rfind('\t')) : line)) pieces += pieces_of(c);
      pieces += pieces_of('\n');
      seen += line.size() + 1;
    }
  } catch (const Error&) {  // reading the corpus will report it
    const bool packed = path.ends_with(".gz") || path.ends_with(".zst");
    return size * (packed ? kCompression : 1) / kLetters;
  }
}

// The defaults by the target tokens per epoch, in millions.
struct Choice {
  double below;
  const char* preset;
  int64_t vocabulary, batch;
  double dropout;
  double epochs;
};
constexpr Choice kChoices[] = {{0.15, "transformer-tiny", 4000, 500, 0.3, 100},
                               {5, "transformer-small", 8000, 2000, 0.3, 30},
                               {20, "transformer-base", 16000, 4000, 0.2, 20},
                               {200, "transformer-base", 32000, 8000, 0.1, 12},
                               {1e9, "transformer-base", 32000, 25000, 0.1, 6}};

const Choice& choice_for(double epoch) {
  const Choice* choice = kChoices;
  while (epoch >= choice->below * 1e6) ++choice;
  return *choice;
}

// Returns whether the known learning rates, which are for one update by all workers, apply here.
bool rates_fit(const Config& c) {
  const OptimizerOptions& o = c.train.optimizer;
  return traits_of(o.optimizer).adam && (o.schedule == RateSchedule::inverse_sqrt || has_end(o.schedule)) && c.train.warmup_tokens == 0 &&
         c.strategy.batch == BatchScope::global && c.strategy.rate_scaling == RateScaling::none;
}

}  // namespace

std::vector<std::string> keys_by_corpus() {
  return {"model.preset",   "vocab.size",          "model.dropout", "train.batch-tokens", "train.max-tokens",
          "train.schedule", "train.learning-rate", "train.warmup",  "train.warmup-share"};
}

double estimated_epoch(const Config& config) {
  const auto files = real_file_system();
  double pieces = 0;
  for (const CorpusFiles& corpus : config.data.train)
    if (!is_pipe(corpus.tsv))
      pieces += corpus.weight * (estimated_pieces(*files, corpus, corpus.target) + estimated_pieces(*files, corpus, corpus.tsv) / 2);
  return pieces;
}

namespace {

// Collects values for the keys that are open.
struct Choosing {
  const std::vector<std::string>& open;
  std::vector<Override> chosen = {};

  bool is_open(const std::string& key) const { return std::find(open.begin(), open.end(), key) != open.end(); }
  void choose(const std::string& key, const auto& value) {
    if (is_open(key)) chosen.emplace_back(key, fmt::format("{}", value));
  }
};

// Returns the updates of a run with batches of `batch` and epochs of `epoch` target tokens; kNoStepLimit: unknown.
int64_t updates_of_run(const TrainConfig& t, int64_t batch, double epoch, int64_t tokens) {
  int64_t updates = t.max_steps > 0 ? t.max_steps : kNoStepLimit;
  if (tokens > 0) updates = std::min(updates, tokens / batch);
  if (t.max_epochs > 0)
    updates = std::min(updates, static_cast<int64_t>(epoch / static_cast<double>(batch) * static_cast<double>(t.max_epochs)));
  return std::max<int64_t>(updates, 1);
}

// Chooses a schedule that ends with the run, if the workers can agree on the end.
void choose_schedule(const Config& config, Choosing& choosing) {
  const Family family = family_of(config.strategy);
  // Servers that count updates on their own cannot foresee an end in minutes; nor can workers that make updates of their own.
  if (family == Family::asynchronous || (config.train.max_minutes > 0 && family != Family::synchronous)) return;
  choosing.choose("train.schedule", "linear");
}

void choose_warmup_share(const Config& config, Choosing& choosing) {
  if (config.train.max_minutes > 0 && family_of(config.strategy) == Family::synchronous)
    choosing.choose("train.warmup-share", 1.0 / kShareOfRun);
}

// Of a text from a pipe only the run's own limit is known, which takes the place of its size; a run without one keeps the defaults, whose
// schedule needs no end.
std::vector<Override> choose_for_stream(const Config& config, const std::vector<std::string>& open) {
  constexpr double kUpdatesAMinute = 80;  // of small models on a few cores, for which the choice matters most
  const TrainConfig& t = config.train;
  if (t.max_tokens == 0 && t.max_steps == 0 && t.max_minutes == 0) return {};
  Choosing choosing{open};
  int64_t batch = t.batch_tokens;
  if (t.max_tokens > 0 && choosing.is_open("train.batch-tokens")) {
    const Choice* choice = kChoices;
    while (static_cast<double>(t.max_tokens) >= choice->below * 1e6 * choice->epochs) ++choice;
    batch = choice->batch;
    choosing.choose("train.batch-tokens", batch);
  }
  if (!rates_fit(config)) return choosing.chosen;
  choose_schedule(config, choosing);
  if (!choosing.is_open("train.warmup")) return choosing.chosen;  // a rate that is given has the same warm-up as any other
  const OptimizerOptions standard;
  int64_t updates = updates_of_run(t, batch, 0, t.max_tokens);
  if (t.max_minutes > 0) updates = std::min<int64_t>(updates, std::llround(kUpdatesAMinute * t.max_minutes));
  const int64_t longest = std::max<int64_t>(1, updates / kShareOfRun), warmup = std::clamp(longest, kShortest, standard.warmup);
  choosing.choose("train.warmup", t.max_minutes > 0 ? warmup : std::min(longest, warmup));  // minutes end it by train.warmup-share
  choosing.choose("train.learning-rate", fmt::format("{:.1e}", standard.learning_rate * std::sqrt(static_cast<double>(standard.warmup) /
                                                                                                  static_cast<double>(warmup))));
  choose_warmup_share(config, choosing);
  return choosing.chosen;
}

int64_t planned_tokens(double epochs, double epoch) { return static_cast<int64_t>(1e5 * std::ceil(epochs * epoch / 1e5)); }

}  // namespace

std::vector<Override> choose_by_corpus(const Config& config, const std::vector<std::string>& open) {
  const TrainConfig& t = config.train;
  if (open.empty() || !t.initial_model.empty() || t.objective != Objective::likelihood ||
      architecture_of(config.model.preset) != Architecture::transformer)
    return {};
  const double epoch = estimated_epoch(config);
  if (epoch == 0) return is_stream(config.data) ? choose_for_stream(config, open) : std::vector<Override>();
  Choosing choosing{open};
  const Choice& c = choice_for(epoch);
  choosing.choose("model.preset", c.preset);
  if (config.vocab.source.empty()) choosing.choose("vocab.size", c.vocabulary);
  choosing.choose("model.dropout", c.dropout);
  choosing.choose("train.batch-tokens", c.batch);
  choosing.choose("train.max-tokens", planned_tokens(c.epochs, epoch));
  if (!rates_fit(config)) return choosing.chosen;
  choose_schedule(config, choosing);
  if (!choosing.is_open("train.warmup")) return choosing.chosen;  // a rate that is given has the same warm-up as any other
  const OptimizerOptions standard;
  const int64_t batch = choosing.is_open("train.batch-tokens") ? c.batch : t.batch_tokens;
  const int64_t tokens = choosing.is_open("train.max-tokens") ? static_cast<int64_t>(c.epochs * epoch) : t.max_tokens;
  // A shorter warm-up needs a higher rate: alone it gains nothing.
  const int64_t longest = updates_of_run(t, batch, epoch, tokens) / kShareOfRun;
  const int64_t own = std::clamp<int64_t>(50 * std::llround(epoch / static_cast<double>(batch) / 50), kShortest, standard.warmup);
  const int64_t warmup = std::min(own, std::max(longest, kShortest));
  choosing.choose("train.warmup", std::min(warmup, std::max<int64_t>(1, longest)));
  choosing.choose("train.learning-rate", fmt::format("{:.1e}", standard.learning_rate * std::sqrt(static_cast<double>(standard.warmup) /
                                                                                                  static_cast<double>(warmup))));
  choose_warmup_share(config, choosing);
  return choosing.chosen;
}

namespace {

// Epochs of fine-tuning by the target tokens per epoch of the new text, in millions: the model knows the language already, and a few pairs
// are soon memorised.
struct TuningEpochs {
  double below, epochs;
};
constexpr TuningEpochs kTuningEpochs[] = {{0.02, 30}, {0.15, 10}, {5, 5}, {20, 3}, {200, 2}, {1e9, 1}};
constexpr double kUpdatesAnEpoch = 20;  // at least, as far as batches of kLeastBatch allow: fewer hardly change a model
constexpr int64_t kLeastBatch = 100;
// The moments begin at zero, and the second one needs some 50 updates with beta2 0.98; docs/guides/fine-tuning.md
constexpr int64_t kTuningWarmup = 50, kLongestTuningWarmup = 500;
// Shares of the peak rate that the model was trained with: docs/guides/fine-tuning.md
constexpr double kHighest = 0.2, kLowest = 0.1, kUnknownRate = 1e-4;

// Returns the rate to which the schedule of the model's own run would have fallen with the inverse square root of the updates, within those
// bounds.
double tuning_rate(const std::optional<EarlierTraining>& earlier) {
  if (!earlier) return kUnknownRate;
  const double fallen = std::sqrt(static_cast<double>(std::max<int64_t>(earlier->warmup, 1)) / static_cast<double>(earlier->updates));
  return earlier->learning_rate * std::clamp(fallen, kLowest, kHighest);
}

}  // namespace

std::vector<Override> choose_for_fine_tuning(const Config& config, const std::vector<std::string>& open,
                                             const std::optional<EarlierTraining>& earlier) {
  const TrainConfig& t = config.train;
  if (open.empty() || t.objective != Objective::likelihood) return {};
  if (!earlier && architecture_of(config.model.preset) != Architecture::transformer) return {};
  const double epoch = estimated_epoch(config);
  if (epoch == 0) return {};
  Choosing choosing{open};
  const auto own = std::clamp<int64_t>(50 * std::llround(epoch / kUpdatesAnEpoch / 50), kLeastBatch, choice_for(epoch).batch);
  const int64_t chosen_batch = earlier ? std::min(own, earlier->batch_tokens) : own;
  choosing.choose("train.batch-tokens", chosen_batch);
  const TuningEpochs* length = kTuningEpochs;
  while (epoch >= length->below * 1e6) ++length;
  const int64_t batch = choosing.is_open("train.batch-tokens") ? chosen_batch : t.batch_tokens;
  const int64_t planned = std::max<int64_t>(batch, std::llround(length->epochs * epoch / static_cast<double>(batch)) * batch);
  choosing.choose("train.max-tokens", planned);
  if (!rates_fit(config)) return choosing.chosen;
  choose_schedule(config, choosing);
  const int64_t updates = updates_of_run(t, batch, epoch, choosing.is_open("train.max-tokens") ? planned : t.max_tokens);
  const int64_t least = std::max<int64_t>(1, std::min(kTuningWarmup, updates / 4));
  choosing.choose("train.warmup", std::clamp(updates / kShareOfRun, least, std::max(least, kLongestTuningWarmup)));
  choosing.choose("train.learning-rate", fmt::format("{:.1e}", tuning_rate(earlier)));
  choose_warmup_share(config, choosing);
  return choosing.chosen;
}

std::string corpus_text(const Config& config) {
  if (is_stream(config.data)) return "a text from a pipe and the length of this run";
  return fmt::format("a corpus of about {:.2g} M target tokens", 1e-6 * estimated_epoch(config));
}

std::string fine_tuning_text(const Config& config, const std::optional<EarlierTraining>& earlier) {
  return fmt::format("fine-tuning on about {:.2g} M target tokens, from a model {}", 1e-6 * estimated_epoch(config),
                     earlier
                         ? fmt::format("trained for {} at a peak rate of {:g}", counted(earlier->updates, "update"), earlier->learning_rate)
                         : std::string("whose training is not known"));
}

std::string choices_text(const Config& config) {
  if (config.chosen.empty()) return "";
  std::vector<std::string> choices;
  for (const auto& [key, value] : config.chosen) choices.push_back(key + " " + value);
  return fmt::format("chosen for {}: {}; give a key to choose it yourself (docs/{}.md)", config.chosen_for, fmt::join(choices, ", "),
                     config.train.initial_model.empty() ? "start/first-project" : "guides/fine-tuning");
}

std::string small_corpus_advice(const Config& config, int64_t pairs, int64_t updates_an_epoch) {
  const TrainConfig& t = config.train;
  if (pairs >= kSmall || updates_an_epoch < 1 || t.warmup_tokens > 0 || t.optimizer.warmup <= kShortest) return "";
  if (architecture_of(config.model.preset) != Architecture::transformer || !traits_of(t.optimizer.optimizer).adam) return "";
  const double epochs = static_cast<double>(t.optimizer.warmup) / static_cast<double>(updates_an_epoch);
  if (epochs <= kEpochs) return "";
  if (!t.initial_model.empty())
    return fmt::format(
        "{} pairs are few: about {} per epoch, so that the warm-up of {} updates is {:.1f} epochs at small learning rates; leave "
        "train.warmup out, or try --train.warmup 200",
        pairs, counted(updates_an_epoch, "update"), t.optimizer.warmup, epochs);
  const bool large = config.model.preset == "transformer-base" || config.model.preset == "transformer-big";
  const std::string more =
      fmt::format("{}{}", large ? " --model.preset transformer-small" : "", t.batch_tokens > 2000 ? " --train.batch-tokens 2000" : "");
  const bool chosen = config.strategy.batch == BatchScope::global &&
                      config.strategy.rate_scaling == RateScaling::none;  // whether they are chosen when they are left out
  return fmt::format(
      "{} pairs are few: about {} per epoch, so that the warm-up of {} updates is {:.1f} epochs at small learning rates; to see it learn "
      "sooner, {}{}{}",
      pairs, counted(updates_an_epoch, "update"), t.optimizer.warmup, epochs,
      chosen ? "leave train.warmup and train.learning-rate out" : "set --train.warmup 400 --train.learning-rate 1.6e-3",
      more.empty() ? "" : ", and try", more);
}

}  // namespace starling
