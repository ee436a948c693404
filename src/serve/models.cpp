#include "serve/models.h"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <limits>
#include <thread>

#include "decode/framing.h"
#include "metrics/metrics.h"
#include "text/language_match.h"

namespace starling {
namespace {

bool same(const Direction& a, const Direction& b) { return same_language(a.source, b.source) && same_language(a.target, b.target); }

// Returns the identity, size and time of the files that make up a model in a directory.
std::string files_state(const std::string& directory) {
  std::string state;
  for (const char* name : {".", "model.safetensors", "config.yml", "decode.yml"}) {
    struct stat s {};
    if (stat(join_path(directory, name).c_str(), &s) == 0)
      state += fmt::format("{}:{}:{}.{} ", s.st_ino, s.st_size, s.st_mtim.tv_sec, s.st_mtim.tv_nsec);
  }
  return state;
}

// Does the same for the named directory, for those of a run that may hold a model, and for the directory that the model was read from.
std::string directory_state(const std::string& path, const ServedModel& model) {
  std::string state;
  for (const std::string& directory : {path, join_path(path, "best"), join_path(path, "checkpoints"), model.model().description.directory})
    state += files_state(directory);
  return state;
}

SearchOptions for_translations(SearchOptions search, int64_t translations) {
  search.n_best = translations;
  search.beam = std::max(search.beam, translations);
  return search;
}

SchedulerLimits with_rows(SchedulerLimits limits, int64_t rows) {
  limits.rows = rows;
  return limits;
}

}  // namespace

ServedModel::ServedModel(LoadedModel model, Direction direction, const ModelOptions& options, const SearchBudget& budget, Metrics& metrics)
    : model_(std::move(model)),
      direction_(std::move(direction)),
      search_(with_prefixes(options.search(model_.description.search), model_.description.vocabularies)),
      max_source_tokens_(std::min(options.max_source_tokens, longest_sentence(model_.description.config) - 1 -
                                                                 static_cast<int64_t>(search_.source_prefix_ids.size()))),
      budget_(budget),
      cache_bytes_(options.scheduler.cache_bytes),
      scheduler_(with_rows(options.scheduler, budget.rows), metrics),
      workers_(model_, scheduler_, metrics) {
  require_room(search_, model_.description.config);
}

std::vector<Candidates> ServedModel::translate(const std::vector<std::string>& sentences) {
  std::promise<Scheduler::Outcome> promise;
  auto outcome = promise.get_future();
  scheduler_.submit(sentences, search(1), serve_seconds(), std::numeric_limits<double>::infinity(),
                    [&](Scheduler::Outcome o) { promise.set_value(std::move(o)); });
  Scheduler::Outcome o = outcome.get();
  if (o.end != Scheduler::End::done) throw DataError(fmt::format("{}: cannot translate: {}", model_.description.directory, o.error));
  return std::move(o.translations);
}

SearchOptions ServedModel::search(int64_t translations) const { return for_translations(search_, translations); }

std::string ServedModel::text() const {
  return fmt::format("{} to {}: {}, step {}", direction_.source, direction_.target, model_.description.directory, model_.description.step);
}

ModelSet::ModelSet(std::vector<ModelSource> sources, ModelOptions options, FileSystem& files, Metrics& metrics)
    : options_(std::move(options)), files_(files), metrics_(metrics) {
  for (ModelSource& source : sources) slots_.push_back({std::move(source), nullptr, "", ""});
}

std::shared_ptr<ServedModel> ModelSet::read(const ModelSource& source, int64_t promised) const {
  ModelDescription description = describe_model(files_, source.path);
  const Languages& own = description.languages;
  if (!source.direction && (own.source.empty() || own.target.empty()))
    throw ConfigError(
        fmt::format("{}: the model does not say its languages; name them: --model en-de={}", description.directory, source.path));
  const Direction direction = source.direction.value_or(Direction{own.source, own.target});
  const std::string directory = description.directory, before = files_state(directory);
  LoadedModel loaded = load_model(files_, std::move(description), options_.compute);
  if (files_state(directory) != before)
    throw DataError(fmt::format(
        "{}: has changed while it was read, and may be half of one model and half of another; make a new model beside it and rename it",
        directory));
  const SearchOptions search = options_.search(loaded.description.search);
  UsableMemory memory = options_.memory();
  memory.bytes = std::max<int64_t>(0, memory.bytes - promised);
  const SearchBudget fit = fit_search_budget(loaded,
                                             {options_.scheduler.rows, options_.max_source_tokens, for_translations(search, 1),
                                              for_translations(search, 1 + options_.alternatives)},
                                             memory);
  auto model = std::make_shared<ServedModel>(std::move(loaded), direction, options_, fit, metrics_);
  // The first translation is slow, and a model that cannot translate must not be served.
  model->translate({"Hello, world!"});
  return model;
}

void ModelSet::load() {
  std::vector<std::shared_ptr<ServedModel>> models;
  int64_t promised = 0;
  for (Slot& slot : slots_) {
    auto model = read(slot.source, promised);
    promised += model->promised_bytes();
    for (const auto& other : models)
      if (same(other->direction(), model->direction()))
        throw ConfigError(fmt::format("--model {}: there is a model from {} to {} already; leave one out", slot.source.path,
                                      model->direction().source, model->direction().target));
    slot.read = slot.seen = directory_state(slot.source.path, *model);
    models.push_back(std::move(model));
  }
  const std::lock_guard lock(mutex_);
  for (size_t i = 0; i < slots_.size(); ++i) slots_[i].model = models[i];
  publish();
}

std::vector<std::string> ModelSet::reload(bool all) {
  std::vector<std::string> said;
  for (Slot& slot : slots_) {
    if (!slot.model) continue;
    const std::string now = directory_state(slot.source.path, *slot.model);
    const bool settled = now == slot.seen;  // not being written at the moment
    slot.seen = now;
    if (all || (settled && now != slot.read)) said.push_back(replace(slot));
  }
  sweep();
  return said;
}

std::string ModelSet::replace(Slot& slot) {
  const std::shared_ptr<ServedModel> old = slot.model;
  const std::string before = slot.seen;
  slot.read = before;  // set first, so that the same files are never tried twice
  try {
    int64_t promised = 0;  // granted to the other models, which may not have allocated it yet
    for (const Slot& other : slots_)
      if (&other != &slot && other.model) promised += other.model->promised_bytes();
    const std::shared_ptr<ServedModel> model = read(slot.source, promised);
    if (!same(model->direction(), old->direction()))
      throw DataError(fmt::format("{}: it translates from {} to {}", model->model().description.directory, model->direction().source,
                                  model->direction().target));
    std::vector<std::string> sources, translations, now;
    for (const auto& [source, translation] : old->scheduler().samples()) {
      sources.push_back(source);
      translations.push_back(translation);
    }
    for (const Candidates& c : model->translate(sources)) now.push_back(c.empty() ? "" : c.front().text);
    const double alike = sources.empty() ? 100 : corpus_chrf(now, translations).score;
    if (alike < kLeastAlike)
      throw DataError(fmt::format("{}: its translations of the last {} sentences have chrF {:.1f} against those before, less than {}",
                                  model->model().description.directory, sources.size(), alike, kLeastAlike));
    slot.read = slot.seen = directory_state(slot.source.path, *model);
    {
      const std::lock_guard lock(mutex_);
      slot.model = model;
      retired_.push_back(old);
      publish();
    }
    metrics_.count("starling_reloads_total", "result=\"swapped\"");
    const std::string lowered = model->budget().rows < model->budget().asked ? "; " + model->budget().text() : "";
    return fmt::format("{} to {}: now {}, step {}{}", model->direction().source, model->direction().target,
                       model->model().description.directory, model->model().description.step, lowered);
  } catch (const std::exception& e) {
    metrics_.count("starling_reloads_total", "result=\"kept\"");
    return fmt::format("{} to {}: the current model stays in use: {}", old->direction().source, old->direction().target, e.what());
  }
}

// Destroys replaced models that nobody uses any more. This is not left to the last reference: a worker that delivers its last answer may
// hold it, and a model must not be destroyed on one of its own threads.
void ModelSet::sweep() {
  std::vector<std::shared_ptr<ServedModel>> unused;
  const std::lock_guard lock(mutex_);
  std::erase_if(retired_, [&](std::shared_ptr<ServedModel>& model) {
    if (model.use_count() > 1) return false;
    unused.push_back(std::move(model));
    return true;
  });
}

void ModelSet::stop() {
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

void ModelSet::publish() const {
  metrics_.clear("starling_model_info");
  for (const Slot& slot : slots_)
    metrics_.set("starling_model_info",
                 fmt::format("source=\"{}\",target=\"{}\",step=\"{}\",precision=\"{}\"", label_value(slot.model->direction().source),
                             label_value(slot.model->direction().target), slot.model->model().description.step,
                             label_value(slot.model->model().precision)),
                 1);
}

bool ModelSet::loaded() const { return !all().empty(); }

std::vector<std::shared_ptr<ServedModel>> ModelSet::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<ServedModel>> models;
  for (const Slot& slot : slots_)
    if (slot.model) models.push_back(slot.model);
  return models;
}

std::vector<Direction> ModelSet::directions() const {
  std::vector<Direction> all;
  for (const auto& model : this->all()) all.push_back(model->direction());
  return all;
}

std::shared_ptr<ServedModel> ModelSet::find(const std::string& source, const std::string& target) const {
  for (const auto& model : all())
    if (same_language(model->direction().source, source) && same_language(model->direction().target, target)) return model;
  return nullptr;
}

}  // namespace starling
