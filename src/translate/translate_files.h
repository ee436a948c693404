// Translates files of lines, or documents, in order.
#pragma once

#include <functional>
#include <ostream>
#include <string>

#include "base/task_progress.h"
#include "comm/world.h"
#include "translate/options.h"

namespace starling {

// What the process provides in which files are translated.
struct TranslateSurroundings {
  std::ostream& output;                                  // standard output
  std::function<void(const std::string& text)> tell;     // messages: lines with their ends
  TaskScreen screen;                                     // of the progress
  std::function<void(const std::string& line)> on_stop;  // sets what a signal leaves, for a StopNote
  std::function<World()> join = make_mpi_world;          // joins the ranks of a model in shards
};

// Translates the inputs and writes the result as a whole; lines from a pipe are answered as they come. Throws ConfigError before anything
// is written for what cannot be done, and DataError, after what comes before it has been written, for a wrong line.
void translate_files(FileSystem& files, const TranslateOptions& options, const TranslateSurroundings& surroundings);

}  // namespace starling
