// What predictions were worth on this host: each is kept beside what a run then measured, and says how sure the next one is.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace starling {

// The throughput of a run, from its events.jsonl: reports after the first, which warms up, of the last process that trained it.
struct MeasuredRun {
  int ranks = 1, threads = 1;  // threads: of a rank
  std::string strategy = "none";
  double seconds = 0, target_tokens = 0;
  double tokens_per_second() const { return target_tokens / seconds; }
};
// Throws ConfigError, naming the file, if it does not exist, has too few reports, or is that of a simulated run or of cards.
MeasuredRun measured_run(const std::string& directory);

// A run that was predicted.
struct PastPrediction {
  std::string time, host, version;  // when it was compared, and with what
  std::string run, model, strategy;
  int ranks = 1;
  double predicted = 0, measured = 0;  // target tokens per second
  // Measured time over predicted time.
  double ratio() const { return predicted / measured; }
};

// The file of past predictions, one JSON object a line.
class PredictionHistory {
 public:
  // Lines that do not parse are skipped. A file that does not exist is empty, and so is ""; then nothing is written.
  explicit PredictionHistory(std::string path);
  const std::string& path() const { return path_; }
  const std::vector<PastPrediction>& all() const { return all_; }
  // Those of this host, with any version.
  std::vector<PastPrediction> of_host(const std::string& host) const;
  // Measured times over predicted ones, of this host.
  std::vector<double> ratios_here() const;
  // Adds a prediction, in place of an earlier one of the same run, and writes the file.
  void add(const PastPrediction& prediction);

 private:
  std::string path_;
  std::vector<PastPrediction> all_;
};
// Returns the file of this user: $XDG_STATE_HOME/starling/predictions.jsonl, else ~/.local/state/starling/predictions.jsonl; "" if there is
// no home.
std::string history_path();

// How sure a prediction is: nine of ten measured times lie between these multiples of the predicted one.
struct Certainty {
  double low = 1, high = 1;
};
// drift: relative standard deviation of the machine's speed while it was measured. ratios: measured times over predicted ones of past
// predictions. Their logarithms count as drawn from a normal distribution, of which kPriorWeight further cases with mean 0 and deviation
// kPriorDeviation were seen before: what bench/plan_accuracy.sh has shown on two machines (docs/explanation/simulator.md).
inline constexpr double kPriorDeviation = 0.06, kPriorWeight = 4;
Certainty certainty_of(double drift, std::span<const double> ratios);

// The same with what is kept of this host, and a line for people about it.
Certainty certainty_here(const PredictionHistory& history, double drift);
std::string certainty_text(const PredictionHistory& history, double drift);

// Returns a table for people of what is kept of this host, and how sure the next prediction is.
std::string history_text(const PredictionHistory& history);

}  // namespace starling
