#include "serve/translation_job.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <thread>

#include "decode/document_parts.h"
#include "http/task_threads.h"
#include "serve/directions.h"
#include "serve/translation_stream.h"
#include "serve/utf16.h"
#include "text/language_match.h"

namespace starling {
namespace {

constexpr int64_t kLargeCharacters = 4 << 10;  // texts from this size on take long to split and to reassemble

// A text on its way through its models.
struct TextUnderWay {
  std::optional<DocumentParts> document;    // what the first model gets; nothing if the text is its own translation
  std::vector<AlignedText> sentences;       // the translations of the first model of two
  std::optional<SentenceParts> parts;       // of them: what the second one gets
  std::optional<TranslationStream> stream;  // while translations of the last model come and a listener follows them
};

// The texts of a query that go the same way.
struct Group {
  Route route;
  std::vector<size_t> texts;
  struct Leg {
    std::shared_ptr<ServedModel> model;  // while it is needed
    int64_t waiting = 0, request = 0;    // numbers in the set of models, and in the model's queue
  };
  std::array<Leg, 2> legs;
};

// Returns the translation of each part at a rank (0: the best); if a part has fewer, its last one.
std::vector<PartTranslation> of_rank(std::span<const Candidates> translations, size_t rank) {
  std::vector<PartTranslation> all;
  for (const Candidates& c : translations) all.push_back(c.empty() ? PartTranslation{} : c[std::min(rank, c.size() - 1)]);
  return all;
}

// Returns the confidence of a text whose parts have these best translations.
TextConfidence confidence_of(std::span<const PartTranslation> parts, const ConfidenceModel& model, const Vocabulary& target) {
  TextConfidence all;
  double sum = 0, words = 0;
  for (const PartTranslation& part : parts) {
    const Confidence found = model.of(part.hypothesis, target);
    TextConfidence::Sentence& s = all.sentences.emplace_back();
    s.text = part.text, s.value = found.sentence;
    for (const Confidence::Word& w : found.words) {
      s.words.emplace_back(part.text.substr(static_cast<size_t>(w.bytes.begin), static_cast<size_t>(w.bytes.count())), w.value);
      sum += w.value, ++words;
    }
  }
  if (!parts.empty()) all.value = words > 0 ? sum / words : 0;
  return all;
}

class Job : public std::enable_shared_from_this<Job> {
 public:
  Job(ModelSet& models, const TextQuery& query, const JobOptions& options, double deadline, std::shared_ptr<JobSize> size,
      std::function<void(JobResult)> done, JobListeners listeners)
      : models_(models),
        query_(query),
        options_(options),
        deadline_(deadline),
        size_(std::move(size)),
        done_(std::move(done)),
        listeners_(std::move(listeners)),
        under_way_(query.texts.size()),
        texts_(query.texts.size()) {}

  void find_routes();
  void start(double now);
  void cancel() {
    if (!ended_.exchange(true)) cancel_legs();
  }

 private:
  // Runs a step of the job, whose errors are the job's.
  void attempt(const std::function<void()>& step);
  void fail(ApiError error) {
    if (ended_.exchange(true)) return;
    cancel_legs();
    done_({{}, std::move(error)});
  }
  void cancel_legs();
  void begin(Group& group, size_t leg, double now);
  void prepare(Group& group, size_t leg);
  void submit(Group& group, size_t leg, double now);
  void finish(Group& group, size_t leg, Scheduler::Outcome outcome);
  void assemble(size_t text, std::span<const Candidates> translations, const LoadedModel& model);
  SentenceListeners follow(Group& group, bool tokens);
  void tell_rest(size_t text);
  const std::vector<std::string>& parts(size_t text, size_t leg) const {
    return leg == 0 ? under_way_[text].document->parts() : under_way_[text].parts->parts();
  }
  bool needs_links(size_t text, size_t sentence) const {
    return query_.alignment || under_way_[text].document->document().needs_links(sentence);
  }
  bool is_large() const { return size_->characters >= kLargeCharacters; }

