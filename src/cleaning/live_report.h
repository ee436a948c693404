// The report of a cleaning while it judges pairs: the same page as at its end, of the pairs so far.
#pragma once

#include <string>

#include "cleaning/clean_report.h"
#include "cleaning/tally.h"

namespace starling {

class LiveReport {
 public:
  // Adds the pairs to a report that has the corpora, and writes the page to `path` after the first seconds and then at growing intervals;
  // not if it cannot be written.
  LiveReport(const CleanJob& job, CleanReport begun, FileSystem& files, std::string path, double first_seconds = 3);
  void see(const JudgedPair& pair);

 private:
  void write();
  const CleanJob& job_;
  FileSystem& files_;
  const std::string path_;
  CleanReport report_;
  Tally tally_;
  uint64_t seen_ = 0;
  double next_;  // seconds of the steady clock
};

}  // namespace starling
