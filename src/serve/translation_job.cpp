#include "serve/translation_job.h"

#include <algorithm>
#include <atomic>

#include "http/task_threads.h"
#include "serve/directions.h"
#include "serve/utf16.h"
#include "text/language_match.h"

namespace starling {
namespace {

constexpr int64_t kLargeCharacters = 4 << 10;  // texts from this size on take long to reassemble

// The texts of a query that one model translates.
struct Group {
  std::shared_ptr<ServedModel> model;
  std::vector<size_t> texts;
  int64_t request = 0;  // number in the model's queue
};

// Returns the translation of each part at a rank (0: the best); if a part has fewer, its last one.
std::vector<PartTranslation> of_rank(std::span<const Candidates> translations, size_t rank) {
  std::vector<PartTranslation> all;
  for (const Candidates& c : translations) all.push_back(c.empty() ? PartTranslation{} : c[std::min(rank, c.size() - 1)]);
  return all;
}

struct Job {
  TextQuery query;
  std::vector<std::optional<DocumentParts>> prepared;  // by text; nothing if the text is its own translation
  std::vector<TranslatedText> texts;
  std::vector<Group> groups;
  std::atomic<size_t> missing{0};  // unfinished groups
  std::atomic<bool> ended{false};
  std::function<void(JobResult)> done;

  void end(JobResult result) {
    if (!ended.exchange(true)) done(std::move(result));
  }
  void cancel() {
    if (ended.exchange(true)) return;
    for (const Group& g : groups) g.model->scheduler().cancel(g.request);
  }
  void finish(const Group& group, Scheduler::Outcome outcome) {
    if (outcome.end == Scheduler::End::expired)
      return end({{}, ApiError(504, "the translation was not there in time; send less at once, or later")});
    if (outcome.end == Scheduler::End::failed) return end({{}, ApiError(500, outcome.error)});
    const Vocabularies& vocabularies = group.model->model().description.vocabularies;
    size_t at = 0;
    for (const size_t i : group.texts) {
      const size_t count = prepared[i]->parts().size();
      const std::span translations(outcome.translations.data() + at, count);
      at += count;
      size_t most = 1;
      for (const Candidates& c : translations) most = std::max(most, c.size());
      for (size_t rank = 0; rank < most; ++rank) {
        AlignedText whole = prepared[i]->assemble_with_links(of_rank(translations, rank), vocabularies.source(), vocabularies.target(),
                                                             query.alignment, TaskThreads::give_way);
        if (rank == 0 && query.alignment) texts[i].alignment = utf16_spans(query.texts[i], whole);
        (rank == 0 ? texts[i].text : texts[i].alternatives.emplace_back()) = std::move(whole.text);
      }
    }
    if (--missing == 0) end({std::move(texts), std::nullopt});
  }
};

// Returns the possible languages of a text if the client does not know its language: those that models translate from, and the target,
// since the text may need no translation.
std::vector<std::string> possible_languages(std::span<const Direction> models, const std::string& target) {
  const std::vector<std::string> all = languages_of(models);
  std::vector<std::string> possible = sources_into(models, target);
  if (possible.empty())
    std::copy_if(all.begin(), all.end(), std::back_inserter(possible), [&](const std::string& l) { return !same_language(l, target); });
  possible.push_back(target);
  return possible;
}

// Finds the model for each text, and detects the text's language if necessary.
void find_models(const ModelSet& models, Job& job) {
  const TextQuery& q = job.query;
  const std::vector<Direction> directions = models.directions();
  const bool detect = q.source == "auto";
  const std::string target = detect ? nearest_language(languages_of(directions), q.target) : q.target;
  const std::vector<std::string> possible = detect ? possible_languages(directions, target) : std::vector<std::string>();
  std::optional<Route> route;
  if (!detect) route = route_between(directions, q.source, q.target);
  for (size_t i = 0; i < q.texts.size(); ++i) {
    if (detect) {
      const std::string words = Document(q.texts[i], q.format, "", q.document).words();
      job.texts[i].detected = detect_languages(words, possible).front();
      route = words.empty() ? Route{{}, true} : route_between(directions, job.texts[i].detected->language, target);
    }
    if (route->unchanged) {
      job.texts[i].text = q.texts[i];
      continue;
    }
    const auto model = models.find(route->direction.source, route->direction.target);
    if (!model) throw ApiError(503, "the server is being stopped; ask another one");
    auto group = std::find_if(job.groups.begin(), job.groups.end(), [&](const Group& g) { return g.model == model; });
    if (group == job.groups.end()) group = job.groups.insert(group, {model, {}});
    group->texts.push_back(i);
    job.prepared[i].emplace(Document(q.texts[i], q.format, route->direction.source, q.document),
                            model->model().description.vocabularies.source(), model->max_source_tokens(), TaskThreads::give_way);
  }
}

}  // namespace

std::function<void()> start_translation(const ModelSet& models, const TextQuery& query, const JobLimits& limits, double now,
                                        double deadline, JobSize& size, std::function<void(JobResult)> done) {
  if (std::ssize(query.texts) > limits.sentences)  // even empty texts, which have no sentences, take memory
    throw ApiError(400,
                   fmt::format("Invalid request: {} texts are more than {}; send them in parts", query.texts.size(), limits.sentences));
  const auto job = std::make_shared<Job>();
  job->query = query;
  job->done = std::move(done);
  job->texts.resize(query.texts.size());
  job->prepared.resize(query.texts.size());
  find_models(models, *job);
  for (const auto& p : job->prepared) size.sentences += p ? static_cast<int64_t>(p->parts().size()) : 0;
  for (const std::string& text : query.texts) size.characters += characters_of(text);
  if (size.sentences > limits.sentences)
    throw ApiError(400,
                   fmt::format("Invalid request: {} sentences are more than {}; send them in parts", size.sentences, limits.sentences));
  job->missing = job->groups.size();
  if (job->groups.empty()) job->end({std::move(job->texts), std::nullopt});
  for (Group& group : job->groups) {
    std::vector<std::string> sentences;
    SearchOptions search = group.model->search(1 + query.alternatives);
    search.alignment = query.alignment;
    for (const size_t i : group.texts) {
      const DocumentParts& p = *job->prepared[i];
      sentences.insert(sentences.end(), p.parts().begin(), p.parts().end());
      for (size_t part = 0; part < p.parts().size(); ++part) search.alignment = search.alignment || p.needs_links(part);
    }
    // The worker continues translating while a large translation is reassembled.
    const int64_t characters = size.characters;
    const auto finish = [job, &group, characters](Scheduler::Outcome o) {
      if (o.end != Scheduler::End::done || characters < kLargeCharacters) return job->finish(group, std::move(o));
      group.model->assembling().add(characters, [job, &group, o = std::move(o)]() mutable { job->finish(group, std::move(o)); });
    };
    try {
      group.request = group.model->scheduler().submit(std::move(sentences), search, now, deadline, finish);
    } catch (const QueueFull& e) {
      job->cancel();
      ApiError refused(429, e.what());
      refused.retry_seconds = e.retry_seconds;
      throw refused;
    }
  }
  return [job] { job->cancel(); };
}

}  // namespace starling
