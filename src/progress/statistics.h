// The numbers of a training report and all that is told of each: its piece of the log line and of the live line, its key in events.jsonl,
// TensorBoard's and Prometheus' names, and its panel on the page of `starling watch`. A new number is a member of TrainReport, which
// RunReports fills in, a row of kStatistics, and a line of docs/reference/events.md.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <string>

#include "base/task_progress.h"

namespace starling {

// What happened since the last report. NaN and 0 mean unknown and are left out of the lines.
struct TrainReport {
  static constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
  int64_t step = 0;       // updates done
  int64_t max_steps = 0;  // updates at which training ends at the latest
  int64_t epoch = 1;      // counted from 1
  double loss = unknown;  // mean per target token, nats
  int64_t sentences = 0, source_tokens = 0, target_tokens = 0;
  double seconds = 0;         // elapsed, without validation and checkpoints
  bool virtual_time = false;  // `seconds` is of a simulated clock
  double learning_rate = unknown;
  double gradient_norm = unknown;  // before clipping
  double noise_scale = unknown;    // of the gradient, target tokens
  double clipped = unknown;        // share of the model's states that were clipped, 0 to 1
  double reward = unknown;         // refinement only: mean GLEU of the samples, 0 to 1, and the share of distinct ones
  double distinct = unknown;
  double consistency = unknown;   // R-Drop only: divergence of the two passes, nats per target token
  double alignment = unknown;     // guided attention only: its cross-entropy along the links, nats per target token
  double memory = unknown;        // resident in this process, bytes
  double fraction = unknown;      // of the whole run, 0 to 1; unknown: step / max_steps
  double seconds_left = unknown;  // filled in by Progress

  double per_second(int64_t count) const { return seconds > 0 ? static_cast<double>(count) / seconds : unknown; }
};

// A chart of the page; none without a title.
struct Panel {
  const char* title = nullptr;
  const char* unit = "";
  int place = 0;         // from the first panel to the last; 6 is that of the efficiency (watch/run_record.cpp)
  bool robust = false;   // single huge values do not set the range
  bool log = false;      // a log scale is offered
  bool zero = false;     // the range begins at 0
  bool percent = false;  // of a share
  int digits = 4;        // of the values
};

// How a number is computed; there is no statistic without.
class ComputedNumber {
 public:
  template <class Compute>
  constexpr ComputedNumber(Compute compute) : compute_(compute) {}
  double operator()(const TrainReport& r) const { return compute_(r); }

