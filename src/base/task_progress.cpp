#include "base/task_progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <utility>

#include "base/messages.h"

namespace starling {
namespace {

constexpr double kFirst = 5, kShortest = 3, kLongest = 60;  // s: the first line, pauses
constexpr double kRedraw = 0.2;                             // s, of the live line
constexpr double kKnown = 0.02;                             // a smaller share done says nothing about the time left

bool draws(int fd) {
  const char* term = std::getenv("TERM");
  return isatty(fd) && !(term && std::string_view(term) == "dumb");
}

size_t columns_of(int fd) {
  winsize size{};
  return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col : 80;
}

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

TaskScreen standard_error_screen() {
  if (!draws(STDERR_FILENO)) return {[](const std::string& line) { starling::tell(line + "\n"); }, {}};
  const auto drawn = std::make_shared<size_t>(0);  // columns
  return {{}, [drawn](const std::string& text) {
            // The last column stays free, because many terminals wrap when it is written.
            const std::string shown = text.substr(0, columns_of(STDERR_FILENO) - 1);
            const std::string rest(*drawn > shown.size() ? *drawn - shown.size() : 0, ' ');
            starling::tell("\r" + shown + rest + (text.empty() ? "\r" : ""));
            *drawn = shown.size();
          }};
}

TaskScreen screen_beside(const std::string& output) {
  return output == "-" && isatty(STDOUT_FILENO) ? TaskScreen() : standard_error_screen();
}

TaskProgress::TaskProgress(std::string name, TaskScreen screen, std::function<double()> now)
    : name_(std::move(name)),
      screen_(std::move(screen)),
      now_(std::move(now)),
      start_(now_()),
      next_line_(start_ + kFirst),
      next_draw_(start_ + screen_.live_after),
      estimate_time_(start_) {}

TaskProgress::~TaskProgress() {
  if (drawn_) screen_.live("");
}

void TaskProgress::estimate_from(double fraction) {
  estimate_time_ = now_();
  estimate_fraction_ = fraction;
}

void TaskProgress::tell(double fraction, const std::string& detail) {
  if (!screen_.line && !screen_.live) return;
  const double time = now_(), done = fraction - estimate_fraction_;
  std::string text = name_ + ": ";
  if (!detail.empty()) text += detail + ", ";
  if (fraction >= 0) text += fmt::format("{:.0f} %, ", 100 * std::min(fraction, 1.0));
  text += fmt::format("{} passed", duration_text(time - start_));
  if (done >= kKnown && fraction <= 1)
    text += fmt::format(", about {} left", duration_text((time - estimate_time_) / done * (1 - fraction)));
  if (screen_.live) {
    screen_.live(text);
    drawn_ = true;
    next_draw_ = time + kRedraw;
    if (time < next_line_) return;
  }
  if (screen_.line) screen_.line(text);
  next_line_ = time + std::clamp(0.5 * (time - start_), kShortest, kLongest);
}

void TaskProgress::count(int64_t done, int64_t of, const std::string& things) {
  const double rate = static_cast<double>(done) / std::max(seconds(), 1e-3);
  const std::string total = of > 0 ? fmt::format(" of {}", of) : "";
  tell(of > 0 ? static_cast<double>(done) / static_cast<double>(of) : -1,
       fmt::format("{}{} {}, {:.{}f} a second", done, total, things, rate, rate < 10 ? 1 : 0));
}

}  // namespace starling
