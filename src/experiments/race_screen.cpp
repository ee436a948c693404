#include "experiments/race_screen.h"

#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <memory>

#include "base/task_progress.h"

namespace starling {
namespace {

constexpr double kRedraw = 0.2, kFirst = 5, kLongest = 60;  // s

struct Shown {
  const bool live = isatty(STDOUT_FILENO);
  const double start = steady_seconds();
  double last = start;  // time of the last output
  bool drawn = false;   // whether a run's line is on the screen

  ~Shown() {
    if (drawn) std::cout << "\r\x1b[K" << std::flush;
  }
  void say(const std::string& line) {
    std::cout << (live ? "\r\x1b[K" : "") << line << std::endl;
    last = steady_seconds();
    drawn = false;
  }
  void update(const std::string& run, int64_t step, int64_t steps) {
    const double now = steady_seconds();
    if (now - last < (live ? kRedraw : std::clamp(0.1 * (now - start), kFirst, kLongest))) return;
    const std::string text = fmt::format("{}: update {} of {}", run, step, steps);
    if (!live) return say(text);
    std::cout << "\r\x1b[K" << text << std::flush;
    last = now;
    drawn = true;
  }
};

}  // namespace

RaceProgress race_screen() {
  const auto shown = std::make_shared<Shown>();
  RaceProgress progress;
  progress.say = [shown](const std::string& line) { shown->say(line); };
  progress.updated = [shown](const std::string& run, int64_t step, int64_t steps) { shown->update(run, step, steps); };
  return progress;
}

}  // namespace starling
