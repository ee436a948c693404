#include "serve/models.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <limits>
#include <thread>

namespace starling {
namespace {

bool same(const Direction& a, const Direction& b) { return same_language(a.source, b.source) && same_language(a.target, b.target); }

}  // namespace

ModelSource parse_model_source(const std::string& text) {
  const size_t equals = text.find('=');
  const std::string before = text.substr(0, equals);
  if (equals == std::string::npos || before.find('/') != std::string::npos) return {std::nullopt, text};
  const size_t colon = before.find(':'), cut = colon == std::string::npos ? before.find('-') : colon;
  Direction d;
  if (cut != std::string::npos) d = {before.substr(0, cut), before.substr(cut + 1)};
  const bool one_hyphen = colon != std::string::npos || before.find('-', cut + 1) == std::string::npos;
  if (!is_language_code(d.source) || !is_language_code(d.target) || !one_hyphen)
    throw ConfigError(fmt::format(
        "--model {}: '{}' is no direction; write en-de=DIR, with longer codes zh-Hant:en=DIR, for a path with '=' ./DIR", text, before));
  return {d, text.substr(equals + 1)};
}

ServedModel::ServedModel(LoadedModel model, Direction direction, const ModelOptions& options, Metrics& metrics)
    : model_(std::move(model)),
      direction_(std::move(direction)),
      search_(options.search(model_.description.search)),
      max_source_tokens_(options.max_source_tokens),
      scheduler_(options.scheduler, metrics),
      workers_(model_, options.whole_batches, scheduler_, metrics) {}

std::vector<Candidates> ServedModel::translate(const std::vector<std::string>& sentences) {
  std::promise<Scheduler::Outcome> promise;
  auto outcome = promise.get_future();
  scheduler_.submit(sentences, search(1), serve_seconds(), std::numeric_limits<double>::infinity(),
                    [&](Scheduler::Outcome o) { promise.set_value(std::move(o)); });
  Scheduler::Outcome o = outcome.get();
  if (o.end != Scheduler::End::done) throw DataError(fmt::format("{}: cannot translate: {}", model_.description.directory, o.error));
  return std::move(o.translations);
}

SearchOptions ServedModel::search(int64_t translations) const {
  SearchOptions search = search_;
  search.n_best = translations;
  search.beam = std::max(search.beam, translations);
  return search;
}

std::shared_ptr<ServedModel> ModelSet::read(const ModelSource& source) const {
  ModelDescription description = describe_model(files_, source.path);
  const Languages& own = description.languages;
  if (!source.direction && (own.source.empty() || own.target.empty()))
    throw ConfigError(
        fmt::format("{}: the model does not say its languages; name them: --model en-de={}", description.directory, source.path));
  const Direction direction = source.direction.value_or(Direction{own.source, own.target});
  auto model = std::make_shared<ServedModel>(load_model(files_, std::move(description), options_.precision, options_.threads), direction,
                                             options_, metrics_);
  // The first translation takes longer, and a model that cannot translate must not be served.
  model->translate({"Hello, world!"});
  return model;
}

void ModelSet::load() {
  std::vector<std::shared_ptr<ServedModel>> models;
  for (const ModelSource& source : sources_) {
    auto model = read(source);
    for (const auto& other : models)
      if (same(other->direction(), model->direction()))
        throw ConfigError(fmt::format("--model {}: there is a model from {} to {} already; leave one out", source.path,
                                      model->direction().source, model->direction().target));
    models.push_back(std::move(model));
  }
  const std::lock_guard lock(mutex_);
  models_ = std::move(models);
  publish();
}

void ModelSet::stop() {
  std::vector<std::shared_ptr<ServedModel>> models;
  {
    const std::lock_guard lock(mutex_);
    models = std::move(models_);
    models_.clear();
  }
  // A worker that is just giving its last answer may hold a model, which must not end on a thread of its own.
  for (auto& model : models) {
    while (model.use_count() > 1) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    model.reset();
  }
}

void ModelSet::publish() const {
  metrics_.clear("starling_model_info");
  for (const auto& m : models_)
    metrics_.set("starling_model_info",
                 fmt::format("source=\"{}\",target=\"{}\",step=\"{}\",precision=\"{}\"", label_value(m->direction().source),
                             label_value(m->direction().target), m->model().description.step, label_value(m->model().precision)),
                 1);
}

bool ModelSet::loaded() const {
  const std::lock_guard lock(mutex_);
  return !models_.empty();
}

std::vector<std::shared_ptr<ServedModel>> ModelSet::all() const {
  const std::lock_guard lock(mutex_);
  return models_;
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