 private:
  double (*compute_)(const TrainReport&);
};

struct Statistic {
  const char* key = nullptr;  // of a report in events.jsonl; null: not there
  ComputedNumber value;
  bool count = false;                                  // a whole number
  bool absent = false;                                 // where it is unknown, records lack the key; otherwise it is null
  std::string (*piece)(const TrainReport&) = nullptr;  // of the lines, where it is known; null: not there
  int rank = 0;                                        // a live line that is too long drops its pieces of the highest rank first
  const char* scalar = nullptr;                        // TensorBoard's tag; the names are those of fairseq, whose users know them
  const char *gauge = nullptr, *help = nullptr;        // Prometheus' name, and what it means
  Panel panel = {};
};

// In the order of the lines, which is that of the records too; but what a record may lack is at its end.
inline constexpr Statistic kStatistics[] = {
    {.key = "step",
     .value = [](const TrainReport& r) { return static_cast<double>(r.step); },
     .count = true,
     .piece = [](const TrainReport& r) { return fmt::format("step {}", r.step); },
     .gauge = "starling_run_update",
     .help = "Updates done."},
    {.key = "epoch",
     .value = [](const TrainReport& r) { return static_cast<double>(r.epoch); },
     .count = true,
     .piece = [](const TrainReport& r) { return fmt::format("epoch {}", r.epoch); },
     .rank = 5,
     .scalar = "train/epoch",
     .gauge = "starling_run_epoch",
     .help = "Epoch, counted from 1."},
    {.key = "loss",
     .value = [](const TrainReport& r) { return r.loss; },
     .piece = [](const TrainReport& r) { return fmt::format("loss {:.4f}", r.loss); },
     .rank = 1,
     .scalar = "train/loss",
     .gauge = "starling_run_loss",
     .help = "Training loss, nats per target token.",
     .panel = {.title = "Training loss", .unit = "nats per target token", .place = 1, .robust = true, .log = true}},
    {.value = [](const TrainReport& r) { return std::exp(r.loss); }, .scalar = "train/ppl"},
    {.key = "consistency",
     .value = [](const TrainReport& r) { return r.consistency; },
     .absent = true,
     .piece = [](const TrainReport& r) { return fmt::format("consistency {:.4f}", r.consistency); },
     .rank = 8,
     .panel = {.title = "Difference of both passes", .unit = "nats per target token", .place = 9}},
    {.key = "alignment",
     .value = [](const TrainReport& r) { return r.alignment; },
     .absent = true,
     .piece = [](const TrainReport& r) { return fmt::format("alignment {:.4f}", r.alignment); },
     .rank = 8,
     .panel = {.title = "Alignment", .unit = "nats per target token", .place = 11}},
    {.key = "reward",
     .value = [](const TrainReport& r) { return r.reward; },
     .absent = true,
     .piece = [](const TrainReport& r) { return fmt::format("reward {:.4f}", r.reward); },
     .rank = 1,
     .scalar = "train/reward",
     .panel = {.title = "Reward", .unit = "GLEU of the samples, 0 to 1", .place = 10}},
    {.key = "distinct",
     .value = [](const TrainReport& r) { return r.distinct; },
     .absent = true,
     .piece = [](const TrainReport& r) { return fmt::format("distinct {:.1f} %", 100 * r.distinct); },
     .rank = 8},
    {.key = "sentences", .value = [](const TrainReport& r) { return static_cast<double>(r.sentences); }, .count = true},
    {.key = "source_tokens", .value = [](const TrainReport& r) { return static_cast<double>(r.source_tokens); }, .count = true},
    {.key = "target_tokens", .value = [](const TrainReport& r) { return static_cast<double>(r.target_tokens); }, .count = true},
    {.key = "seconds", .value = [](const TrainReport& r) { return r.seconds; }},
    {.key = "target_tokens_per_second",
     .value = [](const TrainReport& r) { return r.per_second(r.target_tokens); },
     .piece =
         [](const TrainReport& r) {
           return fmt::format("{:.0f} tok/s{}", r.per_second(r.target_tokens), r.virtual_time ? " virtual" : "");
         },
     .rank = 2,
     .scalar = "train/wps",
     .gauge = "starling_run_target_tokens_per_second",
     .help = "Target tokens trained on per second.",
     .panel = {.title = "Speed", .unit = "target tokens per second", .place = 5, .zero = true}},
    {.key = "source_tokens_per_second", .value = [](const TrainReport& r) { return r.per_second(r.source_tokens); }},
    {.key = "learning_rate",
     .value = [](const TrainReport& r) { return r.learning_rate; },
     .piece = [](const TrainReport& r) { return fmt::format("lr {:.3e}", r.learning_rate); },
     .rank = 6,
     .scalar = "train/lr",
     .gauge = "starling_run_learning_rate",
     .help = "Learning rate of the last update.",
     .panel = {.title = "Learning rate", .place = 2, .log = true, .digits = 3}},
    {.key = "gradient_norm",
     .value = [](const TrainReport& r) { return r.gradient_norm; },
     .piece = [](const TrainReport& r) { return fmt::format("gnorm {:.3f}", r.gradient_norm); },
     .rank = 7,
     .scalar = "train/gnorm",
     .gauge = "starling_run_gradient_norm",
     .help = "Norm of the gradient before clipping.",
     .panel = {.title = "Gradient norm", .unit = "before clipping", .place = 3, .robust = true, .log = true}},
    {.key = "noise_scale",
     .value = [](const TrainReport& r) { return r.noise_scale; },
     .piece = [](const TrainReport& r) { return fmt::format("noise {:.0f} tok", r.noise_scale); },
     .rank = 9,
     .scalar = "train/noise_scale",
     .panel = {.title = "Gradient noise scale", .unit = "target tokens", .place = 4, .robust = true, .log = true}},
    {.key = "clipped",
     .value = [](const TrainReport& r) { return r.clipped; },
     .piece = [](const TrainReport& r) { return fmt::format("clipped {:.2f} %", 100 * r.clipped); },
     .rank = 8,
     .panel = {.title = "Clipped states", .unit = "share of their values", .place = 8, .zero = true, .percent = true, .digits = 3}},
    {.key = "memory_mib",
     .value = [](const TrainReport& r) { return r.memory / (1 << 20); },
     .gauge = "starling_run_memory_mib",
     .help = "Resident memory of rank 0, MiB.",
     .panel = {.title = "Memory", .unit = "MiB", .place = 7, .zero = true}},
    {.key = "fraction",
     .value = [](const TrainReport& r) { return r.fraction; },
     .piece = [](const TrainReport& r) { return fmt::format("{:.1f} %", 100 * r.fraction); },
     .rank = 3,
     .gauge = "starling_run_fraction",
     .help = "Share of the run that is done, 0 to 1."},
    {.key = "seconds_left",
     .value = [](const TrainReport& r) { return r.seconds_left; },
     .piece = [](const TrainReport& r) { return "left " + duration_text(r.seconds_left); },
     .rank = 4,
     .gauge = "starling_run_seconds_left",
     .help = "Estimated time to the end, seconds."},
};

// Each number has a key if it has a panel and a help text if it is a gauge, and panels have places of their own.
static_assert([] {
  for (const Statistic& s : kStatistics) {
    if ((s.panel.title && (!s.key || s.panel.place == 0)) || (s.gauge == nullptr) != (s.help == nullptr)) return false;
    for (const Statistic& other : kStatistics)
      if (&s != &other && s.panel.title && other.panel.title && s.panel.place == other.panel.place) return false;
  }
  return true;
}());

}  // namespace starling
