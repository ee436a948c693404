// Translates texts: finds their models, splits texts into sentences, submits these to the models' queues, and reassembles the texts after
// the last sentence. Where two models lead through a pivot, each translated sentence of the first is a sentence for the second.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "serve/models.h"

namespace starling {

struct JobOptions {
  int64_t sentences = 5000;         // limit per request; a sentence counts for each model that it goes through
  std::vector<std::string> pivots;  // languages through which texts are translated where no model does it directly
};

// The outcome of a query: all its texts, or the error.
struct JobResult {
  std::vector<TranslatedText> texts;
  std::optional<ApiError> error;
};

// What a job tells before its end, one call at a time, from workers' threads.
struct JobListeners {
  // What is added to a text: all calls together give its best translation.
  std::function<void(size_t text, const std::string& more)> more{};
  // How the next sentence of a text begins, where the beam is 1; the next call for this text replaces it.
  std::function<void(size_t text, const std::string& begin)> preview{};
};

// The size of a job, for the log. It may be read while the job goes on.
struct JobSize {
  std::atomic<int64_t> sentences{0}, characters{0};
  std::atomic<int64_t> pivoted{0};  // texts that go through two models
};

// Starts a translation. `done` is called once, from any thread and possibly within this call, unless the returned function was called
// before to cancel. Throws ApiError 400 for languages without a model and for too many texts; other errors are passed to `done`: 400 for
// too many sentences, 429 for a full queue, 503 if a model is not there. `size` is set before the queue can refuse.
std::function<void()> start_translation(ModelSet& models, const TextQuery& query, const JobOptions& options, double now, double deadline,
                                        std::shared_ptr<JobSize> size, std::function<void(JobResult)> done, JobListeners listeners = {});

}  // namespace starling
