#include "serve/translation_job.h"

#include <algorithm>
#include <atomic>

#include "serve/utf16.h"

namespace starling {
namespace {

// The texts of a query that one model translates.
struct Group {
  std::shared_ptr<ServedModel> model;
  std::vector<size_t> texts;
  int64_t request = 0;  // in the model's queue
};

// The translations of a rank (0: the best); of a sentence that has fewer the last.
std::vector<PartTranslation> of_rank(std::span<const Candidates> translations, size_t rank) {
  std::vector<PartTranslation> all;
  for (const Candidates& c : translations) all.push_back(c.empty() ? PartTranslation{} : c[std::min(rank, c.size() - 1)]);
  return all;
}

struct Job {
  TextQuery query;
  std::vector<DocumentParts> prepared;
  std::vector<TranslatedText> texts;
  std::vector<Group> groups;
  std::atomic<size_t> missing{0};  // groups
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
      const size_t count = prepared[i].parts().size();
      const std::span translations(outcome.translations.data() + at, count);
      at += count;
      size_t most = 1;
      for (const Candidates& c : translations) most = std::max(most, c.size());
      for (size_t rank = 0; rank < most; ++rank) {
        AlignedText whole =
            prepared[i].assemble_with_links(of_rank(translations, rank), vocabularies.source(), vocabularies.target(), query.alignment);
        if (rank == 0 && query.alignment) texts[i].alignment = utf16_spans(query.texts[i], whole);
        (rank == 0 ? texts[i].text : texts[i].alternatives.emplace_back()) = std::move(whole.text);
      }
    }
    if (--missing == 0) end({std::move(texts), std::nullopt});
  }
};

std::vector<std::string> sources_into(const ModelSet& models, const std::string& target) {
  std::vector<std::string> all;
  for (const Direction& d : models.directions())
    if (same_language(d.target, target)) all.push_back(d.source);
  return all;
}

void require_known(const ModelSet& models, const std::string& language) {
  for (const Direction& d : models.directions())
    if (same_language(d.source, language) || same_language(d.target, language)) return;
  throw ApiError(400, fmt::format("{} is not supported", language));
}

// The model of each text, and the language it was found to be in.
void find_models(const ModelSet& models, Job& job) {
  const TextQuery& q = job.query;
  if (q.source != "auto") require_known(models, q.source);
  require_known(models, q.target);
  const std::vector<std::string> sources = sources_into(models, q.target);
  for (size_t i = 0; i < q.texts.size(); ++i) {
    std::string source = q.source;
    if (q.source == "auto" && !sources.empty()) {
      job.texts[i].detected = detect_languages(q.texts[i], sources).front();
      source = job.texts[i].detected->language;
    }
    auto model = models.find(source, q.target);
    if (!model)
      throw ApiError(400, fmt::format("{} ({}) is not available as a target language from {} ({})", language_name(q.target), q.target,
                                      language_name(source), source));
    auto group = std::find_if(job.groups.begin(), job.groups.end(), [&](const Group& g) { return g.model == model; });
    if (group == job.groups.end()) group = job.groups.insert(group, {model, {}});
    group->texts.push_back(i);
    job.prepared.emplace_back(Document(q.texts[i], q.format, source), model->model().description.vocabularies.source(),
                              model->max_source_tokens());
  }
}

}  // namespace

std::function<void()> start_translation(const ModelSet& models, const TextQuery& query, const JobLimits& limits, double now,
                                        double deadline, JobSize& size, std::function<void(JobResult)> done) {
  if (std::ssize(query.texts) > limits.sentences)  // of nothing, perhaps: they would take memory without a sentence
    throw ApiError(400,
                   fmt::format("Invalid request: {} texts are more than {}; send them in parts", query.texts.size(), limits.sentences));
  const auto job = std::make_shared<Job>();
  job->query = query, job->texts.resize(query.texts.size()), job->done = std::move(done);
  find_models(models, *job);
  for (const DocumentParts& p : job->prepared) size.sentences += static_cast<int64_t>(p.parts().size());
  for (const std::string& text : query.texts)
    size.characters += std::count_if(text.begin(), text.end(), [](unsigned char c) { return (c & 0xC0) != 0x80; });
  if (size.sentences > limits.sentences)
    throw ApiError(400,
                   fmt::format("Invalid request: {} sentences are more than {}; send them in parts", size.sentences, limits.sentences));
  job->missing = job->groups.size();
  for (Group& group : job->groups) {
    std::vector<std::string> sentences;
    SearchOptions search = group.model->search(1 + query.alternatives);
    search.alignment = query.alignment;
    for (const size_t i : group.texts) {
      const DocumentParts& p = job->prepared[i];
      sentences.insert(sentences.end(), p.parts().begin(), p.parts().end());
      for (size_t part = 0; part < p.parts().size(); ++part) search.alignment = search.alignment || p.needs_links(part);
    }
    try {
      group.request = group.model->scheduler().submit(std::move(sentences), search, now, deadline,
                                                      [job, &group](Scheduler::Outcome o) { job->finish(group, std::move(o)); });
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
