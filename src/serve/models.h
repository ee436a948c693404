// The served models: which there are, which of them are loaded, and their replacement by newer ones. They are either all loaded at the
// start or each when a request first asks for it (OnDemand); then those that have not been asked for longest make room for others.
#pragma once

#include <atomic>
#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "serve/api.h"
#include "serve/served_model.h"

namespace starling {

constexpr const char* kStopping = "the server is shutting down; send the request to another one";

class ModelSet {
 public:
  ModelSet(std::vector<ModelSource> sources, ModelOptions options, FileSystem& files, Metrics& metrics);
  ~ModelSet() { stop(); }

  // Loads all models or, on demand, only finds out what they translate. Throws the error of the first one that fails; ConfigError if two
  // have the same direction or a model does not know its languages. Optional sources that cannot be served are skipped and reported.
  void load();
  // Checks the directories of the loaded models, and reads a model again if its directory has changed since it was read and has been
  // unchanged since the last call; with `all`, reads all of them at once, and tries those again that could not be loaded. The new model
  // replaces the old one if it translates, and if its translations of recent requests resemble the old ones; otherwise the old one stays.
  // Requests in progress finish with the model that they started with. Returns what happened, in sentences for the operator. Not reentrant.
  std::vector<std::string> reload(bool all);
  // Closes the queues, refuses what waits for a model, and waits until no model is in use.
  void stop();

  bool loaded() const { return loaded_; }                 // load() is done
  bool loading() const;                                   // a model is being loaded on demand
  std::vector<Direction> directions() const;              // of all models, whether or not they are loaded
  std::vector<std::shared_ptr<ServedModel>> all() const;  // the loaded models
  // Returns the model that translates from one language into the other, or null if it is not loaded.
  std::shared_ptr<ServedModel> find(const std::string& source, const std::string& target) const;
  // Says why a model that translates from one language into the other was left out, without paths of this machine; "" if none was.
  std::string left_out(const std::string& source, const std::string& target) const;
  // Describes for the operator what is loaded when: "20 models, loaded on demand into at most 4096 MiB: ...".
  std::string text() const;

  // Passes on the model of a direction, loading it first if necessary, or why there is none. Called once, within use() if the model is
  // loaded, else from a thread that loads models, without a lock held. A model is in use while anybody holds it: give it back soon.
  using Ready = std::function<void(std::shared_ptr<ServedModel>, std::optional<ApiError>)>;
  // Returns the number for cancel(), 0 if `ready` has been called. After the deadline `ready` gets an error, when expire() is called.
  int64_t use(const Direction& direction, double deadline, Ready ready);
  // Drops the request without calling `ready`. Unknown numbers are ignored.
  void cancel(int64_t number);
  // Ends what waits, for a model or in the queue of one, and whose deadline has passed.
  void expire(double now);

  // The least chrF of a new model's translations against the old one's. Below it, the new model is rejected as broken or of other
  // languages.
  static constexpr double kLeastAlike = 20;

 private:
  struct Waiting {
    int64_t number;
    double deadline;
    Ready ready;
  };
  // A model, loaded or not. What follows the source is guarded by mutex_; while `busy`, only the thread that set it changes the model.
  struct Slot {
    ModelSource source;
    std::vector<Direction> directions;
    std::shared_ptr<ServedModel> model;  // null until loaded
    std::string read, seen;              // states of the directory: when it was read, and at the last check
    bool busy = false;                   // being loaded, or replaced
    std::list<Waiting> waiting;
    int64_t asked = 0;     // number of the last request that asked for it
    int64_t reserved = 0;  // bytes granted to a model that is being loaded
    int64_t need = 0;      // bytes that it was found to need when there was no room; 0: there was
    double retry_at = 0;   // after a failure: not tried before
    bool imports = false;  // has to be imported first, and another one was being imported
  };
  using Models = std::vector<std::shared_ptr<ServedModel>>;
  std::shared_ptr<ServedModel> read(const ModelSource& source, int64_t promised) const;
  // The state of the files that a slot's model was or may be read from, to see when they change.
  std::string files_seen(const Slot& slot, const ServedModel& model) const;
  std::string replace(Slot& slot);
  std::shared_ptr<ServedModel> read_replacement(Slot& slot);
  void sweep();
  void publish() const;

  // On demand (models_on_demand.cpp).
  void find_all();
  std::vector<Direction> directions_of(const ModelSource& source) const;
  void require_model(const ModelSource& source) const;
  void load_on_demand();
  Slot* next_to_load();
  void load_slot(Slot& slot);
  bool begin_import(Slot& slot);
  SearchBudget budget_of(const FoundModel& found) const;
  int64_t bytes_of(const FoundModel& found, const SearchBudget& budget) const;
  ApiError failed(const Slot& slot, double now) const;
  // The following are called with the lock held; reserve() gives it up while models are destroyed.
  Slot* slot_of(const Direction& direction);
  int64_t taken() const;
  bool may_drop(const Slot& slot) const;
  bool can_make_room(int64_t bytes) const;
  Models take_longest_unused();
  bool reserve(Slot& slot, int64_t bytes, std::unique_lock<std::mutex>& lock);

  const ModelOptions options_;
  FileSystem& files_;
  Metrics& metrics_;
  mutable std::mutex mutex_;
  std::list<Slot> slots_;
  Models retired_;  // replaced but possibly still in use
  struct LeftOut {
    Direction direction;
    std::string why;
  };
  std::vector<LeftOut> left_out_;  // of the optional sources; not changed once they are found
  std::atomic<bool> loaded_{false};
  UsableMemory memory_;    // for all models together, on demand
  int64_t releasing_ = 0;  // bytes of models that are being destroyed
  int64_t next_number_ = 1;
  size_t importing_ = 0;  // models of other programs that are being imported
  bool stopping_ = false;
  std::condition_variable asked_;  // for a model, or room may have come
  std::vector<std::thread> loaders_;
};

// The error of a model whose direction another one has.
ConfigError served_twice(const ModelSource& source, const Direction& direction);
}  // namespace starling
