// The threads that translate. Each has its own view of the model and one search per lane of the scheduler, which new sentences join as
// others end. Steps of lengthy sentences are slow, so ordinary ones get most of the time while there are any.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "batching/scheduler.h"
#include "decode/model_directory.h"
#include "decode/translator.h"

namespace starling {

class Workers {
 public:
  // Starts one worker per thread of the model's backend. The model, the scheduler and the events must outlive them. `nice` lowers their
  // priority, so that threads that read requests or send answers come first.
  Workers(const LoadedModel& model, Scheduler& scheduler, BatchingEvents& events, int nice = 5);
  // Closes the scheduler and waits until everything is translated.
  ~Workers();
  // Whether the calling thread is one of the workers of any model.
  static bool is_own_thread();

 private:
  class Searches;
  void work(int worker, Model& model);
  void join(Searches& searches, Scheduler::Work work);
  void step(Search& search);
  const TermSpeller& speller();

  const Vocabularies& vocabularies_;
  std::once_flag asked_for_terms_;
  std::optional<TermSpeller> speller_;  // made for the first request that has a glossary
  Scheduler& scheduler_;
  BatchingEvents& events_;
  const int nice_;
  WorkerBackends backends_;
  std::vector<std::unique_ptr<Model>> models_;
  std::vector<std::thread> threads_;
};

// Returns the seconds of a monotonic clock.
double serve_seconds();

}  // namespace starling
