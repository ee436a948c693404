// Cleans parallel text: repairs lines, drops pairs that break rules, and says what it did. docs/guides/cleaning.md
#pragma once

#include "base/files.h"
#include "base/task_progress.h"
#include "cleaning/clean_job.h"
#include "cleaning/clean_report.h"

namespace starling {

// Writes into the output directory, in the order of the corpora and their lines:
//
//   kept.tsv.zst      source <tab> target, for data.train; kept-1.tsv.zst and so on if there are several corpora
//   kept.weights.zst  of a corpus that has sentence-weights
//   dropped.tsv.zst   corpus, line, broken rules, which pair a duplicate equals or a near-copy is near ("corpus:line", or ""), source,
//                     target, with tabs between
//   scores.tsv.zst    for each pair corpus, line, broken rules, score, and what was measured, under a line with the names
//   clean.json        what was counted, with examples
//   report.html       the same to look at, with a sample of the pairs
//   train.yml         CleanJob::configuration
//
// The result does not depend on threads and memory. A cleaning that was ended by a signal or a power cut goes on where it was, if the
// files and options are the same. Throws ConfigError, IoError or DataError; the directory is then absent.
CleanReport clean(const CleanJob& job, FileSystem& files, const TaskScreen& screen);

// Returns everything that judged pairs depend on: an earlier start's are taken if this is the same.
std::string facts_of(const CleanJob& job);
std::string facts_hash(const CleanJob& job);  // in clean.json

}  // namespace starling
