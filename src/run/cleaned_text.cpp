#include "run/cleaned_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/affinity.h"
#include "base/quotes.h"
#include "cleaning/choosing.h"
#include "cleaning/cleaner.h"
#include "data/text_stream.h"

namespace starling {
namespace {

bool is_cleaned(FileSystem& files, const CleanJob& job) {
  const std::string record = join_path(job.output, "clean.json");
  if (!files.exists(record)) {
    if (!files.exists(job.output)) return false;
    throw ConfigError(fmt::format("{}: is in the way of the cleaned text, and 'starling clean' has not made it; move it elsewhere",
                                  printable(job.output)));
  }
  const auto json = nlohmann::json::parse(files.read_file(record), nullptr, false);
  if (json.is_object() && json.contains("facts") && json["facts"].is_string() && json["facts"] == facts_hash(job)) return true;
  throw ConfigError(fmt::format("{}: was cleaned from other text, or with other keys of the section clean; remove it to clean again",
                                printable(job.output)));
}

void clean_here(FileSystem& files, const CleanJob& job, const Say& say, const TaskScreen& screen) {
  if (is_cleaned(files, job)) return;
  say("cleaning the training text first, as the section clean asks\n");
  files.make_directories(parent_path(job.output));
  const CleanReport report = clean(job, files, screen);
  say(fmt::format("{}look at {}\n", clean_text(report), printable(join_path(job.output, "report.html"))));
}

}  // namespace

CleanJob clean_job(const Config& config, const std::string& output) {
  CleanJob job{.data = config.data, .languages = config.languages, .options = config.clean, .output = output};
  job.threads = config.train.threads > 0 ? config.train.threads : usable_cores();
  for (const ValidSet& set : config.valid.texts()) {
    CorpusFiles& held = job.held_out.emplace_back();
    held.source = set.source;
    held.target = set.target;
  }
  return job;
}

void take_cleaned(Config& config, const std::string& directory) {
  const size_t count = config.data.train.size();
  for (size_t i = 0; i < count; ++i) {
    CorpusFiles& corpus = config.data.train[i];
    corpus.source = corpus.target = corpus.scores = "";
    corpus.clean.clear();
    corpus.tsv = join_path(directory, kept_file(i, count, false));
    if (!corpus.sentence_weights.empty()) corpus.sentence_weights = join_path(directory, weights_file(i, count));
  }
  config.clean = {};
  std::erase_if(config.named, [](const std::string& key) { return key.starts_with("clean."); });
}

void clean_together(FileSystem& files, Config& config, World& world, const Say& say, const TaskScreen& screen) {
  const bool any = config.clean != CleanOptions() || std::any_of(config.data.train.begin(), config.data.train.end(),
                                                                 [](const CorpusFiles& corpus) { return !corpus.clean.empty(); });
  if (world.comm->size() > 1) {
    const std::vector<std::string> all = gather_texts(*world.comm, any ? "cleaned" : "as it is");
    if (std::any_of(all.begin(), all.end(), [&](const std::string& one) { return one != all[0]; }))
      throw ConfigError("the ranks have different configurations: only some have keys of the section clean; give every host the same file");
  }
  if (!any) return;
  if (!config.clean.before_training)
    throw ConfigError(
        "the section clean does nothing in training by itself; set clean.before-training: true, or run 'starling clean' with this "
        "configuration first and train with the train.yml that it writes");
  if (is_stream(config.data))
    throw ConfigError(
        "clean.before-training is for text in files, but data.tsv is a pipe; clean it first: producer | starling clean --data.tsv - -o "
        "cleaned");
  require_data(config);
  const CleanJob job = clean_job(config, join_path(config.train.output, "cleaned"));
  if (world.comm->rank() == 0) clean_here(files, job, say, screen);
  world.comm->barrier().wait(kNoDeadline);
  if (world.comm->rank() != 0 && world.local_rank == 0) clean_here(files, job, say, screen);
  world.comm->barrier().wait(kNoDeadline);
  take_cleaned(config, job.output);
}

}  // namespace starling
