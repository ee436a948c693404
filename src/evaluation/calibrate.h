// `starling calibrate`: translates a development text, fits the regression of confidence on it, and writes that to the model.
#pragma once

#include <cstdint>
#include <string>

#include "backend/device_choice.h"
#include "base/task_progress.h"
#include "evaluation/confidence_fit.h"

namespace starling {

struct CalibrateOptions {
  std::string model, source, target, target_language;
  int64_t batch_sentences = 64, max_source_tokens = 1000;
  DeviceChoice compute;
  bool dry_run = false;  // write nothing
  bool measure = false;  // fit nothing: how well does the model's own calibration hold?
};

struct CalibrateResult {
  ConfidenceQuality quality;
  std::string written;  // path of the file; "" if nothing was written
};

// Throws ConfigError if the directory cannot be changed or, to measure, has no calibration, and DataError for a text that is too short.
CalibrateResult calibrate_model(FileSystem& files, const CalibrateOptions& options, const TaskScreen& screen);

}  // namespace starling
