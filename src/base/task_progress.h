// Signs of life of a task that may take long, as lines for people: nothing for the first two seconds, then a line now and again with the
// time passed and, where it is known, the time left.
#pragma once

#include <functional>
#include <string>

namespace starling {

using Say = std::function<void(const std::string& line)>;

/// Seconds by a clock that never goes back.
double steady_seconds();

/// Seconds as "0:05", "12:05", "3:12:05" or "2d 03:12".
std::string duration_text(double seconds);

class TaskProgress {
 public:
  /// Lines begin with `name`; `say` may be empty. `now` tells seconds.
  TaskProgress(std::string name, Say say, std::function<double()> now = steady_seconds);

  /// Whether a line is due: 2 s after the beginning, then at pauses that grow from 3 s to a minute. Cheap.
  bool due() const { return say_ && now_() >= next_; }
  /// Says `detail` (may be empty), the share of the task that is done (0 to 1; below 0: unknown), the time passed and the time left.
  void tell(double fraction, const std::string& detail);
  /// The estimate of the time left counts from here: what was done before was done faster than the rest will be.
  void estimate_from(double fraction);
  double seconds() const { return now_() - start_; }

 private:
  std::string name_;
  Say say_;
  std::function<double()> now_;
  double start_, next_;
  double estimate_time_, estimate_fraction_ = 0;
};

}  // namespace starling
