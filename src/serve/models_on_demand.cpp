// Loads models when requests ask for them, and drops those that nobody has asked for longest when their memory is needed.
#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/counted.h"
#include "base/start_threads.h"
#include "serve/models.h"

namespace starling {
namespace {

// Models that are loaded at a time, so that a large one does not keep the others waiting, and those of them that may be imported first,
// which takes longest: however many packages cannot be imported, the others are still loaded.
constexpr size_t kLoaders = 2, kImporters = 1;
constexpr std::chrono::milliseconds kLookForRoom{10};  // interval of checks whether a model has become unused

// A message that clients may see: paths become names.
std::string without_path(std::string message, const std::string& path) {
  const std::string name = file_name(path);
  for (size_t at = 0; (at = message.find(path, at)) != std::string::npos; at += name.size()) message.replace(at, path.size(), name);
  return message;
}

std::string mebibytes_text(int64_t bytes) { return fmt::format("{} MiB", bytes >> 20); }

}  // namespace

std::vector<Direction> ModelSet::directions_of(const ModelSource& source) const {
  if (source.direction) {
    if (!files_.exists(source.path)) throw ConfigError(fmt::format("--model {}: there is no such file or directory", source.path));
    return {*source.direction};
  }
  const auto has = [&](const char* name) { return files_.exists(join_path(source.path, name)); };
  Languages own = options_.on_demand.foreign_languages(source.path);
  if (own.source.empty() || own.target.empty()) {
    require_model(source);
    if (has("model.safetensors") && has("config.yml"))
      own = read_description(files_, source.path).languages;
    else if (has("checkpoints") || has("best"))  // of a run
      own = describe_model(files_, source.path).languages;
    else
      throw ConfigError(fmt::format("{0}: the model does not name its languages; give them: --model en-de={0}", source.path));
  }
  return served_directions(source, own);
}

// Throws unless its path is a model.
void ModelSet::require_model(const ModelSource& source) const { options_.on_demand.state(source.path); }

void ModelSet::find_all() {
  for (auto slot = slots_.begin(); slot != slots_.end();) {
    std::string left_out;
    try {
      slot->directions = directions_of(slot->source);
      require_model(slot->source);
      for (auto other = slots_.begin(); other != slot; ++other)
        if (const Direction* twice = common_direction(slot->directions, other->directions)) throw served_twice(slot->source, *twice);
    } catch (const std::exception& e) {  // std::bad_alloc too: one package must not keep the others from being served
      if (!slot->source.optional) throw;
      for (const Direction& d : slot->directions) left_out_.push_back({d, without_path(e.what(), slot->source.path)});
      options_.on_demand.say(fmt::format("skipped: {}", e.what()));
      slot = slots_.erase(slot);
      continue;
    }
    ++slot;
  }
  if (slots_.empty()) throw ConfigError("there is no model to serve; see the reasons above");
  memory_ = options_.memory();
  memory_.bytes = memory_.bytes / 10 * 9;  // the rest is for requests, and for what reading a model takes besides the model
  if (options_.on_demand.memory > 0)
    memory_ = {options_.on_demand.memory, fmt::format("--memory of {}", mebibytes_text(options_.on_demand.memory))};
  {
    const std::lock_guard lock(mutex_);
    publish();
  }
  for (size_t i = 0; i < kLoaders; ++i) loaders_.push_back(start_thread("loading models", [this] { load_on_demand(); }));
  loaded_ = true;
}

std::string ModelSet::left_out(const std::string& source, const std::string& target) const {
  for (const LeftOut& l : left_out_)
    if (loaded_ && same_direction(l.direction, {source, target})) return l.why;
  return "";
}

std::string ModelSet::text() const {
  return fmt::format("{}, loaded on demand into at most {}: {}", counted(slots_.size(), "model"), mebibytes_text(memory_.bytes),
                     direction_text(directions()));
}

ModelSet::Slot* ModelSet::slot_of(const Direction& direction) {
  const auto slot =
      std::find_if(slots_.begin(), slots_.end(), [&](const Slot& s) { return common_direction({direction}, s.directions) != nullptr; });
  return slot == slots_.end() ? nullptr : &*slot;
}

int64_t ModelSet::use(const Direction& direction, double deadline, Ready ready) {
  std::shared_ptr<ServedModel> model;
  std::optional<ApiError> refused;
  {
    const std::lock_guard lock(mutex_);
    Slot* const slot = loaded_ ? slot_of(direction) : nullptr;
    const double now = serve_seconds();
    if (!slot || (!slot->model && !options_.on_demand.on)) {
      refused = ApiError(503, kStopping);
    } else if (slot->asked = next_number_++; slot->model) {
      model = slot->model;
    } else if (slot->retry_at > now) {
      refused = failed(*slot, now);
    } else {
      slot->waiting.push_back({slot->asked, deadline, std::move(ready)});
      asked_.notify_all();  // some wait for room
      return slot->asked;
    }
  }
  ready(std::move(model), std::move(refused));
  return 0;
}

ApiError ModelSet::failed(const Slot& slot, double now) const {
  ApiError error(503, fmt::format("the model from {} could not be loaded; the server's log says why; try again later",
                                  direction_text(slot.directions)));
  error.retry_seconds = std::max(1, static_cast<int>(std::ceil(slot.retry_at - now)));
  return error;
}

void ModelSet::cancel(int64_t number) {
  std::list<Waiting> cancelled;  // destroyed after the lock
  const std::lock_guard lock(mutex_);
  for (Slot& slot : slots_)
    for (auto w = slot.waiting.begin(); w != slot.waiting.end(); ++w)
      if (w->number == number) return cancelled.splice(cancelled.end(), slot.waiting, w);
}

void ModelSet::expire(double now) {
  std::vector<std::pair<Ready, ApiError>> late;
  {
    const std::lock_guard lock(mutex_);
    for (Slot& slot : slots_)
      for (auto w = slot.waiting.begin(); w != slot.waiting.end();) {
        if (w->deadline > now) {
          ++w;
          continue;
        }
        ApiError why =
            slot.need > 0
                ? ApiError(503, fmt::format("the models in use leave no memory for the one from {}; try again later",
                                            direction_text(slot.directions)))
                : ApiError(504, fmt::format("the model from {} was not loaded in time; try again", direction_text(slot.directions)));
        why.retry_seconds = 5;
        late.emplace_back(std::move(w->ready), std::move(why));
        w = slot.waiting.erase(w);
      }
  }
  for (auto& [ready, why] : late) ready(nullptr, std::move(why));
  for (const auto& model : all()) model->scheduler().expire(now);
}

bool ModelSet::loading() const {
  const std::lock_guard lock(mutex_);
  return std::any_of(slots_.begin(), slots_.end(), [](const Slot& slot) { return slot.busy && !slot.model; });
}

void ModelSet::load_on_demand() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (Slot* const slot = next_to_load()) {
      slot->busy = true;
      lock.unlock();
      load_slot(*slot);
      lock.lock();
    } else if (std::any_of(slots_.begin(), slots_.end(), [](const Slot& s) { return !s.busy && !s.waiting.empty(); })) {
      asked_.wait_for(lock, kLookForRoom);
    } else {
      asked_.wait(lock);
    }
  }
}

