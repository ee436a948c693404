#include "measure/history.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "base/counted.h"
#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/text_files.h"
#include "base/this_host.h"
#include "base/user_directories.h"

namespace starling {
namespace {

using Json = nlohmann::json;

// Values of records that others may have edited: what is missing or of another type is the default.
double number_of(const Json& json, const char* key, double otherwise) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number() ? found->get<double>() : otherwise;
}
std::string text_of(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace

MeasuredRun measured_run(const std::string& directory) {
  constexpr int kFewest = 2;  // reports after the first
  const std::string path = join_path(directory, "events.jsonl");
  // Where 'simulate' keeps its rates.
  if (std::filesystem::exists(join_path(directory, "cluster.yml")))
    throw ConfigError(fmt::format("{} is a simulated run, whose times say nothing about this host", directory));
  MeasuredRun run;
  int reports = 0;
  const bool exists = for_each_json_line(path, [&](const Json& event, int64_t) {
    const std::string type = text_of(event, "type");
    if (type == "start") {
      run = {};
      reports = 0;
      run.ranks = static_cast<int>(number_of(event, "ranks", 1));
      if (run.ranks > 1) run.strategy = text_of(event, "strategy");
      const std::string backend = text_of(event, "backend");
      if (!backend.starts_with("cpu"))
        throw ConfigError(fmt::format("{}: the run has computed with '{}'; only runs on processors are compared", path, backend));
      if (const size_t at = backend.find(" thread"); at != std::string::npos)
        run.threads = std::max(1, std::atoi(backend.c_str() + backend.rfind(' ', at - 1)));
    }
    const double seconds = number_of(event, "seconds", 0);
    if (type != "report" || seconds <= 0 || ++reports == 1) return;
    run.seconds += seconds;
    run.target_tokens += number_of(event, "target_tokens", 0);
  });
  if (!exists) throw ConfigError(fmt::format("{} cannot be read: {} is not the directory of a run that has trained", path, directory));
  if (reports < kFewest + 1 || run.target_tokens <= 0)
    throw ConfigError(fmt::format("{} has {} of its last process, and {} are the fewest to compare: train longer, or lower log.every", path,
                                  counted(reports, "report"), kFewest + 1));
  return run;
}

PredictionHistory::PredictionHistory(std::string path) : path_(std::move(path)) {
  for_each_json_line(path_, [&](const Json& json, int64_t) {
    PastPrediction p{text_of(json, "time"),
                     text_of(json, "host"),
                     text_of(json, "version"),
                     text_of(json, "run"),
                     text_of(json, "model"),
                     text_of(json, "strategy"),
                     static_cast<int>(number_of(json, "ranks", 1)),
                     number_of(json, "predicted_tokens_per_second", 0),
                     number_of(json, "measured_tokens_per_second", 0)};
    if (p.predicted > 0 && p.measured > 0) all_.push_back(std::move(p));
  });
}

std::vector<PastPrediction> PredictionHistory::of_host(const std::string& host) const {
  std::vector<PastPrediction> found;
  for (const PastPrediction& p : all_)
    if (p.host == host) found.push_back(p);
  return found;
}

std::vector<double> PredictionHistory::ratios_here() const {
  std::vector<double> ratios;
  for (const PastPrediction& p : of_host(this_host())) ratios.push_back(p.ratio());
  return ratios;
}

void PredictionHistory::add(const PastPrediction& prediction) {
  std::erase_if(all_, [&](const PastPrediction& p) { return p.host == prediction.host && p.run == prediction.run; });
  all_.push_back(prediction);
  if (path_.empty()) return;
  std::string text;
  for (const PastPrediction& p : all_)
    text += Json{{"time", p.time},
                 {"host", p.host},
                 {"version", p.version},
                 {"run", p.run},
                 {"model", p.model},
                 {"strategy", p.strategy},
                 {"ranks", p.ranks},
                 {"predicted_tokens_per_second", p.predicted},
                 {"measured_tokens_per_second", p.measured}}
                .dump(-1, ' ', false, Json::error_handler_t::replace) +
            "\n";
  const auto files = real_file_system();
  files->make_directories(parent_path(path_));
  files->replace_file(path_, text);
}

std::string history_path() {
  const std::string state = user_directory("XDG_STATE_HOME", ".local/state");
  return state.empty() ? "" : join_path(state, "predictions.jsonl");
}

Certainty certainty_of(double drift, std::span<const double> ratios) {
  constexpr double kNineOfTen = 1.645;  // deviations of a normal distribution on either side
  const double weight = kPriorWeight + static_cast<double>(ratios.size());
  double bias = 0, squares = kPriorWeight * kPriorDeviation * kPriorDeviation;
  for (const double ratio : ratios) bias += std::log(ratio) / weight;
  squares += kPriorWeight * bias * bias;
  for (const double ratio : ratios) squares += std::pow(std::log(ratio) - bias, 2);
  // The mean of that many cases is not known exactly, either.
  const double half = kNineOfTen * std::sqrt(squares / weight * (1 + 1 / weight) + drift * drift);
  return {std::exp(bias - half), std::exp(bias + half)};
}

Certainty certainty_here(const PredictionHistory& history, double drift) { return certainty_of(drift, history.ratios_here()); }

std::string certainty_text(const PredictionHistory& history, double drift) {
  const Certainty sure = certainty_here(history, drift);
  const size_t known = history.ratios_here().size();
  return fmt::format("how sure: in nine of ten cases an update takes {:.2f} to {:.2f} times as long as predicted, judging by {}{}",
                     sure.low, sure.high,
                     known == 0 ? "other hosts ('starling plan --history RUN' adds runs of this one)"
                                : fmt::format("{} on this host", counted(static_cast<int64_t>(known), "earlier prediction")),
                     drift > 0 ? fmt::format(" and a speed that varied by {:.1f} % while it was measured", 100 * drift) : "");
}

std::string history_text(const PredictionHistory& history) {
  const std::vector<PastPrediction> past = history.of_host(this_host());
  if (past.empty()) return "no run of this host has been compared with its prediction: 'starling plan --history RUN ...' does that\n";
  size_t width = 3;
  for (const PastPrediction& p : past) width = std::max(width, p.run.size());
  std::string text = fmt::format("{:<{}}  {:<18} {:<16} {:>5} {:>12} {:>12} {:>8}\n", "run", width, "model", "strategy", "ranks",
                                 "predicted", "measured", "error");
  for (const PastPrediction& p : past)
    text += fmt::format("{:<{}}  {:<18} {:<16} {:>5} {:>12.0f} {:>12.0f} {:>+7.1f}%\n", p.run, width, p.model, p.strategy, p.ranks,
                        p.predicted, p.measured, 100 * (p.ratio() - 1));
  return text + fmt::format("target tokens/s; {}\n{}\n",
                            history.path().empty() ? "not kept, since there is no home" : "kept in " + history.path(),
                            certainty_text(history, 0));
}

}  // namespace starling
