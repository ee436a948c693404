// The served models, each with its queue and workers, and their replacement by newer models.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "decode/model_directory.h"
#include "http/task_threads.h"
#include "serve/api.h"
#include "serve/model_source.h"
#include "serve/scheduler.h"
#include "serve/search_budget.h"
#include "serve/workers.h"

namespace starling {

struct ModelOptions {
  DeviceChoice compute;              // `threads` is the number of workers per model
  int64_t max_source_tokens = 1000;  // limit for a sentence; longer ones are translated in parts
  int64_t alternatives = 10;         // alternatives per translation that clients may request
  SchedulerLimits scheduler;
  std::function<SearchOptions(SearchOptions)> search = [](SearchOptions o) { return o; };  // applies the command line's options
  std::function<UsableMemory()> memory = [] { return usable_memory(); };
};

class ServedModel {
 public:
  // `budget` is the memory granted to its searches.
  ServedModel(LoadedModel model, Direction direction, const ModelOptions& options, const SearchBudget& budget, Metrics& metrics);

  const Direction& direction() const { return direction_; }
  Scheduler& scheduler() { return scheduler_; }
  // Translates and waits for the result. Throws DataError with what went wrong.
  std::vector<Candidates> translate(const std::vector<std::string>& sentences);
  // Returns the search options for `translations` translations per sentence.
  SearchOptions search(int64_t translations) const;
  const LoadedModel& model() const { return model_; }
  int64_t max_source_tokens() const { return max_source_tokens_; }
  // Describes the model for the operator: "en to de: DIRECTORY, step 1000".
  std::string text() const;
  const SearchBudget& budget() const { return budget_; }
  // Threads that assemble large translations.
  TaskThreads& assembling() { return assembling_; }
  // Returns the most memory that its searches and its cache may take.
  int64_t promised_bytes() const { return budget_.bytes + cache_bytes_; }

 private:
  LoadedModel model_;
  Direction direction_;
  SearchOptions search_;
  int64_t max_source_tokens_;
  SearchBudget budget_;
  int64_t cache_bytes_;
  Scheduler scheduler_;
  TaskThreads assembling_{"putting translations together", 4, 1};
  Workers workers_;  // declared last, so that they end first
};

class ModelSet {
 public:
  ModelSet(std::vector<ModelSource> sources, ModelOptions options, FileSystem& files, Metrics& metrics);
  ~ModelSet() { stop(); }

  // Loads all models. Throws the error of the first one that fails; ConfigError if two have the same direction or a model does not know its
  // languages.
  void load();
  // Checks the model directories, and reads a model again if its directory has changed since it was read and has been unchanged since the
  // last call; with `all`, reads all models at once. The new model replaces the old one if it translates, and if its translations of recent
  // requests resemble the old ones; otherwise the old one stays. Requests in progress finish with the model that they started with. Returns
  // what happened, in sentences for the operator. Not reentrant.
  std::vector<std::string> reload(bool all);
  // Closes the queues and waits until no model is in use.
  void stop();

  bool loaded() const;
  std::vector<Direction> directions() const;
  std::vector<std::shared_ptr<ServedModel>> all() const;
  // Returns the model that translates from one language into the other, or null.
  std::shared_ptr<ServedModel> find(const std::string& source, const std::string& target) const;

  // The least chrF of a new model's translations against the old one's. Below it, the new model is rejected as broken or of other
  // languages.
  static constexpr double kLeastAlike = 20;

 private:
  struct Slot {
    ModelSource source;
    std::shared_ptr<ServedModel> model;  // null until loaded; guarded by mutex_
    std::string read, seen;              // states of the directory: when it was read, and at the last check
  };
  // `promised`: bytes that other models may still allocate.
  std::shared_ptr<ServedModel> read(const ModelSource& source, int64_t promised) const;
  std::string replace(Slot& slot);
  void sweep();
  void publish() const;

  const ModelOptions options_;
  FileSystem& files_;
  Metrics& metrics_;
  mutable std::mutex mutex_;
  std::vector<Slot> slots_;
  std::vector<std::shared_ptr<ServedModel>> retired_;  // replaced but possibly still in use
};

}  // namespace starling
