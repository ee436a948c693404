// The threads that translate: each has a search under way for each lane of the scheduler, with its own view of the model, which sentences
// from the scheduler join as others end. The steps of lengthy sentences take long; while there are others, those have most of the time.
#pragma once

#include <memory>
#include <thread>
#include <vector>

#include "decode/model_directory.h"
#include "decode/translator.h"
#include "serve/scheduler.h"

namespace starling {

class Workers {
 public:
  // One worker for each thread of the model's backend. The model, the scheduler and the metrics must outlive them.
  Workers(const LoadedModel& model, Scheduler& scheduler, Metrics& metrics);
  // Closes the scheduler and waits until all is translated.
  ~Workers();

 private:
  class Searches;
  void work(int worker, Model& model);
  void join(Searches& searches, Scheduler::Work work);
  void step(Search& search);

  const Vocabularies& vocabularies_;
  Scheduler& scheduler_;
  Metrics& metrics_;
  WorkerBackends backends_;
  std::vector<std::unique_ptr<Model>> models_;
  std::vector<std::thread> threads_;
};

// Seconds of a clock that only goes forward.
double serve_seconds();

}  // namespace starling
