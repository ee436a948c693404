#include "cleaning/live_report.h"

#include <algorithm>

#include "base/task_progress.h"

namespace starling {
namespace {

constexpr double kLeast = 10;    // s between pages
constexpr double kShare = 50;    // of the time, one part may be spent on pages
constexpr uint64_t kLook = 256;  // pairs between two looks at the clock

CleanReport without_pairs(const CleanJob& job, const std::vector<PairKind>& kinds, int64_t judged_before) {
  CleanReport report;
  report.monolingual = job.monolingual;
  report.pairs_judged_before = judged_before;
  report.under_way = true;
  for (size_t i = 0; i < kinds.size(); ++i) {
    CorpusCleaning& corpus = report.corpora.emplace_back();
    corpus.name = job.name(i);
    corpus.usual_ratio = kinds[i].usual_ratio;
  }
  return report;
}

}  // namespace

LiveReport::LiveReport(const CleanJob& job, const std::vector<PairKind>& kinds, int64_t judged_before, FileSystem& files, std::string path,
                       double first_seconds)
    : job_(job),
      files_(files),
      path_(std::move(path)),
      report_(without_pairs(job, kinds, judged_before)),
      tally_(report_),
      next_(steady_seconds() + first_seconds) {}

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
