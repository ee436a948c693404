#include "train/small_corpus.h"

#include <algorithm>
#include <cmath>

#include "base/counted.h"
#include "base/error.h"
#include "base/files.h"

namespace starling {
namespace {

constexpr int64_t kSmall = 100000;  // pairs
constexpr double kEpochs = 3;       // of warm-up; more is much of a run of some minutes

// Estimates: a piece is four or five bytes in most languages and scripts, compressed text a third of what it was.
constexpr double kBytesOfPiece = 4.5, kCompression = 3;
constexpr int64_t kShortest = 400;  // updates of warm-up; less is not steadier and gains nothing

// Of text, when it is not compressed; 0 for what is no file.
double text_bytes(FileSystem& files, const std::string& path) {
  if (path.empty() || files.info(path).kind != FileKind::file) return 0;
  const bool packed = path.ends_with(".gz") || path.ends_with(".zst");
  return static_cast<double>(files.info(path).size) * (packed ? kCompression : 1);
}

}  // namespace

void warm_up_by_corpus(Config& config) {
  TrainConfig& t = config.train;
  OptimizerOptions& o = t.optimizer;
  if (architecture_of(config.model.preset) != Architecture::transformer || !has_adam(o.optimizer) ||
      (o.schedule != RateSchedule::inverse_sqrt && !has_end(o.schedule)) || t.warmup_tokens > 0 || !t.initial_model.empty() || t.objective != Objective::likelihood ||
      config.strategy.batch != BatchScope::global || config.strategy.rate_scaling != RateScaling::none)
    return;
  const auto files = real_file_system();
  double bytes = 0;
  for (const CorpusFiles& corpus : config.data.train)
    bytes += corpus.weight * (text_bytes(*files, corpus.target) + text_bytes(*files, corpus.tsv) / 2);
  if (bytes == 0) return;
  const OptimizerOptions standard;
  const double epoch = bytes / kBytesOfPiece / static_cast<double>(t.batch_tokens);
  o.warmup = std::clamp<int64_t>(50 * std::llround(epoch / 50), kShortest, standard.warmup);
  const double rate = standard.learning_rate * std::sqrt(static_cast<double>(standard.warmup) / static_cast<double>(o.warmup));
  o.learning_rate = std::stod(fmt::format("{:.1e}", rate));
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
  const bool chosen = config.strategy.batch == BatchScope::global && config.strategy.rate_scaling == RateScaling::none;  // when they are left out
  return fmt::format(
      "{} pairs are few: about {} an epoch, so that the warm-up of {} updates is {:.1f} epochs at small learning rates; to see it learn "
      "sooner, {}{}{}",
      pairs, counted(updates_an_epoch, "update"), t.optimizer.warmup, epochs,
      chosen ? "leave train.warmup and train.learning-rate out" : "set --train.warmup 400 --train.learning-rate 1.6e-3",
      more.empty() ? "" : ", and try", more);
}

}  // namespace starling