  ModelSet& models_;
  const TextQuery query_;
  const JobOptions& options_;
  const double deadline_;
  const std::shared_ptr<JobSize> size_;
  const std::function<void(JobResult)> done_;
  const JobListeners listeners_;
  std::mutex telling_;                   // guards the streams of texts, and calls of listeners
  std::vector<TextUnderWay> under_way_;  // by text
  std::vector<TranslatedText> texts_;
  std::vector<Group> groups_;
  std::mutex mutex_;                // guards the legs of the groups
  std::atomic<size_t> missing_{0};  // unfinished groups
  std::atomic<bool> ended_{false};
};

// Finds the models for each text, and detects the text's language if necessary.
void Job::find_routes() {
  const std::vector<Direction> directions = models_.directions();
  const bool detect = query_.source == "auto";
  const std::string target = detect ? nearest_language(languages_of(directions), query_.target) : query_.target;
  const std::vector<std::string> possible =
      detect ? possible_languages(reachable(directions, options_.pivots), target) : std::vector<std::string>();
  Route route;
  const auto route_from = [&](const std::string& source) {
    try {
      return route_between(directions, source, target, options_.pivots);
    } catch (const ApiError&) {
      if (const std::string why = models_.left_out(source, target); !why.empty())
        throw ApiError(503, fmt::format("the model from {} to {} cannot be served: {}", source, target, why));
      throw;
    }
  };
  if (!detect) route = route_from(query_.source);
  for (size_t i = 0; i < query_.texts.size(); ++i) {
    if (detect) {
      const std::string words = Document(query_.texts[i], query_.format, "", query_.document).words();
      texts_[i].detected = detect_languages(words, possible).front();
      route = words.empty() ? Route{} : route_from(texts_[i].detected->language);
    }
    if (route.unchanged()) {
      texts_[i].text = query_.texts[i];
      tell_rest(i);
      continue;
    }
    auto group = std::find_if(groups_.begin(), groups_.end(), [&](const Group& g) { return g.route.legs == route.legs; });
    if (group == groups_.end()) group = groups_.insert(group, {route, {}, {}});
    group->texts.push_back(i);
    size_->pivoted += route.legs.size() > 1;
    if (query_.confidence && route.legs.size() > 1)
      throw ApiError(
          400, fmt::format("Invalid request: confidence is not available from {} to {}, since the text goes through {}; leave it out, or "
                           "translate into {} first",
                           route.legs[0].source, route.legs[1].target, route.legs[0].target, route.legs[0].target));
  }
}

void Job::start(double now) {
  missing_ = groups_.size();
  if (groups_.empty() && !ended_.exchange(true)) done_({std::move(texts_), std::nullopt});
  for (Group& group : groups_)
    if (!ended_) begin(group, 0, now);
}

void Job::attempt(const std::function<void()>& step) {
  try {
    step();
  } catch (const ApiError& e) {
    fail(e);
  } catch (const std::exception& e) {
    fail(ApiError(500, e.what()));
  }
}

void Job::cancel_legs() {
  std::vector<Group::Leg> legs;
  {
    const std::lock_guard lock(mutex_);
    for (const Group& group : groups_) legs.insert(legs.end(), group.legs.begin(), group.legs.end());
  }
  for (const Group::Leg& leg : legs) {
    models_.cancel(leg.waiting);
    if (leg.model) leg.model->scheduler().cancel(leg.request);
  }
}

// Begins a leg when its model is there.
void Job::begin(Group& group, size_t leg, double now) {
  const auto asking = std::this_thread::get_id();
  const auto go_on = [job = shared_from_this(), &group, leg, now, asking](std::shared_ptr<ServedModel> model,
                                                                          std::optional<ApiError> refused) {
    if (refused) return job->fail(std::move(*refused));
    TaskThreads& threads = model->assembling();
    {
      const std::lock_guard lock(job->mutex_);
      group.legs[leg].model = std::move(model);
    }
    const auto step = [job, &group, leg, now] {
      job->attempt([&] {
        job->prepare(group, leg);
        job->submit(group, leg, now);
      });
    };
    // A thread that loads models is not kept from it by a large text.
    if (std::this_thread::get_id() != asking && job->is_large())
      threads.add(job->size_->characters, step);
    else
      step();
  };
  const int64_t number = models_.use(group.route.legs[leg], deadline_, go_on);
  {
    const std::lock_guard lock(mutex_);
    group.legs[leg].waiting = number;
  }
  if (ended_) models_.cancel(number);
}

// Splits the texts into parts that fit the model.
void Job::prepare(Group& group, size_t leg) {
  const ServedModel& model = *group.legs[leg].model;
  const Vocabulary& source = model.model().description.vocabularies.source();
  for (const size_t i : group.texts) {
    TextUnderWay& text = under_way_[i];
    if (leg == 0) {
      text.document.emplace(Document(query_.texts[i], query_.format, group.route.legs[0].source, query_.document), source,
                            model.max_source_tokens(), TaskThreads::give_way);
      size_->sentences += static_cast<int64_t>(text.document->parts().size() * group.route.legs.size());
    } else {
      std::vector<std::string> sentences;
      for (const AlignedText& sentence : text.sentences) sentences.push_back(sentence.text);
      text.parts.emplace(sentences, source, model.max_source_tokens(), TaskThreads::give_way);
    }
  }
  if (size_->sentences > options_.sentences)
    throw ApiError(400, fmt::format("Invalid request: {} sentences exceed the limit of {}; send them in parts", size_->sentences.load(),
                                    options_.sentences));
}

void Job::submit(Group& group, size_t leg, double now) {
  const std::shared_ptr<ServedModel> model = group.legs[leg].model;
  if (query_.confidence && !model->model().confidence.model)
    throw ApiError(400, fmt::format("Invalid request: the model from {} to {} has no calibration for confidence; leave it out, or ask the "
                                    "operator to run 'starling calibrate'",
                                    group.route.legs[leg].source, group.route.legs[leg].target));
  std::vector<std::string> sentences;
  SearchOptions search = model->search(group.route.legs[leg], leg + 1 == group.route.legs.size() ? 1 + query_.alternatives : 1);
  search.alignment = query_.alignment;
  if (query_.glossary && group.route.legs.size() > 1)
    throw ApiError(400, fmt::format("Invalid request: a glossary needs a model that translates from {} to {} by itself; leave it out",
                                    group.route.legs.front().source, group.route.legs.back().target));
  if (query_.glossary && (search.repetition_penalty != 1 || search.prefix_bias > 0))
    throw ApiError(400, "Invalid request: a glossary cannot be combined with the model's repetition-penalty or prefix-bias; leave it out");
  search.glossary = query_.glossary;
  for (const size_t i : group.texts) {
    sentences.insert(sentences.end(), parts(i, leg).begin(), parts(i, leg).end());
    const Document& document = under_way_[i].document->document();
    for (size_t s = 0; s < document.sentences().size(); ++s) search.alignment = search.alignment || document.needs_links(s);
  }
  const auto go_on = [job = shared_from_this(), &group, leg](Scheduler::Outcome o) {
    const auto step = [job, &group, leg](Scheduler::Outcome outcome) {
      job->attempt([&] { job->finish(group, leg, std::move(outcome)); });
    };
    // The worker continues translating while a large translation is reassembled.
    if (o.end != Scheduler::End::done || !job->is_large()) return step(std::move(o));
    group.legs[leg].model->assembling().add(job->size_->characters, [step, o = std::move(o)]() mutable { step(std::move(o)); });
  };
  int64_t request = 0;
  SentenceListeners listeners;
  if (listeners_.more && leg + 1 == group.route.legs.size()) listeners = follow(group, search.beam == 1);
  try {
    request = model->scheduler().submit(std::move(sentences), search, now, deadline_, go_on, SentenceForm::text, std::move(listeners));
  } catch (const QueueFull& e) {
    ApiError refused(429, e.what());
    refused.retry_seconds = e.retry_seconds;
    throw refused;
  }
  {
    const std::lock_guard lock(mutex_);
    group.legs[leg].request = request;
  }
  if (ended_) model->scheduler().cancel(request);
}

// Makes streams of the group's texts, which its last model translates now. `tokens`: its beam is 1.
SentenceListeners Job::follow(Group& group, bool tokens) {
  const std::shared_ptr<ServedModel> model = group.legs[group.route.legs.size() - 1].model;
  const Vocabularies& vocabularies = model->model().description.vocabularies;
  auto of_part = std::make_shared<std::vector<std::pair<size_t, size_t>>>();  // the text and its part, for each sentence of the request
  const std::lock_guard lock(telling_);
  for (const size_t i : group.texts) {
    TextUnderWay& text = under_way_[i];
    const size_t count = parts(i, group.route.legs.size() - 1).size();
    for (size_t part = 0; part < count; ++part) of_part->emplace_back(i, part);
    text.stream.emplace(*text.document, text.parts ? &*text.parts : nullptr, text.sentences, vocabularies.source(), vocabularies.target());
  }
  SentenceListeners listeners;
  listeners.sentence = [job = shared_from_this(), model, of_part](size_t sentence, const Candidates& translations) {
    const auto [text, part] = (*of_part)[sentence];
    job->attempt([&] {
      const std::lock_guard telling(job->telling_);
      auto& stream = job->under_way_[text].stream;
      if (!stream || job->ended_) return;
      const std::string more = stream->add(part, of_rank(std::span(&translations, 1), 0).front());
      if (!more.empty()) job->listeners_.more(text, more);
    });
  };
  if (tokens)
    listeners.token = [job = shared_from_this(), model, of_part](size_t sentence, const StepToken& token) {
      const auto [text, part] = (*of_part)[sentence];
      job->attempt([&] {
        const std::lock_guard telling(job->telling_);
        auto& stream = job->under_way_[text].stream;
        if (!stream || job->ended_ || token.last) return;
        const std::string begin = stream->add_token(part, token.token);
        if (!begin.empty()) job->listeners_.preview(text, begin);
      });
      return true;
    };
  return listeners;
}

// Tells what is missing of a text that is complete.
void Job::tell_rest(size_t text) {
  if (!listeners_.more) return;
  const std::lock_guard lock(telling_);
  auto& stream = under_way_[text].stream;
  const std::string more = stream ? stream->rest(texts_[text].text) : texts_[text].text;
  stream.reset();
  if (!more.empty() && !ended_) listeners_.more(text, more);
}

void Job::finish(Group& group, size_t leg, Scheduler::Outcome outcome) {
  if (outcome.end == Scheduler::End::expired)
    throw ApiError(504, "the translation was not finished before the deadline; send fewer texts at once, or try again later");
  if (outcome.end == Scheduler::End::failed) throw ApiError(500, outcome.error);
  const bool last = leg + 1 == group.route.legs.size();
  const LoadedModel& model = group.legs[leg].model->model();
  const Vocabularies& vocabularies = model.description.vocabularies;
  size_t at = 0;
  for (const size_t i : group.texts) {
    const size_t count = parts(i, leg).size();
    const std::span translations(outcome.translations.data() + at, count);
    at += count;
    if (last)
      assemble(i, translations, model);
    else
      under_way_[i].sentences = under_way_[i].document->join(of_rank(translations, 0), vocabularies.source(), vocabularies.target(),
                                                             query_.alignment, TaskThreads::give_way);
  }
  {
    // The model may be dropped now, perhaps because the next one needs its memory.
    const std::lock_guard lock(mutex_);
    group.legs[leg].model = nullptr;
  }
  if (!last) {
    if (!ended_) begin(group, leg + 1, serve_seconds());
  } else if (--missing_ == 0 && !ended_.exchange(true)) {
    done_({std::move(texts_), std::nullopt});
  }
}

// Puts a text together from the translations of its parts by the last model.
void Job::assemble(size_t text, std::span<const Candidates> translations, const LoadedModel& model) {
  const Vocabularies& vocabularies = model.description.vocabularies;
  const TextUnderWay& t = under_way_[text];
  size_t most = 1;
  for (const Candidates& c : translations) most = std::max(most, c.size());
  for (size_t rank = 0; rank < most; ++rank) {
    const std::vector<PartTranslation> parts = of_rank(translations, rank);
    AlignedText whole;
    if (!t.parts) {
      whole = t.document->assemble_with_links(parts, vocabularies.source(), vocabularies.target(), query_.alignment, TaskThreads::give_way);
    } else {
      std::vector<AlignedText> sentences = t.parts->join(
          parts, vocabularies.source(), vocabularies.target(), [&](size_t s) { return needs_links(text, s); }, TaskThreads::give_way);
      for (size_t s = 0; s < sentences.size(); ++s) sentences[s] = linked_through(t.sentences[s], std::move(sentences[s]));
      whole = t.document->document().assemble_with_links(sentences);
    }
    if (rank == 0 && query_.confidence) texts_[text].confidence = confidence_of(parts, *model.confidence.model, vocabularies.target());
    if (rank == 0 && query_.alignment) texts_[text].alignment = utf16_spans(query_.texts[text], whole);
    (rank == 0 ? texts_[text].text : texts_[text].alternatives.emplace_back()) = std::move(whole.text);
  }
  tell_rest(text);
}

}  // namespace

std::function<void()> start_translation(ModelSet& models, const TextQuery& query, const JobOptions& options, double now, double deadline,
                                        std::shared_ptr<JobSize> size, std::function<void(JobResult)> done, JobListeners listeners) {
  if (std::ssize(query.texts) > options.sentences)  // even empty texts, which have no sentences, take memory
    throw ApiError(
        400, fmt::format("Invalid request: {} texts exceed the limit of {}; send them in parts", query.texts.size(), options.sentences));
  for (const std::string& text : query.texts) size->characters += characters_of(text);
  const auto job = std::make_shared<Job>(models, query, options, deadline, std::move(size), std::move(done), std::move(listeners));
  job->find_routes();
  job->start(now);
  return [job] { job->cancel(); };
}

}  // namespace starling