// Returns the model that has been waited for longest, among those for which there may be room.
ModelSet::Slot* ModelSet::next_to_load() {
  Slot* next = nullptr;
  for (Slot& slot : slots_)
    if (!slot.busy && !slot.waiting.empty() && (slot.need == 0 || can_make_room(slot.need)) &&
        !(slot.imports && importing_ == kImporters) && (!next || slot.waiting.front().number < next->waiting.front().number))
      next = &slot;
  return next;
}

SearchBudget ModelSet::budget_of(const FoundModel& found) const {
  UsableMemory memory = memory_;
  memory.bytes = std::max<int64_t>(0, memory.bytes - found.weight_bytes - options_.scheduler.cache_bytes);
  return search_budget(found, options_, memory);
}

int64_t ModelSet::bytes_of(const FoundModel& found, const SearchBudget& budget) const {
  return found.weight_bytes + budget.bytes + options_.scheduler.cache_bytes;
}

// Returns false, and leaves the slot waiting, if as many others are being imported as may be.
bool ModelSet::begin_import(Slot& slot) {
  const std::lock_guard lock(mutex_);
  slot.imports = importing_ == kImporters;
  slot.busy = !slot.imports;
  importing_ += !slot.imports;
  return !slot.imports;
}

// The slot is busy, and has no model.
void ModelSet::load_slot(Slot& slot) {
  const double begin = serve_seconds();
  bool imports = false;
  std::shared_ptr<ServedModel> model;
  std::string what, why;
  try {
    if (!options_.on_demand.ready(slot.source.path)) {
      if (!begin_import(slot)) return;
      imports = true;
    }
    FoundModel found = find_model(files_, slot.source, options_);
    if (found.directions != slot.directions)
      throw DataError(
          fmt::format("{}: it now translates from {}; restart the server", found.description.directory, direction_text(found.directions)));
    const SearchBudget budget = budget_of(found);
    const int64_t bytes = bytes_of(found, budget);
    {
      std::unique_lock lock(mutex_);
      if (!reserve(slot, bytes, lock)) {
        slot.need = bytes;
        slot.busy = false;
        importing_ -= imports;
        return;
      }
    }
    model = load_found(
        files_, std::move(found), options_, [&](const LoadedModel&) { return budget; }, metrics_);
    what = fmt::format("{}, {}; {}", model->text(), model->model().precision, budget.text());
  } catch (const std::exception& e) {
    why = e.what();
  }
  std::list<Waiting> waiting;
  const double now = serve_seconds();
  std::optional<ApiError> refused;
  if (model) slot.read = slot.seen = files_seen(slot, *model);
  {
    const std::lock_guard lock(mutex_);
    slot.busy = slot.imports = false;
    importing_ -= imports;
    slot.reserved = slot.need = 0;
    slot.model = model;
    slot.retry_at = model ? 0 : now + options_.on_demand.retry_seconds;
    if (!model) refused = failed(slot, now);
    waiting.swap(slot.waiting);
    publish();
  }
  metrics_.count("starling_model_loads_total", model ? "result=\"loaded\"" : "result=\"failed\"");
  options_.on_demand.say(model ? fmt::format("{}; loaded in {:.1f} s", what, now - begin)
                               : fmt::format("{}: not loaded: {}", direction_text(slot.directions), why));
  for (; !waiting.empty(); waiting.pop_front())
    waiting.front().ready(waiting.size() == 1 ? std::move(model) : model, refused);  // not held longer than by those who asked
}

