// The last pass of a cleaning: writes the pairs that are kept and those that are dropped, and counts.
#pragma once

#include <string>

#include "base/task_progress.h"
#include "cleaning/clean_report.h"
#include "cleaning/judged_pairs.h"

namespace starling {

// Return the names of the files of one of so many corpora, in the output directory.
std::string kept_file(size_t corpus, size_t count, bool monolingual);
std::string weights_file(size_t corpus, size_t count);

// Fills report.corpora; the texts of report.frequent_* too, whose numbers are known. Throws IoError.
void write_chosen(const CleanJob& job, FileSystem& files, const Segments& segments, const std::string& directory, CleanReport& report,
                  TaskProgress& progress);

}  // namespace starling
