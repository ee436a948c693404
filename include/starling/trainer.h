// Trains in this process with one rank. Experimental: this interface may change in any version.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "starling/error.h"

STARLING_NAMESPACE_BEGIN

struct TrainOptions {
  std::vector<std::pair<std::string, std::string>> keys;  // settings over those of the file: {"train.max-steps", "1000"}
  std::function<void(const std::string& json)> event;     // each line of events.jsonl (docs/reference/events.md), from the calling thread
  std::function<void(const std::string& line)> log;       // each line of train.log
  std::function<bool()> stop;                             // asked between updates: true ends the run with a checkpoint
};

struct TrainResult {
  bool complete = false;  // false: `stop` ended it; the same call continues
  std::string directory;  // the run directory, a path for Translator
};

/// Trains by a configuration file (docs/reference/config.md), "" = by the keys alone. A run that was stopped continues. Throws Error.
STARLING_API TrainResult train(const std::string& configuration, const TrainOptions& options = {});

STARLING_NAMESPACE_END
