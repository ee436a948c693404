// `starling train`: from a configuration to a trained model in a run directory. The same call continues a run that was stopped,
// and a continued run has bit for bit the parameters of an uninterrupted one (at an equal number of threads).
#pragma once

#include <functional>
#include <memory>

#include "base/files.h"
#include "comm/world.h"
#include "decode/model_directory.h"
#include "settings/config.h"

namespace starling {

// Callbacks for a caller that observes a run from within, such as the race. They are called on every rank; each may be empty.
struct TrainingWatch {
  bool silent = false;                        // nothing on standard output
  std::function<void(std::string_view)> log;  // receives the lines of the log in place of standard output, with their newlines
  bool signals = true;  // SIGINT, SIGTERM, SIGHUP and the like end the run with a checkpoint; false: they are the caller's
  // Asked between updates, in place of signals: true ends the run with a checkpoint, as a signal does.
  std::function<bool()> stop;
  // Receives each line of events.jsonl on rank 0 (docs/reference/events.md), from the thread that trains.
  std::function<void(std::string_view json)> event;
  // Called around what is not training: validation, reports, checkpoints, which are then complete before it goes on. A run begins paused,
  // with its preparation. synchronous: all ranks take part, so that the caller may use the communicator.
  std::function<void(bool synchronous)> paused, resumed;
  // Called after each update with the updates done, the target tokens of this rank's share, and Strategy::aside_bytes().
  std::function<void(int64_t step, int64_t tokens, int64_t aside)> updated;
  // Makes the file system of a rank, for tests of failing disks; empty: the operating system's.
  std::function<std::unique_ptr<FileSystem>()> files;
};

// Returns the exit status: 0 when training is complete, 128 + signal after one that stops it (everything is saved then). Every rank
// of the world calls it with the same configuration; rank 0 writes the run directory.
int run_training(const Config& config, World& world, const TrainingWatch& watch = {});

// The same with one rank.
int run_training(const Config& config);

}  // namespace starling
