#include "evaluation/best_model.h"

#include <fmt/format.h>

#include "evaluation/model_selector.h"
#include "storage/state.h"
#include "storage/unused_name.h"

namespace starling {
namespace {

constexpr const char* kScore = "score.json";

}  // namespace

BestModel::BestModel(FileSystem& files, std::string run_directory, std::string metric, std::string measure, Say say)
    : files_(files), run_(std::move(run_directory)), metric_(std::move(metric)), measure_(std::move(measure)), say_(std::move(say)) {}

void BestModel::save(CheckpointStore& checkpoints, int64_t step, double score, int64_t known, std::vector<Part> parts) {
  if (!ours_ && !gives_way(step, score, known)) return;
  State record;
  record.put("metric", metric_);
  record.put("score", score);
  record.put("measure", measure_);
  record.put("step", step);
  parts.push_back(text_part(kScore, record.to_json()));
  checkpoints.save_best(step, parts);
  ours_ = true;
}

bool BestModel::gives_way(int64_t step, double score, int64_t known) {
  const std::string best = join_path(run_, "best");
  const auto there = best_checkpoint(files_, run_, say_);
  if (!there && !files_.exists(best)) return true;
  if (there && there->has(kScore)) {
    const State record = State::from_json(files_.read_file(there->path(kScore)), there->path(kScore));
    const double old = record.real("score");
    if (record.text("metric") == metric_ && record.text("measure") == measure_) {
      if (!better_score(metric_, old, score)) return true;
      say_(fmt::format("{} remains the model of update {}: its {} of {:.4g} is better than {:.4g} after update {}", best, there->step,
                       metric_, old, score, step));
      return false;
    }
  } else if (there && there->step == known) {
    return true;  // saved by a version that wrote no score
  }
  const std::string aside = unused_name(files_, fmt::format("{}-before-{}", best, step));
  files_.rename(best, aside);
  files_.sync_directory(run_);
  say_(there ? fmt::format("the best model so far, from update {}, was not chosen by {} on the current validation text; "
                           "it is kept in {}",
                           there->step, metric_, aside)
             : fmt::format("{} is not the intact model that was saved; it is kept in {}", best, aside));
  return true;
}

std::string kept_best(FileSystem& files, const std::string& run_directory, int64_t step, double score) {
  const std::string path = join_path(join_path(run_directory, "best"), kScore);
  try {
    const State record = State::from_json(files.read_file(path), path);
    if (record.integer("step") == step && record.real("score") == score) return "";
    return fmt::format(", but best/ remains the model of update {} with {} {:.4g}", record.integer("step"), record.text("metric"),
                       record.real("score"));
  } catch (const Error&) {  // there is no record, or one of an older version; the text is only informative
    return "";
  }
}

}  // namespace starling
