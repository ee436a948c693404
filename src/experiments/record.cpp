#include "experiments/record.h"

#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"

namespace starling {
namespace {

using Json = nlohmann::json;

constexpr double kInfinite = std::numeric_limits<double>::infinity();

std::string shown(const Json& json) {
  const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  return text.size() <= 60 ? text : text.substr(0, 60) + "...";
}

[[noreturn]] void refuse(const std::string& where, const std::string& what) {
  throw DataError(fmt::format("{}: {}; remove it, and it is made again", where, what));
}

const Json& member(const Json& json, const char* key, const std::string& where) {
  if (!json.is_object() || !json.contains(key)) refuse(where, fmt::format("there is no '{}' in {}", key, shown(json)));
  return json.at(key);
}

const Json& list(const Json& json, const std::string& where, const std::string& what) {
  if (!json.is_array()) refuse(where, fmt::format("{} is {}, not a list", what, shown(json)));
  return json;
}

// JSON has only finite numbers: null stands for the others.
Json scores_to_json(const std::map<std::string, double>& scores) {
  Json json = Json::object();
  for (const auto& [metric, score] : scores) json[metric] = std::isfinite(score) ? Json(score) : Json();
  return json;
}

std::map<std::string, double> scores_from(const Json& json, const std::string& where) {
  if (!json.is_object()) refuse(where, fmt::format("scores are {}, not values by metric", shown(json)));
  std::map<std::string, double> scores;
  for (const auto& [metric, score] : json.items()) {
    if (!score.is_null() && !score.is_number()) refuse(where, fmt::format("the score of {} is {}", metric, shown(score)));
    scores[metric] = score.is_null() ? std::numeric_limits<double>::quiet_NaN() : score.get<double>();
  }
  return scores;
}

void check_validations(const RaceRecord& r, const std::string& where, int64_t steps) {
  int64_t before = 0;
  for (const auto& [step, scores] : r.validations) {
    if (step <= before || step > steps)
      refuse(where, fmt::format("there is a validation after update {} of {}, and the one before it is after {}", step, steps, before));
    if (!scores.contains("cross-entropy")) refuse(where, fmt::format("the validation after update {} has no cross-entropy", step));
    before = step;
  }
}

}  // namespace

double RaceRecord::loss() const {
  if (diverged || validations.empty()) return kInfinite;
  const double value = validations.back().second.at("cross-entropy");
  return std::isfinite(value) ? value : kInfinite;
}

int64_t count_from(const Json& json, const std::string& where, const std::string& what) {
  if (!json.is_number_integer() || json < 0 || json > std::numeric_limits<int64_t>::max())
    refuse(where, fmt::format("{} is {}, not an integer of at least 0", what, shown(json)));
  return json.get<int64_t>();
}

std::vector<int64_t> counts_from(const Json& json, const std::string& where, const std::string& what) {
  std::vector<int64_t> counts;
  for (const Json& count : list(json, where, what)) counts.push_back(count_from(count, where, what));
  return counts;
}

Json times_to_json(const std::map<int64_t, RaceTimes::At>& times) {
  Json updates = Json::array();
  for (const auto& [step, at] : times) updates.push_back({{"step", step}, {"ns", at.ns}, {"tokens", at.tokens}, {"bytes", at.bytes}});
  return updates;
}

std::map<int64_t, RaceTimes::At> times_from(const Json& updates, const std::string& where) {
  std::map<int64_t, RaceTimes::At> times;
  for (const Json& t : list(updates, where, "what is known of times")) {
    const auto count = [&](const char* key) { return count_from(member(t, key, where), where, key); };
    times[count("step")] = {count("ns"), count("tokens"), count("bytes")};
  }
  RaceTimes::At before;
  for (const auto& [step, at] : times) {
    if (at.ns < before.ns || at.tokens < before.tokens)
      refuse(where, fmt::format("time or tokens after update {} are less than those before it", step));
    before = at;
  }
  return times;
}

Json to_json(const RaceRecord& r) {
  Json validations = Json::array();
  for (const auto& [step, scores] : r.validations) validations.push_back({{"step", step}, {"scores", scores_to_json(scores)}});
  Json json{{"configuration", r.configuration},
            {"done", r.done},
            {"diverged", r.diverged},
            {"validations", validations},
            {"finals", scores_to_json(r.finals)}};
  if (!r.times.empty()) json["times"] = times_to_json(r.times);
  return json;
}

RaceRecord record_from(const Json& j, const std::string& where, int64_t steps, bool timed) {
  RaceRecord r;
  const Json& configuration = member(j, "configuration", where);
  if (!configuration.is_string()) refuse(where, fmt::format("'configuration' is {}, not a digest", shown(configuration)));
  r.configuration = configuration.get<std::string>();
  for (auto [key, value] : {std::pair("done", &r.done), {"diverged", &r.diverged}}) {
    const Json& found = member(j, key, where);
    if (!found.is_boolean()) refuse(where, fmt::format("'{}' is {}, neither true nor false", key, shown(found)));
    *value = found.get<bool>();
  }
  for (const Json& v : list(member(j, "validations", where), where, "'validations'")) {
    const int64_t step = count_from(member(v, "step", where), where, "step");
    r.validations.emplace_back(step, scores_from(member(v, "scores", where), where));
  }
  check_validations(r, where, steps);
  r.finals = scores_from(member(j, "finals", where), where);
  if (j.contains("times")) r.times = times_from(j.at("times"), where);
  for (const auto& [step, scores] : r.validations)
    if (timed && !r.times.contains(step)) refuse(where, fmt::format("there are no times of update {}", step));
  return r;
}

// A resumed run repeats everything after its checkpoint, so each start event discards later validations.
std::vector<std::pair<int64_t, std::map<std::string, double>>> validations_of(const std::string& run) {
  std::map<int64_t, std::map<std::string, double>> by_step;
  const std::string path = join_path(run, "events.jsonl");
  for_each_json_line(path, [&](const Json& event, int64_t line) {
    if (!event.contains("type")) return;
    const std::string where = fmt::format("{}:{}", path, line);
    const Json& type = event.at("type");
    if (type != "start" && type != "validation") return;
    const int64_t step = count_from(member(event, "step", where), where, "step");
    if (type == "start")
      by_step.erase(by_step.upper_bound(step), by_step.end());
    else
      by_step[step] = scores_from(member(event, "scores", where), where);
  });
  return {by_step.begin(), by_step.end()};
}

}  // namespace starling
