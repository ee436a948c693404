#include "evaluation/model_selector.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace starling {
namespace {

constexpr int64_t kSuspicious = 3;  // validations with exactly the same score, which are very unlikely for a metric that moves
constexpr double kMuchBetter = 1;   // points of BLEU, chrF or GLEU; less is chance. TER improves by falling, so it gives no advice

std::string list_of(const std::vector<std::string>& names) { return fmt::format("{}", fmt::join(names, ", ")); }

}  // namespace

bool better_score(const std::string& metric, double a, double b) {
  if (!std::isfinite(a) || !std::isfinite(b)) return std::isfinite(a) && !std::isfinite(b);
  return metric == "cross-entropy" || metric == "ter" ? a < b : a > b;
}

ModelSelector::ModelSelector(const std::vector<std::string>& metrics, const std::string& deciding, int64_t patience) : patience_(patience) {
  tracks_.emplace_back();
  tracks_.back().metric = deciding;
  for (const std::string& metric : metrics)
    if (metric != deciding) tracks_.emplace_back(), tracks_.back().metric = metric;
}

ModelSelector::Verdict ModelSelector::consider(int64_t step, const std::vector<std::pair<std::string, double>>& scores) {
  const auto score_of = [&](const Track& t) {
    return std::find_if(scores.begin(), scores.end(), [&](const auto& s) { return s.first == t.metric; });
  };
  if (score_of(tracks_.front()) == scores.end()) return {};  // such as that of a script that failed: nothing is known
  ++validations_;
  for (Track& t : tracks_) {
    const auto found = score_of(t);
    if (found == scores.end()) {
      t.last = kNone;
      continue;
    }
    const double score = found->second;
    t.repeated = score == t.last ? t.repeated + 1 : 1;
    t.last = score;
    t.since = better_score(t.metric, score, t.top) ? 0 : t.since + 1;
    if (t.since == 0) {
      t.top = score;
      t.top_step = step;
    }
  }
  Verdict verdict;
  const std::optional<std::string> by = best_by();
  verdict.best = by.has_value();
  stalled_ = verdict.best ? 0 : stalled_ + 1;
  if (verdict.best) {
    best_step_ = step;
    verdict.by = best_by_ = *by;
    for (Track& t : tracks_) t.at_best = t.last;
  }
  warn(verdict.messages);
  return verdict;
}

// The first metric that distinguishes the two models decides. If none does, the later model is taken as long as the deciding metric has
// always had the same score, since nothing then favours the model with the least training.
std::optional<std::string> ModelSelector::best_by() const {
  if (!std::isfinite(tracks_.front().last)) return std::nullopt;
  for (const Track& t : tracks_) {
    if (better_score(t.metric, t.last, t.at_best)) return t.metric;
    if (better_score(t.metric, t.at_best, t.last)) return std::nullopt;
  }
  if (tracks_.front().repeated == validations_) return "";
  return std::nullopt;
}

double ModelSelector::score_of_best(const std::string& metric) const {
  for (const Track& track : tracks_)
    if (track.metric == metric) return track.at_best;
  return kNone;
}

std::string ModelSelector::summary() const {
  const Track& deciding = tracks_.front();
  const auto by = std::find_if(tracks_.begin(), tracks_.end(), [&](const Track& t) { return t.metric == best_by_; });
  const std::string why = by == tracks_.begin() ? ""
                          : best_by_.empty()    ? ", the latest of equals"
                          : by == tracks_.end() ? fmt::format(", by {} among equals", best_by_)  // it is no longer measured
                                                : fmt::format(", by {} {:.4g} among equals", by->metric, by->at_best);
  return fmt::format("best {} {:.4g} at update {}{}", deciding.metric, deciding.at_best, best_step_, why);
}

std::string ModelSelector::advice() const {
  if (tracks_.front().metric != "cross-entropy") return "";
  for (const Track& t : tracks_)
    if (t.top_step > best_step_ && t.top - t.at_best >= kMuchBetter)
      return fmt::format(
          "the best model by cross-entropy, of update {}, has {} {:.4g}, and that of update {} had {:.4g}; to keep the best by {}, train "
          "with --valid.early-stopping-metric {}",
          best_step_, t.metric, t.at_best, t.top_step, t.top, t.metric, t.metric);
  return "";
}

