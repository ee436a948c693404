// Reports the progress of a task that may take long: nothing for the first five seconds, then the share done, the rate, the elapsed time
// and the time left. A terminal shows one line that is redrawn; elsewhere whole lines are written, at growing intervals.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace starling {

using Say = std::function<void(const std::string& line)>;

/// Returns the seconds of a monotonic clock.
double steady_seconds();

/// Formats seconds as "0:05", "12:05", "3:12:05" or "2d 03:12".
std::string duration_text(double seconds);

/// Where progress is shown; each part may be empty.
struct TaskScreen {
  Say line;               // writes a whole line
  Say live;               // redraws the live line; "" removes it
  double live_after = 5;  // s until the live line first appears
};
/// Shows progress on standard error: as a live line if it is a terminal that can redraw one, else as whole lines. Write errors are ignored.
TaskScreen standard_error_screen();
/// The same beside results that go to the file `output`, or for "-" to standard output: nothing if that is a terminal.
TaskScreen screen_beside(const std::string& output);

class TaskProgress {
 public:
  /// Lines begin with `name`. `now` returns seconds.
  TaskProgress(std::string name, TaskScreen screen, std::function<double()> now = steady_seconds);
  TaskProgress(std::string name, Say say, std::function<double()> now = steady_seconds)
      : TaskProgress(std::move(name), TaskScreen{std::move(say), {}}, std::move(now)) {}
  ~TaskProgress();  // removes the live line
  TaskProgress(const TaskProgress&) = delete;
  TaskProgress& operator=(const TaskProgress&) = delete;

  /// Returns whether it is time to show something: a line 5 s after the start and then at intervals that grow from 3 s to a minute, the
  /// live line five times a second. Cheap to call.
  bool due() const { return (screen_.live && now_() >= next_draw_) || (screen_.line && now_() >= next_line_); }
  /// Shows `detail` (may be empty), the share of the task that is done (0 to 1; below 0: unknown), the elapsed time and the time left.
  void tell(double fraction, const std::string& detail);
  /// The same for things that can be counted: how many are done, of how many (0: unknown), and how many per second.
  void count(int64_t done, int64_t of, const std::string& things);
  /// Bases the estimate of the time left on the progress from here on: what was done before went faster than the rest will.
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
