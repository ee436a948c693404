#include "launch/restarts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

namespace starling {
namespace {

std::string meaning_of(int status) {
  if (status == 2) return "the command was refused";
  if (status == 3) return "a file could not be read or written";
  if (status == 5) return "a rank was lost";
  if (status > 128) return fmt::format("signal {}", status - 128);
  return fmt::format("status {}", status);
}

}  // namespace

RestartPolicy::Decision RestartPolicy::after(int status, std::optional<int64_t> newest) {
  Decision d;
  if (status == 0) return d;
  if (status == 2 && restarts_ == 0) {
    d.why = "the command was refused, and would be again";
    return d;
  }
  if (status == 4) {
    d.why = "the training diverged, and would again from the same checkpoint";
    return d;
  }
  const bool progress = newest && *newest > newest_.value_or(-1);
  fruitless_ = progress || (!newest && status != 2) ? 0 : fruitless_ + 1;
  newest_ = newest;
  d.why = meaning_of(status);
  if (restarts_ == most_) {
    d.why += most_ > 0 ? fmt::format("; {} (--restarts) are used up", most_ == 1 ? "1 restart" : fmt::format("{} restarts", most_)) : "";
    return d;
  }
  if (fruitless_ >= kFruitless) {
    d.why += fmt::format(
        "; {} starts in a row have made no {}: fix what the messages above report, or save more often "
        "(checkpoint.every, checkpoint.minutes)",
        kFruitless, newest.value_or(-1) < 0 ? "checkpoint" : fmt::format("newer checkpoint than that of update {}", *newest));
    return d;
  }
  d.restart = true;
  d.pause_seconds = std::min(pause_seconds_ * std::pow(2, std::max(0, newest ? fruitless_ - 1 : restarts_)), kLongestPause);
  ++restarts_;
  return d;
}

int whole_layouts(int ranks, int of_layout) { return ranks < of_layout ? ranks : ranks / of_layout * of_layout; }

std::optional<int64_t> newest_checkpoint(const std::string& run_directory) {
  std::error_code error;
  if (!std::filesystem::is_directory(run_directory, error)) return std::nullopt;
  int64_t newest = -1;
  for (const auto& entry : std::filesystem::directory_iterator(run_directory + "/checkpoints", error))
    if (const std::string name = entry.path().filename(); name.starts_with("step-"))
      newest = std::max<int64_t>(newest, std::atoll(name.c_str() + 5));
  return newest;
}

}  // namespace starling