bool ModelSelector::constant() const { return tracks_.front().repeated > stalled_; }

bool ModelSelector::stops() const {
  if (patience_ == 0 || stalled_ < patience_ || constant()) return false;
  return std::all_of(tracks_.begin(), tracks_.end(), [&](const Track& t) { return t.since >= patience_; });
}

void ModelSelector::warn(std::vector<std::string>& messages) const {
  std::vector<std::string> others;
  for (const Track& t : tracks_)
    if (&t != &tracks_.front()) others.push_back(t.metric);
  for (const Track& t : tracks_) {
    if (t.repeated != kSuspicious) continue;
    std::string text = fmt::format("warning: {} was exactly {:.4g} in {} validations in a row, so it says nothing about progress", t.metric,
                                   t.last, t.repeated);
    if (&t == &tracks_.front())
      text += others.empty() ? "; the latest model counts as the best and nothing stops early; add cross-entropy to valid.metrics"
                             : fmt::format("; until it changes, {} decide{} which model is the best, and nothing stops early",
                                           list_of(others), others.size() == 1 ? "s" : "");
    messages.push_back(text);
  }
  if (patience_ == 0 || stalled_ != patience_ || stops()) return;
  const std::string& deciding = tracks_.front().metric;
  std::vector<std::string> improving;
  for (const Track& t : tracks_)
    if (t.since < patience_) improving.push_back(t.metric);
  messages.push_back(constant() ? fmt::format("{} has not changed in {} validations, which does not end the run early: training continues",
                                              deciding, stalled_ + 1)
                                : fmt::format("{} has not improved in {} validations, but {} {}: training continues", deciding, stalled_,
                                              list_of(improving), improving.size() == 1 ? "has" : "have"));
}

void ModelSelector::save(State& state) const {
  state.put("has-best", has_best());
  state.put("best", has_best() ? best() : 0.0);
  state.put("best-metric", tracks_.front().metric);
  state.put("best-by", best_by_);
  state.put("best-step", std::max<int64_t>(best_step_, 0));
  state.put("stalled", stalled_);
  state.put("validations", validations_);
  for (const Track& t : tracks_) {
    state.put("scores-" + t.metric, std::vector<double>{t.at_best, t.top, t.last});
    state.put("counts-" + t.metric, std::vector<int64_t>{t.since, t.repeated});
    state.put("top-step-" + t.metric, t.top_step);
  }
}

void ModelSelector::restore(const State& state, std::span<const std::string> measured_otherwise) {
  const auto comparable = [&](const std::string& metric) {
    return std::find(measured_otherwise.begin(), measured_otherwise.end(), metric) == measured_otherwise.end();
  };
  if (state.text("best-metric") != tracks_.front().metric || !comparable(tracks_.front().metric)) return;
  stalled_ = state.integer("stalled");
  validations_ = state.has("validations") ? state.integer("validations") : stalled_ + 1;
  best_by_ = state.has("best-by") ? state.text("best-by") : tracks_.front().metric;
  if (state.flag("has-best")) {
    best_step_ = state.integer("best-step");
    tracks_.front().at_best = tracks_.front().top = state.real("best");
  }
  for (Track& t : tracks_) {
    t.since = stalled_;  // for a metric that was not measured before: it does not keep the run from stopping
    if (!state.has("scores-" + t.metric) || !comparable(t.metric)) continue;
    const std::vector<double> scores = state.reals("scores-" + t.metric);
    const std::vector<int64_t> counts = state.integers("counts-" + t.metric);
    if (scores.size() != 3 || counts.size() != 2)
      throw DataError(fmt::format("the checkpoint's state has {} scores and {} counts of {}, not 3 and 2; use another checkpoint",
                                  scores.size(), counts.size(), t.metric));
    t.at_best = scores[0];
    t.top = scores[1];
    t.last = scores[2];
    t.since = counts[0];
    t.repeated = counts[1];
    if (state.has("top-step-" + t.metric)) t.top_step = state.integer("top-step-" + t.metric);
  }
}

}  // namespace starling
