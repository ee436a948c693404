#include "serve/models.h"

#include <algorithm>
#include <chrono>

#include "base/resource_error.h"
#include "metrics/metrics.h"
#include "text/language_match.h"

namespace starling {
namespace {

// Returns how alike a model translates what another one has translated: chrF, 100 if that was nothing. Of a model of several directions,
// each takes what was translated with its prefix.
double alikeness(ServedModel& model, std::vector<TranslationSample> samples) {
  std::vector<std::string> translations, now;
  for (const Direction& direction : model.directions()) {
    const std::string prefix = model.search(direction, 1).source_prefix;
    std::vector<std::string> sources;
    std::erase_if(samples, [&](const TranslationSample& s) {
      if (model.directions().size() > 1 && s.source_prefix != prefix) return false;
      sources.push_back(s.source);
      translations.push_back(s.translation);
      return true;
    });
    for (const Candidates& c : model.translate(sources, direction)) now.push_back(c.empty() ? "" : c.front().text);
  }
  return now.empty() ? 100 : corpus_chrf(now, translations).score;
}

}  // namespace

std::string ModelSet::files_seen(const Slot& slot, const ServedModel& model) const {
  const std::string& path = slot.source.path;
  std::string state = files_state(path);
  for (const std::string& directory : {join_path(path, "best"), join_path(path, "checkpoints"), model.model().description.directory})
    state += files_state(directory);
  try {
    return state + options_.on_demand.state(path);
  } catch (const Error& e) {
    return state + e.what();
  }
}

ConfigError served_twice(const ModelSource& source, const Direction& direction) {
  return ConfigError(fmt::format("--model {}: another model already translates from {} to {}; leave out one of them", source.path,
                                 direction.source, direction.target));
}

ModelSet::ModelSet(std::vector<ModelSource> sources, ModelOptions options, FileSystem& files, Metrics& metrics)
    : options_(std::move(options)), files_(files), metrics_(metrics) {
  for (ModelSource& source : sources) slots_.emplace_back().source = std::move(source);
}

std::shared_ptr<ServedModel> ModelSet::read(const ModelSource& source, int64_t promised) const {
  FoundModel found = find_model(files_, source, options_);
  const auto budget = [&, directions = found.directions](const LoadedModel& loaded) {
    UsableMemory memory = options_.memory();
    memory.bytes = std::max<int64_t>(0, memory.bytes - promised);
    return search_budget(loaded.description, directions, *loaded.backend, options_, memory);
  };
  return load_found(files_, std::move(found), options_, budget, metrics_);
}

void ModelSet::load() {
  if (options_.on_demand.on) return find_all();
  Models models;
  int64_t promised = 0;
  for (Slot& slot : slots_) {
    auto model = read(slot.source, promised);
    promised += model->promised_bytes();
    for (const auto& other : models)
      if (const Direction* twice = common_direction(model->directions(), other->directions())) throw served_twice(slot.source, *twice);
    slot.read = slot.seen = files_seen(slot, *model);
    models.push_back(std::move(model));
  }
  const std::lock_guard lock(mutex_);
  auto model = models.begin();
  for (Slot& slot : slots_) {
    slot.model = std::move(*model++);
    slot.directions = slot.model->directions();
  }
  loaded_ = true;
  publish();
}

std::vector<std::string> ModelSet::reload(bool all) {
  std::vector<std::string> said;
  for (Slot& slot : slots_) {
    std::shared_ptr<ServedModel> model;
    {
      const std::lock_guard lock(mutex_);
      if (all) slot.retry_at = 0;
      if (slot.busy || !slot.model) continue;
      slot.busy = true;
      model = slot.model;
    }
    const std::string now = files_seen(slot, *model);
    model.reset();
    const bool settled = now == slot.seen;  // not being written at the moment
    slot.seen = now;
    if (all || (settled && now != slot.read)) said.push_back(replace(slot));
    const std::lock_guard lock(mutex_);
    slot.busy = false;
  }
  sweep();
  return said;
}

// Reads the model that is to replace the one of a slot, when there is room for both.
std::shared_ptr<ServedModel> ModelSet::read_replacement(Slot& slot) {
  if (!options_.on_demand.on) {
    int64_t promised = 0;  // granted to the other models, which may not have allocated it yet
    for (const Slot& other : slots_)
      if (&other != &slot && other.model) promised += other.model->promised_bytes();
    return read(slot.source, promised);
  }
  FoundModel found = find_model(files_, slot.source, options_);
  const SearchBudget budget = budget_of(found);
  const int64_t bytes = bytes_of(found, budget);
  {
    std::unique_lock lock(mutex_);
    if (!reserve(slot, bytes, lock))
      throw ResourceError(
          fmt::format("{}: needs {} MiB in addition to the current version and the models in use; raise --memory, or send SIGHUP later",
                      found.description.directory, bytes >> 20));
  }
  return load_found(
      files_, std::move(found), options_, [&](const LoadedModel&) { return budget; }, metrics_);
}

std::string ModelSet::replace(Slot& slot) {
  std::shared_ptr<ServedModel> old;
  {
    const std::lock_guard lock(mutex_);
    old = slot.model;
  }
  slot.read = slot.seen;  // set first, so that the same files are never tried twice
  std::string outcome;
  try {
    const std::shared_ptr<ServedModel> model = read_replacement(slot);
    const ModelDescription& description = model->model().description;
    for (const Direction& d : old->directions())
      if (!common_direction({d}, model->directions()))
        throw DataError(
            fmt::format("{}: its directions are now {}, which lack one that is being served; restart the server to change directions",
                        description.directory, direction_text(model->directions())));
    const auto samples = old->scheduler().samples();
    const double alike = alikeness(*model, samples);
    if (alike < kLeastAlike)
      throw DataError(fmt::format(
          "{}: its translations of the last {} sentences differ too much from the current model's (chrF {:.1f}, at least {} is required)",
          description.directory, samples.size(), alike, kLeastAlike));
    slot.read = slot.seen = files_seen(slot, *model);
    {
      const std::lock_guard lock(mutex_);
      slot.model = model;
      slot.reserved = 0;
      retired_.push_back(old);
      publish();
    }
    metrics_.count("starling_reloads_total", "result=\"swapped\"");
    const std::string lowered = model->budget().rows < model->budget().asked ? "; " + model->budget().text() : "";
    outcome = fmt::format("{}: now {}, step {}{}", direction_text(model->directions()), description.directory, description.step, lowered);
  } catch (const std::exception& e) {
    metrics_.count("starling_reloads_total", "result=\"kept\"");
    outcome = fmt::format("{}: the current model stays in use: {}", direction_text(old->directions()), e.what());
  }
  const std::lock_guard lock(mutex_);
  slot.reserved = 0;
  return outcome;
}

// Destroys replaced models that nobody uses any more. This is not left to the last reference: a worker that delivers its last answer may
// hold it, and a model must not be destroyed on one of its own threads.
void ModelSet::sweep() {
  Models unused;
  const std::lock_guard lock(mutex_);
  std::erase_if(retired_, [&](std::shared_ptr<ServedModel>& model) {
    if (model.use_count() > 1) return false;
    unused.push_back(std::move(model));
    return true;
  });
}

void ModelSet::stop() {
  std::list<Waiting> refused;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    loaded_ = false;
    for (Slot& slot : slots_) refused.splice(refused.end(), slot.waiting);
  }
  asked_.notify_all();
  for (const Waiting& w : refused) w.ready(nullptr, ApiError(503, kStopping));
  for (std::thread& loader : loaders_) loader.join();
  loaders_.clear();
  {
    const std::lock_guard lock(mutex_);
    for (Slot& slot : slots_)
      if (slot.model) retired_.push_back(std::move(slot.model));
  }
  for (;;) {
    sweep();
    {
      const std::lock_guard lock(mutex_);
      if (retired_.empty()) return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

// Called with the lock held.
void ModelSet::publish() const {
  metrics_.clear("starling_model_info");
  int64_t loaded = 0;
  for (const Slot& slot : slots_) {
    if (!slot.model) continue;
    ++loaded;
    for (const Direction& d : slot.directions)
      metrics_.set("starling_model_info",
                   fmt::format("source=\"{}\",target=\"{}\",step=\"{}\",precision=\"{}\"", label_value(d.source), label_value(d.target),
                               slot.model->model().description.step, label_value(slot.model->model().precision)),
                   1);
  }
  metrics_.set("starling_models_loaded", "", static_cast<double>(loaded));
  metrics_.set("starling_models_bytes", "", static_cast<double>(taken()));
}

std::vector<std::shared_ptr<ServedModel>> ModelSet::all() const {
  const std::lock_guard lock(mutex_);
  Models models;
  for (const Slot& slot : slots_)
    if (slot.model) models.push_back(slot.model);
  return models;
}

std::vector<Direction> ModelSet::directions() const {
  std::vector<Direction> all;
  if (!loaded_) return all;
  for (const Slot& slot : slots_) all.insert(all.end(), slot.directions.begin(), slot.directions.end());
  return all;
}

std::shared_ptr<ServedModel> ModelSet::find(const std::string& source, const std::string& target) const {
  for (const auto& model : all())
    if (common_direction({{source, target}}, model->directions())) return model;
  return nullptr;
}

}  // namespace starling
