// Translates texts: finds the models, splits texts into sentences, submits these to the models' queues, and reassembles the texts after the
// last sentence.
#pragma once

#include <functional>
#include <memory>

#include "serve/models.h"

namespace starling {

struct JobLimits {
  int64_t sentences = 5000;  // limit per request
};

// The outcome of a query: all its texts, or the error.
struct JobResult {
  std::vector<TranslatedText> texts;
  std::optional<ApiError> error;
};

// The size of a job, for the log.
struct JobSize {
  int64_t sentences = 0, characters = 0;
};

// Starts a translation. `done` is called once, from any thread and possibly within this call, unless the returned function was called
// before to cancel. Throws ApiError if the job cannot start: 400 for languages without a model and for too many sentences, 429 for a full
// queue. `size` is set before the queue can refuse.
std::function<void()> start_translation(const ModelSet& models, const TextQuery& query, const JobLimits& limits, double now,
                                        double deadline, JobSize& size, std::function<void(JobResult)> done);

}  // namespace starling
