#include "train/corpus_choices.h"

#include <algorithm>
#include <cmath>

#include "base/counted.h"
#include "base/error.h"
#include "base/files.h"
#include "base/utf8.h"
#include "data/line_reader.h"
#include "text/script.h"

namespace starling {
namespace {

constexpr int64_t kSmall = 100000;  // pairs
constexpr double kEpochs = 3;       // of warm-up; more is much of a run of some minutes

// Estimates of characters a piece, ends of sentences included, in vocabularies of 8,000. LibreOffice's texts have 4.4 in German, 4.2 in
// Russian and 5.0 in Thai; what their Chinese, Korean and Japanese have beside letters leaves 1.4, 1.8 and 2.3.
constexpr double kLetters = 4.5, kSyllables = 1.6, kKana = 3;
constexpr size_t kSample = 1 << 20;  // bytes that are looked into
constexpr double kCompression = 3;   // of text that cannot be read
constexpr int64_t kShareOfRun = 8;   // at most, of warm-up
constexpr int64_t kShortest = 400;   // updates of warm-up; less is not steadier and gains nothing

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

// By the characters of its beginning; 0 for what is no file.
double estimated_pieces(FileSystem& files, const std::string& path) {
  if (path.empty() || files.info(path).kind != FileKind::file) return 0;
  const auto size = static_cast<double>(files.info(path).size);
  try {
    LineReader reader(path);
    double pieces = 0;
    size_t seen = 0;
    for (std::string_view line;;) {
      const uint64_t read = reader.bytes_read();
      if (!reader.next(line)) return pieces;
      // Where another block begins, all of those before have been counted.
      if (seen >= kSample && reader.bytes_read() > read) return pieces * size / static_cast<double>(read);
      for (const char32_t c : decode_utf8(line)) pieces += pieces_of(c);
      pieces += pieces_of('\n'), seen += line.size() + 1;
    }
  } catch (const Error&) {  // which reading the corpus will report
    const bool packed = path.ends_with(".gz") || path.ends_with(".zst");
    return size * (packed ? kCompression : 1) / kLetters;
  }
}

// By the target tokens of an epoch, in millions.
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

bool rates_fit(const Config& c) {
  const OptimizerOptions& o = c.train.optimizer;
  return has_adam(o.optimizer) && (o.schedule == RateSchedule::inverse_sqrt || has_end(o.schedule)) && c.train.warmup_tokens == 0 &&
         c.strategy.batch == BatchScope::global && c.strategy.rate_scaling == RateScaling::none;
}

}  // namespace

std::vector<std::string> keys_by_corpus() {
  return {"model.preset",     "vocab.size",     "model.dropout",       "train.batch-tokens",
          "train.max-tokens", "train.schedule", "train.learning-rate", "train.warmup"};
}

double estimated_epoch(const Config& config) {
  const auto files = real_file_system();
  double pieces = 0;
  for (const CorpusFiles& corpus : config.data.train)
    pieces += corpus.weight * (estimated_pieces(*files, corpus.target) + estimated_pieces(*files, corpus.tsv) / 2);
  return pieces;
}

std::vector<Override> choose_by_corpus(const Config& config, const std::vector<std::string>& open) {
  const TrainConfig& t = config.train;
  if (open.empty() || !t.initial_model.empty() || t.objective != Objective::likelihood ||
      architecture_of(config.model.preset) != Architecture::transformer)
    return {};
  const double epoch = estimated_epoch(config);
  if (epoch == 0) return {};
  std::vector<Override> chosen;
  const auto is_open = [&](const std::string& key) { return std::find(open.begin(), open.end(), key) != open.end(); };
  const auto choose = [&](const std::string& key, const auto& value) {
    if (is_open(key)) chosen.emplace_back(key, fmt::format("{}", value));
  };
  const Choice& c = choice_for(epoch);
  choose("model.preset", c.preset);
  if (config.vocab.source.empty()) choose("vocab.size", c.vocabulary);
  choose("model.dropout", c.dropout);
  choose("train.batch-tokens", c.batch);
  choose("train.max-tokens", static_cast<int64_t>(1e5 * std::ceil(c.epochs * epoch / 1e5)));
  if (!rates_fit(config)) return chosen;
  // Servers that count updates by themselves know no end in minutes.
  if (family_of(config.strategy) != Family::asynchronous) choose("train.schedule", "linear");
  if (!is_open("train.learning-rate") || !is_open("train.warmup")) return chosen;
  const OptimizerOptions standard;
  const int64_t batch = is_open("train.batch-tokens") ? c.batch : t.batch_tokens;
  const double updates = epoch / static_cast<double>(batch);
  int64_t updates_of_run = step_limit(t);
  if (const int64_t tokens = is_open("train.max-tokens") ? static_cast<int64_t>(c.epochs * epoch) : t.max_tokens; tokens > 0)
    updates_of_run = std::min(updates_of_run, tokens / batch);
  if (t.max_epochs > 0) updates_of_run = std::min(updates_of_run, static_cast<int64_t>(updates * static_cast<double>(t.max_epochs)));
  const int64_t warmup = std::clamp<int64_t>(50 * std::llround(updates / 50), kShortest, standard.warmup);
  choose("train.warmup", std::min(warmup, std::max<int64_t>(1, updates_of_run / kShareOfRun)));
  choose("train.learning-rate",
         fmt::format("{:.1e}", standard.learning_rate * std::sqrt(static_cast<double>(standard.warmup) / static_cast<double>(warmup))));
  return chosen;
}

std::string choices_text(const Config& config) {
  if (config.chosen.empty()) return "";
  std::vector<std::string> choices;
  for (const auto& [key, value] : config.chosen) choices.push_back(key + " " + value);
  return fmt::format("chosen for a corpus of about {:.2g} M target tokens: {}; give a key to choose it yourself (docs/first-project.md)",
                     1e-6 * estimated_epoch(config), fmt::join(choices, ", "));
}

std::string small_corpus_advice(const Config& config, int64_t pairs, int64_t updates_an_epoch) {
  const TrainConfig& t = config.train;
  if (pairs >= kSmall || updates_an_epoch < 1 || t.warmup_tokens > 0 || t.optimizer.warmup <= kShortest) return "";
  if (architecture_of(config.model.preset) != Architecture::transformer || !has_adam(t.optimizer.optimizer)) return "";
  const double epochs = static_cast<double>(t.optimizer.warmup) / static_cast<double>(updates_an_epoch);
  if (epochs <= kEpochs) return "";
  if (!t.initial_model.empty())
    return fmt::format(
        "{} pairs are few: about {} an epoch, so that the warm-up of {} updates is {:.1f} epochs at small learning rates; for "
        "fine-tuning try --train.warmup 200 --train.learning-rate 1e-4",
        pairs, counted(updates_an_epoch, "update"), t.optimizer.warmup, epochs);
  const bool large = config.model.preset == "transformer-base" || config.model.preset == "transformer-big";
  const std::string more =
      fmt::format("{}{}", large ? " --model.preset transformer-small" : "", t.batch_tokens > 2000 ? " --train.batch-tokens 2000" : "");
  const bool chosen =
      config.strategy.batch == BatchScope::global && config.strategy.rate_scaling == RateScaling::none;  // when they are left out
  return fmt::format(
      "{} pairs are few: about {} an epoch, so that the warm-up of {} updates is {:.1f} epochs at small learning rates; to see it learn "
      "sooner, {}{}{}",
      pairs, counted(updates_an_epoch, "update"), t.optimizer.warmup, epochs,
      chosen ? "leave train.warmup and train.learning-rate out" : "set --train.warmup 400 --train.learning-rate 1.6e-3",
      more.empty() ? "" : ", and try", more);
}

}  // namespace starling
