#include "train/small_corpus.h"

#include "base/counted.h"
#include "base/error.h"

namespace starling {
namespace {

constexpr int64_t kSmall = 100000;  // pairs
constexpr double kEpochs = 3;       // of warm-up; more is much of a run of some minutes

}  // namespace

std::string small_corpus_advice(const Config& config, int64_t pairs, int64_t updates_an_epoch) {
  const TrainConfig& t = config.train;
  if (pairs >= kSmall || updates_an_epoch < 1 || t.warmup_tokens > 0) return "";
  if (!config.model.preset.starts_with("transformer") || !t.optimizer.optimizer.starts_with("adam")) return "";
  const double epochs = static_cast<double>(t.optimizer.warmup) / static_cast<double>(updates_an_epoch);
  if (epochs <= kEpochs) return "";
  if (!t.initial_model.empty())
    return fmt::format(
        "{} pairs are few: about {} an epoch, so that the warm-up of {} updates is {:.1f} epochs at small learning rates; for "
        "fine-tuning try --train.warmup 200 --train.learning-rate 1e-4",
        pairs, counted(updates_an_epoch, "update"), t.optimizer.warmup, epochs);
  const bool large = config.model.preset == "transformer-base" || config.model.preset == "transformer-big";
  return fmt::format(
      "{} pairs are few: about {} an epoch, so that the warm-up of {} updates is {:.1f} epochs at small learning rates; to see it "
      "learn sooner, try {}{}--train.warmup 400 --train.learning-rate 2e-3",
      pairs, counted(updates_an_epoch, "update"), t.optimizer.warmup, epochs, large ? "--model.preset transformer-small " : "",
      t.batch_tokens > 2000 ? "--train.batch-tokens 2000 " : "");
}

}  // namespace starling