int64_t ModelSet::taken() const {
  int64_t bytes = releasing_;
  for (const Slot& slot : slots_) bytes += slot.reserved + (slot.model ? slot.model->bytes() : 0);
  for (const auto& model : retired_) bytes += model->bytes();
  return bytes;
}

// References are only taken with the lock held, so that a model that only its slot refers to is not in use.
bool ModelSet::may_drop(const Slot& slot) const { return slot.model && !slot.busy && slot.model.use_count() == 1; }

bool ModelSet::can_make_room(int64_t bytes) const {
  int64_t in_use = taken() - releasing_;
  for (const Slot& slot : slots_)
    if (may_drop(slot)) in_use -= slot.model->bytes();
  for (const auto& model : retired_)
    if (model.use_count() == 1) in_use -= model->bytes();
  return in_use + bytes <= memory_.bytes;
}

// Takes replaced models out of the set that nobody uses any more, or else the model that has not been asked for longest; returns nothing if
// all are in use.
ModelSet::Models ModelSet::take_longest_unused() {
  Models gone;
  std::erase_if(retired_, [&](std::shared_ptr<ServedModel>& model) {
    if (model.use_count() > 1) return false;
    gone.push_back(std::move(model));
    return true;
  });
  if (!gone.empty()) return gone;
  Slot* longest = nullptr;
  for (Slot& slot : slots_)
    if (may_drop(slot) && (!longest || slot.asked < longest->asked)) longest = &slot;
  if (!longest) return gone;
  gone.push_back(std::move(longest->model));
  longest->model = nullptr;
  publish();
  metrics_.count("starling_model_drops_total");
  options_.on_demand.say(fmt::format("{}: unloaded, since others need its memory", direction_text(longest->directions)));
  return gone;
}

// Grants memory to a model that a slot is about to load, dropping others if necessary. Returns false if those in use leave too little.
bool ModelSet::reserve(Slot& slot, int64_t bytes, std::unique_lock<std::mutex>& lock) {
  while (taken() + bytes > memory_.bytes) {
    if (!can_make_room(bytes)) return false;
    Models gone = take_longest_unused();
    if (gone.empty()) {  // others are being destroyed
      asked_.wait_for(lock, kLookForRoom);
      continue;
    }
    int64_t freed = 0;
    for (const auto& model : gone) freed += model->bytes();
    releasing_ += freed;
    lock.unlock();
    gone.clear();  // waits for their threads
    lock.lock();
    releasing_ -= freed;
  }
  slot.reserved = bytes;
  return true;
}

}  // namespace starling
