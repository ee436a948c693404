// From texts to translated texts: finds the models, cuts texts into sentences, hands these to the models' queues, and puts the texts
// together again when the last sentence is there.
#pragma once

#include <functional>
#include <memory>

#include "serve/models.h"

namespace starling {

struct JobLimits {
  int64_t sentences = 5000;  // of a request
};

// What became of the texts of a query: all of them, or why not.
struct JobResult {
  std::vector<TranslatedText> texts;
  std::optional<ApiError> error;
};

// What a job is about, for the log.
struct JobSize {
  int64_t sentences = 0, characters = 0;
};

// Begins to translate; `done` is called once, perhaps within the call, from any thread, unless the function that comes back was called
// before: nobody waits any more. ApiError for what cannot begin: 400 for languages without a model and too many sentences, 429 for a full
// queue. `size` is filled before it throws for the queue.
std::function<void()> start_translation(const ModelSet& models, const TextQuery& query, const JobLimits& limits, double now,
                                        double deadline, JobSize& size, std::function<void(JobResult)> done);

}  // namespace starling
