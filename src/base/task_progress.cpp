#include "base/task_progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <utility>

namespace starling {
namespace {

constexpr double kFirst = 2, kShortest = 3, kLongest = 60;  // s: the first line, pauses
constexpr double kKnown = 0.02;                             // a smaller share done says nothing about the time left

}  // namespace

double steady_seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

std::string duration_text(double seconds) {
  if (!(seconds >= 0 && seconds < 1e10)) return "?";
  const auto total = static_cast<int64_t>(std::llround(seconds));
  const int64_t days = total / 86400, hours = total / 3600 % 24, minutes = total / 60 % 60;
  if (days > 0) return fmt::format("{}d {:02}:{:02}", days, hours, minutes);
  if (hours > 0) return fmt::format("{}:{:02}:{:02}", hours, minutes, total % 60);
  return fmt::format("{}:{:02}", minutes, total % 60);
}

TaskProgress::TaskProgress(std::string name, Say say, std::function<double()> now)
    : name_(std::move(name)), say_(std::move(say)), now_(std::move(now)), start_(now_()), next_(start_ + kFirst), estimate_time_(start_) {}

void TaskProgress::estimate_from(double fraction) {
  estimate_time_ = now_();
  estimate_fraction_ = fraction;
}

void TaskProgress::tell(double fraction, const std::string& detail) {
  if (!say_) return;
  const double time = now_(), done = fraction - estimate_fraction_;
  std::string line = name_ + ": ";
  if (!detail.empty()) line += detail + ", ";
  if (fraction >= 0) line += fmt::format("{:.0f} %, ", 100 * std::min(fraction, 1.0));
  line += fmt::format("{} passed", duration_text(time - start_));
  if (done >= kKnown && fraction <= 1)
    line += fmt::format(", about {} left", duration_text((time - estimate_time_) / done * (1 - fraction)));
  say_(line);
  next_ = time + std::clamp(0.5 * (time - start_), kShortest, kLongest);
}

}  // namespace starling
