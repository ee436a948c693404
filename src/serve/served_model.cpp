#include "serve/served_model.h"

#include <sys/stat.h>

#include <algorithm>
#include <future>
#include <limits>

#include "decode/framing.h"
#include "storage/safetensors.h"

namespace starling {
namespace {

SearchOptions for_translations(SearchOptions search, int64_t translations) {
  search.n_best = translations;
  search.beam = std::max(search.beam, translations);
  return search;
}

// The options of each direction.
std::vector<SearchOptions> searches_of(const ModelDescription& d, const std::vector<Direction>& directions, const ModelOptions& options) {
  std::vector<SearchOptions> all;
  const bool tagged = !language_tags(d.languages).empty();
  for (const Direction& direction : directions) {
    SearchOptions search = options.search(d.search);
    // Without a tag the command line may call the languages as it likes.
    if (tagged || !target_tag(d, direction.target).empty()) search = into_language(std::move(search), d, direction.target);
    all.push_back(with_prefixes(std::move(search), d.vocabularies));
  }
  return all;
}

int64_t longest_prefix(const std::vector<SearchOptions>& searches) {
  size_t longest = 0;
  for (const SearchOptions& o : searches) longest = std::max(longest, o.source_prefix_ids.size());
  return static_cast<int64_t>(longest);
}

SchedulerLimits with_rows(SchedulerLimits limits, int64_t rows) {
  limits.rows = rows;
  return limits;
}

// The weights as they are kept, in f32, and their copies in the order and precision of the products.
int64_t bytes_of_weights(FileSystem& files, const ModelDescription& description, const DeviceChoice& compute) {
  const std::string precision = resolve(compute, description.quantized).precision;
  const int64_t packed = precision == "int8" ? 1 : precision == "bf16" ? 2 : 4;
  int64_t elements = 0;
  const SafetensorsFile weights(files, join_path(description.directory, "model.safetensors"));
  for (const NamedBytes& tensor : weights.tensors()) {
    int64_t count = 1;
    for (const int64_t extent : tensor.shape) count *= extent;
    elements += count;
  }
  return elements * (4 + packed);
}

}  // namespace

ServedModel::ServedModel(LoadedModel model, std::vector<Direction> directions, const ModelOptions& options, const SearchBudget& budget,
                         int64_t weight_bytes, Metrics& metrics)
    : model_(std::move(model)),
      directions_(std::move(directions)),
      searches_(searches_of(model_.description, directions_, options)),
      max_source_tokens_(std::min(options.max_source_tokens, longest_sentence(model_.description.config) - 1 - longest_prefix(searches_))),
      budget_(budget),
      weight_bytes_(weight_bytes),
      cache_bytes_(options.scheduler.cache_bytes),
      scheduler_(with_rows(options.scheduler, budget.rows), metrics),
      workers_(model_, scheduler_, metrics) {
  for (const SearchOptions& search : searches_) require_room(search, model_.description.config);
}

std::vector<Candidates> ServedModel::translate(const std::vector<std::string>& sentences, const Direction& direction) {
  std::promise<Scheduler::Outcome> promise;
  auto outcome = promise.get_future();
  scheduler_.submit(sentences, search(direction, 1), serve_seconds(), std::numeric_limits<double>::infinity(),
                    [&](Scheduler::Outcome o) { promise.set_value(std::move(o)); });
  Scheduler::Outcome o = outcome.get();
  if (o.end != Scheduler::End::done) throw DataError(fmt::format("{}: cannot translate: {}", model_.description.directory, o.error));
  return std::move(o.translations);
}

SearchOptions ServedModel::search(const Direction& direction, int64_t translations) const {
  const auto found = std::find_if(directions_.begin(), directions_.end(), [&](const Direction& d) { return same_direction(d, direction); });
  CHECK(found != directions_.end(), "no direction {} to {}", direction.source, direction.target);
  return for_translations(searches_[static_cast<size_t>(found - directions_.begin())], translations);
}

std::string ServedModel::text() const {
  return fmt::format("{}: {}, step {}", direction_text(directions_), model_.description.directory, model_.description.step);
}

std::string files_state(const std::string& directory) {
  std::string state;
  for (const char* name : {"", "/model.safetensors", "/config.yml", "/decode.yml", "/confidence.json"}) {
    struct stat s {};
    if (stat((directory + name).c_str(), &s) == 0)
      state += fmt::format("{}:{}:{}.{} ", s.st_ino, s.st_size, s.st_mtim.tv_sec, s.st_mtim.tv_nsec);
  }
  return state;
}

FoundModel find_model(FileSystem& files, const ModelSource& source, const ModelOptions& options) {
  ModelDescription description = describe_model(files, options.on_demand.usable(source.path, options.on_demand.say));
  std::vector<Direction> directions = served_directions(source, languages_with_tags(description));
  std::string state = files_state(description.directory);
  const int64_t bytes = bytes_of_weights(files, description, options.compute);
  return {std::move(description), std::move(directions), std::move(state), bytes};
}

SearchBudget search_budget(const ModelDescription& description, const std::vector<Direction>& directions, const Backend& backend,
                           const ModelOptions& options, const UsableMemory& memory) {
  const SearchOptions search = searches_of(description, directions, options).front();  // prefixes of directions are about equally long
  return fit_search_budget(
      description, backend,
      {options.scheduler.rows, options.max_source_tokens, for_translations(search, 1), for_translations(search, 1 + options.alternatives)},
      memory);
}

SearchBudget search_budget(const FoundModel& found, const ModelOptions& options, const UsableMemory& memory) {
  return search_budget(found.description, found.directions, *make_backend(resolve(options.compute, found.description.quantized)), options,
                       memory);
}

std::shared_ptr<ServedModel> load_found(FileSystem& files, FoundModel found, const ModelOptions& options,
                                        const std::function<SearchBudget(const LoadedModel&)>& budget, Metrics& metrics) {
  const std::string directory = found.description.directory;
  LoadedModel loaded = load_model(files, std::move(found.description), options.compute);
  if (files_state(directory) != found.files)
    throw DataError(fmt::format(
        "{}: changed while it was being read, so it may be a mixture of two models; write a new model beside it, then rename it",
        directory));
  if (!loaded.confidence.model && files.exists(join_path(directory, kConfidenceFile))) options.on_demand.say(loaded.confidence.why_not);
  for (const SearchOptions& search : searches_of(loaded.description, found.directions, options))
    if (TagCheck(loaded.description.vocabularies.source(), search).needs_tags())
      options.on_demand.say(
          fmt::format("{}: each text must begin with a tag of the target language, such as {}; name a language that has one: "
                      "--model en-fr={}",
                      directory, typed_tags(loaded.description.vocabularies.source()).front(), directory));
  const SearchBudget granted = budget(loaded);
  auto model = std::make_shared<ServedModel>(std::move(loaded), std::move(found.directions), options, granted, found.weight_bytes, metrics);
  model->translate({"Hello, world!"}, model->directions().front());
  return model;
}

}  // namespace starling
