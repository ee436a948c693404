// The models that are served, each with its queue and its workers, and how a model takes the place of an older one.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "decode/model_directory.h"
#include "serve/api.h"
#include "serve/scheduler.h"
#include "serve/workers.h"

namespace starling {

// A model as the command line names it: "DIR", or with its direction "en-de=DIR", "zh-Hant:en=DIR".
struct ModelSource {
  std::optional<Direction> direction;  // else the model's own
  std::string path;
};
// ConfigError when what stands before '=' is no direction.
ModelSource parse_model_source(const std::string& text);

struct ModelOptions {
  std::string precision = "auto";
  int threads = 0;                   // workers of each model; 0: one for each core
  int64_t max_source_tokens = 1000;  // of a sentence; longer ones are translated in parts
  bool whole_batches = false;        // nothing joins what is under way: to see what joining is worth
  SchedulerLimits scheduler;
  std::function<SearchOptions(SearchOptions)> search = [](SearchOptions o) { return o; };  // what the command line changes
};

class ServedModel {
 public:
  ServedModel(LoadedModel model, Direction direction, const ModelOptions& options, Metrics& metrics);

  const Direction& direction() const { return direction_; }
  Scheduler& scheduler() { return scheduler_; }
  // Translates and waits for it. DataError with what went wrong.
  std::vector<Candidates> translate(const std::vector<std::string>& sentences);
  // For so many translations of a sentence.
  SearchOptions search(int64_t translations) const;
  const LoadedModel& model() const { return model_; }
  int64_t max_source_tokens() const { return max_source_tokens_; }

 private:
  LoadedModel model_;
  Direction direction_;
  SearchOptions search_;
  int64_t max_source_tokens_;
  Scheduler scheduler_;
  Workers workers_;  // last: they end first
};

class ModelSet {
 public:
  ModelSet(std::vector<ModelSource> sources, ModelOptions options, FileSystem& files, Metrics& metrics)
      : sources_(std::move(sources)), options_(std::move(options)), files_(files), metrics_(metrics) {}

  ~ModelSet() { stop(); }

  // Loads all of them. Throws what is wrong with one; ConfigError for two of the same direction and for a model that does not know its
  // languages.
  void load();
  // Ends the queues and waits until nobody uses a model any more.
  void stop();
  bool loaded() const;
  std::vector<Direction> directions() const;
  std::vector<std::shared_ptr<ServedModel>> all() const;
  // The one that translates from one language into the other; null without one.
  std::shared_ptr<ServedModel> find(const std::string& source, const std::string& target) const;

 private:
  std::shared_ptr<ServedModel> read(const ModelSource& source) const;
  void publish() const;

  const std::vector<ModelSource> sources_;
  const ModelOptions options_;
  FileSystem& files_;
  Metrics& metrics_;
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<ServedModel>> models_;
};

}  // namespace starling
