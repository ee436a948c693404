// A model that is being served, with its queue and workers.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "batching/metrics.h"
#include "batching/scheduler.h"
#include "batching/search_budget.h"
#include "batching/workers.h"
#include "decode/model_directory.h"
#include "http/task_threads.h"
#include "serve/model_source.h"

namespace starling {

// How models are loaded when requests first ask for them.
struct OnDemand {
  bool on = false;            // false: all models are loaded at the start
  int64_t memory = 0;         // bytes that the loaded models may take together; 0: nine tenths of what is usable at the start
  double retry_seconds = 30;  // after a failure, time until a model is tried again
  using Say = std::function<void(const std::string& line)>;  // tells the operator
  // Returns the directory of ours for the path of a model, which may be that of another program; may take long.
  std::function<std::string(const std::string& path, const Say& say)> usable = [](const std::string& path, const Say&) { return path; };
  // Returns whether usable() would not have to import the model of a path first.
  std::function<bool(const std::string& path)> ready = [](const std::string&) { return true; };
  // Returns the languages that a model of another program names, without reading it; "" for those that it does not.
  std::function<Languages(const std::string& path)> foreign_languages = [](const std::string&) { return Languages{}; };
  // Returns the state of the files of a model of another program, to see when it changes; "" for a path of ours. Throws if it is not a
  // model.
  std::function<std::string(const std::string& path)> state = [](const std::string&) { return ""; };
  Say say = [](const std::string&) {};  // what is loaded and dropped; must not block
};

struct ModelOptions {
  DeviceChoice compute;              // `threads` is the number of workers per model
  int64_t max_source_tokens = 1000;  // limit for a sentence; longer ones are translated in parts
  int64_t alternatives = 10;         // alternatives per translation that clients may request
  SchedulerLimits scheduler;
  std::function<SearchOptions(SearchOptions)> search = [](SearchOptions o) { return o; };  // applies the command line's options
  std::function<UsableMemory()> memory = [] { return usable_memory(); };
  OnDemand on_demand;
};

class ServedModel {
 public:
  // `budget` is the memory granted to its searches; `weight_bytes` is what its weights take.
  ServedModel(LoadedModel model, std::vector<Direction> directions, const ModelOptions& options, const SearchBudget& budget,
              int64_t weight_bytes, Metrics& metrics);

  const std::vector<Direction>& directions() const { return directions_; }
  Scheduler& scheduler() { return scheduler_; }
  // Translates into the language of one of its directions and waits for the result. Throws DataError with what went wrong.
  std::vector<Candidates> translate(const std::vector<std::string>& sentences, const Direction& direction);
  // Returns the search options of a direction, for `translations` translations per sentence.
  SearchOptions search(const Direction& direction, int64_t translations) const;
  const LoadedModel& model() const { return model_; }
  int64_t max_source_tokens() const { return max_source_tokens_; }
  // Describes the model for the operator: "en to de: DIRECTORY, step 1000".
  std::string text() const;
  const SearchBudget& budget() const { return budget_; }
  // Threads that assemble large translations.
  TaskThreads& assembling() { return assembling_; }
  // Returns the most memory that its searches and its cache may take.
  int64_t promised_bytes() const { return budget_.bytes + cache_bytes_; }
  // The same with its weights.
  int64_t bytes() const { return weight_bytes_ + promised_bytes(); }

 private:
  LoadedModel model_;
  std::vector<Direction> directions_;
  std::vector<SearchOptions> searches_;  // of each
  int64_t max_source_tokens_;
  SearchBudget budget_;
  int64_t weight_bytes_, cache_bytes_;
  Scheduler scheduler_;
  TaskThreads assembling_{"putting translations together", 4, 1};
  Workers workers_;  // declared last, so that they end first
};

// A model whose weights have not been read yet.
struct FoundModel {
  ModelDescription description;
  std::vector<Direction> directions;
  std::string files;         // the state of its files when it was described
  int64_t weight_bytes = 0;  // memory of its weights, with their packed copies
};

// Describes the model of a source. Throws ConfigError if it is none or does not know its languages, and what ModelOptions::on_demand.usable
// throws.
FoundModel find_model(FileSystem& files, const ModelSource& source, const ModelOptions& options);

// Returns the memory of its searches, with as many rows as fit into `memory`. Throws ResourceError if no search fits.
SearchBudget search_budget(const ModelDescription& description, const std::vector<Direction>& directions, const Backend& backend,
                           const ModelOptions& options, const UsableMemory& memory);
// The same before the model is loaded.
SearchBudget search_budget(const FoundModel& found, const ModelOptions& options, const UsableMemory& memory);

// Loads a model and lets it translate, since the first translation is slow and a model that cannot translate must not be served. `budget`
// is asked when the weights are in memory. Throws DataError if the files have changed since the model was found.
std::shared_ptr<ServedModel> load_found(FileSystem& files, FoundModel found, const ModelOptions& options,
                                        const std::function<SearchBudget(const LoadedModel&)>& budget, Metrics& metrics);

// Returns the identity, size and time of the files that make up a model in a directory.
std::string files_state(const std::string& directory);

}  // namespace starling
