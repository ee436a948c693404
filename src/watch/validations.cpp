#include "watch/validations.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "watch/record_values.h"

namespace starling {
namespace {

constexpr size_t kLongestMetric = 60, kLongestText = 200;  // bytes of their names

constexpr double kNoScore = std::numeric_limits<double>::quiet_NaN();

}  // namespace

void Validations::add(const nlohmann::json& record) {
  const auto step = step_of(record, "step");
  const auto scores = record.find("scores"), by_text = record.find("by_text");
  if (!step || scores == record.end() || !scores->is_object()) return;
  metric_ = text_of(record, "metric", kLongestMetric);
  const auto best = record.find("best");
  Point point{*step, best != record.end() && *best == true, number_of(record, "seconds").value_or(kNoScore), {}};
  add_scores(point, "", *scores);
  if (by_text != record.end() && by_text->is_object())
    for (const auto& [text, of] : by_text->items())
      if (of.is_object() && text.size() <= kLongestText) add_scores(point, text, of);
  if (points_.size() == kMost) points_.erase(points_.begin() + (points_.front().best ? 1 : 0));
  points_.push_back(std::move(point));
}

void Validations::add_scores(Point& point, const std::string& text, const nlohmann::json& scores) {
  size_t next = 0;  // names come in the same order each time
  for (const auto& [metric, value] : scores.items()) {
    if (!value.is_number() || metric.size() > kLongestMetric) continue;
    const auto is_it = [&](const Name& name) { return name.metric == metric && name.text == text; };
    if (next >= names_.size() || !is_it(names_[next]))
      next = static_cast<size_t>(std::find_if(names_.begin(), names_.end(), is_it) - names_.begin());
    if (next == names_.size()) {
      if (names_.size() == kMostNames || (text.empty() && metrics_ == kMostMetrics)) continue;
      metrics_ += text.empty() ? 1 : 0;
      names_.push_back({text, metric});
    }
    if (point.scores.size() <= next) point.scores.resize(next + 1, kNoScore);
    if (const auto number = value.get<double>(); std::isfinite(number)) point.scores[next] = number;
    ++next;
  }
}

void Validations::forget_after(int64_t step) {
  std::erase_if(points_, [&](const Point& point) { return point.step > step; });
}

std::vector<Validations::Score> Validations::newest() const {
  std::vector<Score> found;
  if (points_.empty()) return found;
  const std::vector<double>& scores = points_.back().scores;
  for (size_t i = 0; i < scores.size(); ++i)
    if (!std::isnan(scores[i])) found.push_back({names_[i].text, names_[i].metric, scores[i]});
  return found;
}

nlohmann::json Validations::json() const {
  using Json = nlohmann::json;
  const auto value = [](double number) { return std::isnan(number) ? Json() : Json(number); };
  const auto score = [&](const Point& point, size_t i) { return value(i < point.scores.size() ? point.scores[i] : kNoScore); };
  Json all{{"metric", metric_}, {"points", Json::array()}}, steps = Json::array(), texts = Json::object();
  for (const Point& point : points_) {
    Json scores = Json::object();
    for (size_t i = 0; i < names_.size(); ++i)
      if (names_[i].text.empty() && !score(point, i).is_null()) scores[names_[i].metric] = score(point, i);
    all["points"].push_back({{"step", point.step}, {"scores", scores}, {"best", point.best}, {"seconds", value(point.seconds)}});
  }
  const size_t first = points_.size() - std::min(points_.size(), kMostByText);
  for (size_t p = first; p < points_.size(); ++p) steps.push_back(points_[p].step);
  for (size_t i = 0; i < names_.size(); ++i)
    for (size_t p = first; p < points_.size() && !names_[i].text.empty(); ++p)
      texts[names_[i].text][names_[i].metric].push_back(score(points_[p], i));
  if (!texts.empty()) all["by_text"] = {{"step", steps}, {"texts", texts}};
  return all;
}

}  // namespace starling
