// The first pass of a cleaning: reads the corpora, repairs and measures each pair, and writes what it found into segments.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/task_progress.h"
#include "cleaning/clean_job.h"
#include "cleaning/judged_pairs.h"
#include "cleaning/pair_measures.h"

namespace starling {

// What the pairs of each corpus have in common, with the usual ratio of lengths as it is in its first pairs.
std::vector<PairKind> pair_kinds(const CleanJob& job);

// Judges the pairs that the segments do not have yet, calls `see` with each of them in order, and returns the number of each corpus's first
// pair. Throws what PairReader does, and IoError.
std::vector<uint32_t> judge_pairs(const CleanJob& job, const std::vector<PairKind>& kinds, FileSystem& files, Segments& segments,
                                  TaskProgress& progress, const std::function<void(const JudgedPair&)>& see);

}  // namespace starling
