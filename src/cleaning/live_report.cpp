#include "cleaning/live_report.h"

#include <algorithm>

#include "base/task_progress.h"

namespace starling {
namespace {

constexpr double kLeast = 10;    // s between pages
constexpr double kShare = 50;    // of the time, one part may be spent on pages
constexpr uint64_t kLook = 256;  // pairs between two looks at the clock

}  // namespace

LiveReport::LiveReport(const CleanJob& job, CleanReport begun, FileSystem& files, std::string path, double first_seconds)
    : job_(job),
      files_(files),
      path_(std::move(path)),
      report_(std::move(begun)),
      tally_(report_),
      next_(steady_seconds() + first_seconds) {
  report_.under_way = true;
}

void LiveReport::see(const JudgedPair& pair) {
  tally_.take(pair, "");
  if (++seen_ % kLook == 0 && steady_seconds() >= next_) write();
}

void LiveReport::write() {
  const double start = steady_seconds();
  tally_.add_samples();
  try {
    files_.replace_file(path_, clean_page(report_, job_));
  } catch (const IoError&) {  // whether there is room will show when it matters
  }
  const double now = steady_seconds();
  next_ = now + std::max(kLeast, kShare * (now - start));
}

}  // namespace starling
