// Progress of a task that may take long: nothing for the first five seconds, then the share done, the rate, the elapsed time and the time
// left. A terminal shows one line that is redrawn; elsewhere whole lines are written, at growing intervals.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace starling {

using Say = std::function<void(const std::string& line)>;

/// Seconds by a clock that never goes back.
double steady_seconds();

/// Seconds as "0:05", "12:05", "3:12:05" or "2d 03:12".
std::string duration_text(double seconds);

/// Where signs of life go; each part may be empty.
struct TaskScreen {
  Say line;               // writes a whole line
  Say live;               // draws the one line again; "" removes it
  double live_after = 5;  // s until it is drawn first
};
/// Standard error: the one line if it is a terminal that can draw it, else whole lines. Where it cannot be written, nothing is shown.
TaskScreen standard_error_screen();

class TaskProgress {
 public:
  /// Lines begin with `name`. `now` tells seconds.
  TaskProgress(std::string name, TaskScreen screen, std::function<double()> now = steady_seconds);
  TaskProgress(std::string name, Say say, std::function<double()> now = steady_seconds)
      : TaskProgress(std::move(name), TaskScreen{std::move(say), {}}, std::move(now)) {}
  ~TaskProgress();  // removes the live line
  TaskProgress(const TaskProgress&) = delete;
  TaskProgress& operator=(const TaskProgress&) = delete;

  /// Whether something is to be shown: a line 5 s after the beginning and then at pauses that grow from 3 s to a minute, the live line five
  /// times a second. Cheap.
  bool due() const { return (screen_.live && now_() >= next_draw_) || (screen_.line && now_() >= next_line_); }
  /// Shows `detail` (may be empty), the share of the task that is done (0 to 1; below 0: unknown), the time passed and the time left.
  void tell(double fraction, const std::string& detail);
  /// The same of things that are counted: how many are done, of how many (0: unknown), and how many that is in a second.
  void count(int64_t done, int64_t of, const std::string& things);
  /// The estimate of the time left counts from here: what was done before was done faster than the rest will be.
  void estimate_from(double fraction);
  double seconds() const { return now_() - start_; }

 private:
  std::string name_;
  TaskScreen screen_;
  std::function<double()> now_;
  double start_, next_line_, next_draw_;
  bool drawn_ = false;
  double estimate_time_, estimate_fraction_ = 0;
};

}  // namespace starling
