// The models that are served, each with its queue and its workers, and how a model takes the place of an older one.
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
  DeviceChoice compute;              // threads: workers of each model
  int64_t max_source_tokens = 1000;  // of a sentence; longer ones are translated in parts
  int64_t alternatives = 10;         // of a translation, that clients may ask for
  SchedulerLimits scheduler;
  std::function<SearchOptions(SearchOptions)> search = [](SearchOptions o) { return o; };  // what the command line changes
  std::function<UsableMemory()> memory = [] { return usable_memory(); };
};

class ServedModel {
 public:
  // Its searches were promised so much memory.
  ServedModel(LoadedModel model, Direction direction, const ModelOptions& options, const SearchBudget& budget, Metrics& metrics);

  const Direction& direction() const { return direction_; }
  Scheduler& scheduler() { return scheduler_; }
  // Translates and waits for it. DataError with what went wrong.
  std::vector<Candidates> translate(const std::vector<std::string>& sentences);
  // For so many translations of a sentence.
  SearchOptions search(int64_t translations) const;
  const LoadedModel& model() const { return model_; }
  int64_t max_source_tokens() const { return max_source_tokens_; }
  // "en to de: DIRECTORY, step 1000": for the operator.
  std::string text() const;
  const SearchBudget& budget() const { return budget_; }
  // Threads that put large translations together.
  TaskThreads& assembling() { return assembling_; }
  // Memory that its searches and the translations that it keeps take at most.
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
  Workers workers_;  // last: they end first
};

class ModelSet {
 public:
  ModelSet(std::vector<ModelSource> sources, ModelOptions options, FileSystem& files, Metrics& metrics);
  ~ModelSet() { stop(); }

  // Loads all of them. Throws what is wrong with one; ConfigError for two of the same direction and for a model that does not know its
  // languages.
  void load();
  // Looks at the directories, and where one has changed since the call before the last and not since the last, reads its model again; with
  // `all` at once and whatever has changed. A model takes the place of the one before when it translates, and translates much like it what
  // was asked for last; else the one before stays. Requests under way end with the model that they began with. Gives what has happened, in
  // sentences for the operator. One call at a time.
  std::vector<std::string> reload(bool all);
  // Ends the queues and waits until nobody uses a model any more.
  void stop();

  bool loaded() const;
  std::vector<Direction> directions() const;
  std::vector<std::shared_ptr<ServedModel>> all() const;
  // The one that translates from one language into the other; null without one.
  std::shared_ptr<ServedModel> find(const std::string& source, const std::string& target) const;

  // chrF of a new model's translations against those of the one before, below which it is not taken: it is broken, or of other languages.
  static constexpr double kLeastAlike = 20;

 private:
  struct Slot {
    ModelSource source;
    std::shared_ptr<ServedModel> model;  // null until loaded; guarded by mutex_
    std::string read, seen;              // states of the directory: when it was read, at the last look
  };
  // `promised`: bytes that other models may still take.
  std::shared_ptr<ServedModel> read(const ModelSource& source, int64_t promised) const;
  std::string replace(Slot& slot);
  void sweep();
  void publish() const;

  const ModelOptions options_;
  FileSystem& files_;
  Metrics& metrics_;
  mutable std::mutex mutex_;
  std::vector<Slot> slots_;
  std::vector<std::shared_ptr<ServedModel>> retired_;  // replaced, and perhaps still in use
};

}  // namespace starling
