// Reports the progress of a training run: a live line on a terminal, plain lines in <run>/train.log (and on standard output when that is
// not a terminal), and one JSON record per event in <run>/events.jsonl, which docs/reference/events.md describes.
// Time comes in through the options, so that tests see exact text. Nothing here influences training.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/task_progress.h"
#include "storage/tensorboard.h"

namespace starling {

struct TrainReport;  // progress/statistics.h

struct ProgressOptions {
  using Time = std::chrono::system_clock::time_point;

  std::string directory;                           // the run directory, which must exist; "" = no files
  bool tensorboard = false;                        // also writes scalars for TensorBoard, in a file of tensorboard/ below it
  bool files_later = false;                        // with "": lines and records are kept for open_files()
  bool live = false;                               // draw the live line
  std::function<void(std::string_view)> console;   // writes to the screen; empty = nowhere
  std::function<void(std::string_view)> event;     // receives each record as well, without a newline
  std::function<int()> width = [] { return 80; };  // columns of the screen
  std::function<Time()> now = [] { return std::chrono::system_clock::now(); };
};

// Returns options for this process, without files: standard output, with a live line if it is a terminal (`mode` auto), always, or never.
// The console goes silent when standard output is closed; training continues.
ProgressOptions console_progress(const std::string& mode);

struct ValidReport {
  int64_t step = 0, epoch = 1;
  std::vector<std::pair<std::string, double>> scores;                                        // metric, value
  std::vector<std::pair<std::string, std::vector<std::pair<std::string, double>>>> by_text;  // the same of each of several texts
  std::string metric;                                                                        // decides about "best"
  bool best = false;                                                                         // the best so far
  std::string by;            // the metric that decided: another one if `metric` is equal; "": all are, the latest wins
  int64_t stalled = 0;       // validations without improvement
  double seconds = 0;        // duration
  std::string tokenizer;     // of BLEU and GLEU; "": neither is measured
  double length_ratio = -1;  // of the translations; -1: unknown
  std::string example;       // a translation to look at, may be ""
};

class Progress {
 public:
  // Opens the files for appending, unless the directory is ""; IoError when that fails. Lines that a full disk does not take later are
  // lost, with a warning on standard error.
  explicit Progress(ProgressOptions options);
  // Opens the files and writes what has been kept for them: a start that is refused leaves no line.
  void open_files(const std::string& directory);
  ~Progress();  // ends the live line

  // Redraws the live line, at most five times a second; nothing off a terminal. Cheap enough for every update.
  void tick(const TrainReport& report);
  // One log line, which on a terminal stays above the live line, and one record.
  void report(const TrainReport& report);
  void validation(const ValidReport& report);
  // Removes the live line until the next report: before the last message.
  void end_live_line() { erase(); }
  // A line for people, without a record.
  void message(std::string_view text);
  // Returns the screen for a task between updates: its live line replaces that of training; its whole lines go to the log and, where no
  // live line is drawn, to the console.
  TaskScreen screen();
  // Writes a record of another type: an object with "type" and "step"; "schema" and "time" are added. Numbers that are not finite become
  // null.
  void event(const nlohmann::ordered_json& record);
  // Writes the record of a run that ends with an error. Throws nothing if that fails: the run's own error matters more.
  void failure(int64_t step, const std::string& error, double seconds) noexcept;

 private:
  using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;
  void append_or_lose(File& file, const std::string& path, std::string_view text);
  void tell_lost(const std::string& path);
  void line(const std::string& text);
  void scalars(int64_t step, const Scalars& scalars);
  void append_scalars(const std::string& record);
  TrainReport complete(const TrainReport& report);
  void draw(const TrainReport& complete);
  void draw(const std::string& text);
  void erase();
  size_t columns() const;  // of a live line
  void show(std::string_view text);
  double fraction(const TrainReport& report) const;
  double seconds_left(const TrainReport& report);

  ProgressOptions options_;
  bool open_ = false;  // the files below were opened; one that could not be written is null until the next try
  File log_, events_, scalars_;
  std::string scalars_path_;
  std::set<std::string> lost_;  // files whose last line was lost
  size_t drawn_ = 0;            // columns of the live line on the screen
  std::string live_;
  ProgressOptions::Time last_draw_{};
  std::string early_log_, early_events_;  // kept until the files are open

  // A point of the run from which the time left can be estimated.
  struct Mark {
    ProgressOptions::Time time;
    int64_t step;
    double fraction;
  };
  static double seconds_between(const Mark& a, const Mark& b) { return std::chrono::duration<double>(b.time - a.time).count(); }
  std::optional<Mark> from_, later_;  // see seconds_left
};

}  // namespace starling
