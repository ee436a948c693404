#include "starling/translator.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>

#include "base/resource_error.h"
#include "batching/scheduler.h"
#include "batching/search_budget.h"
#include "batching/workers.h"
#include "decode/document_parts.h"
#include "evaluation/pair_scores.h"
#include "interop/usable_model.h"
#include "library/describe.h"
#include "library/guarded.h"

namespace starling {
namespace {

constexpr int64_t kScoredTokens = 4000;  // target tokens scored at once

LoadedModel loaded_model(const std::string& path, const v0::TranslatorOptions& o) {
  const auto files = real_file_system();
  const auto say = [&](const std::string& line) {
    if (o.log) o.log(line);
  };
  return load_model(*files, usable_model(*files, path, say), DeviceChoice{o.precision, o.threads, o.device});
}

// Nobody is refused: callers of a library decide themselves how much they ask for.
SchedulerLimits unlimited(int64_t rows) {
  return {.queue_sentences = std::numeric_limits<int64_t>::max(),
          .wait_seconds = std::numeric_limits<double>::infinity(),
          .rows = rows,
          .cache_bytes = 0};
}

template <class Number>
Number in_range(const char* name, Number value, Number least, Number most) {
  if (value >= least && value <= most) return value;
  throw ConfigError(fmt::format("{}: {} is not allowed; it must lie between {} and {}", name, value, least, most));
}

std::string joined(const std::vector<std::string>& tokens) {
  std::string text;
  for (const std::string& token : tokens) {
    if (token.find(' ') != std::string::npos) throw ConfigError(fmt::format("'{}' is no piece of a vocabulary: it has a space", token));
    text += (text.empty() ? "" : " ") + token;
  }
  return text;
}

std::vector<std::string> tokens_of(const Vocabulary& vocabulary, const std::string& sentence) {
  std::vector<std::string> tokens;
  for (const int32_t id : vocabulary.encode(sentence)) tokens.push_back(vocabulary.token(id));
  return tokens;
}

}  // namespace

class v0::Translator::Impl {
 public:
  using Done = std::function<void(std::vector<Translation>, std::exception_ptr)>;

  Impl(const std::string& path, const TranslatorOptions& o)
      : loaded_(loaded_model(path, o)),
        info_(info_of(loaded_.description)),
        usual_(with_prefixes(loaded_.description.search, loaded_.description.vocabularies)),
        most_tokens_(std::min<int64_t>(in_range("max_source_tokens", o.max_source_tokens, 1, 1000000),
                                       longest_sentence(loaded_.description.config) - 1 - std::ssize(usual_.source_prefix_ids))),
        scheduler_(unlimited(fit_search_budget(loaded_.description, *loaded_.backend,
                                               {in_range("rows", o.rows, 1, 100000), most_tokens_, usual_, usual_}, usable_memory())
                                 .rows),
                   events_),
        workers_(loaded_, scheduler_, events_, 0) {
    require_room(usual_, loaded_.description.config);
  }

  const ModelInfo& info() const { return info_; }
  const Vocabularies& vocabularies() const { return loaded_.description.vocabularies; }
  std::string machine() const { return machine_text(*loaded_.backend, loaded_.precision == "int8"); }

  SearchOptions search_of(const TranslateOptions& o) const {
    SearchOptions s = loaded_.description.search;
    if (o.beam) s.beam = in_range("beam", *o.beam, 1, 1024);
    s.n_best = in_range("n_best", o.n_best, 1, 1024);
    if (s.n_best > s.beam && o.beam) throw ConfigError(fmt::format("n_best {} is more than the beam of {}; raise beam", s.n_best, s.beam));
    s.beam = std::max(s.beam, s.n_best);
    if (o.length_penalty) s.length_penalty = in_range("length_penalty", *o.length_penalty, 0.0, 10.0);
    if (o.length_penalty_form) s.length_penalty_form = from_word<LengthPenaltyForm>(*o.length_penalty_form);
    if (o.coverage_penalty) s.coverage_penalty = in_range("coverage_penalty", *o.coverage_penalty, 0.0, 10.0);
    if (o.prune_threshold) s.prune_threshold = in_range("prune_threshold", *o.prune_threshold, 0.0, 1000.0);
    if (o.max_length_factor) s.max_length_factor = in_range("max_length_factor", *o.max_length_factor, 0.0, 100.0);
    if (o.max_length_offset) s.max_length_offset = in_range("max_length_offset", *o.max_length_offset, 1, 100000);
    if (o.source_prefix) s.source_prefix = *o.source_prefix;
    if (o.target_prefix) s.target_prefix = *o.target_prefix;
    if (o.suppress) {
      s.suppress.clear();
      for (const std::string& sequence : *o.suppress) s.suppress += (s.suppress.empty() ? "" : " ||| ") + sequence;
    }
    if (o.no_repeat_ngram) s.no_repeat_ngram = in_range("no_repeat_ngram", *o.no_repeat_ngram, 0, 1000);
    if (o.allow_unknown) s.allow_unknown = *o.allow_unknown;
    s.alignment = o.alignment;
    s = with_prefixes(into_language(std::move(s), loaded_.description.languages, o.target_language), vocabularies());
    require_room(s, loaded_.description.config);
    return s;
  }

  // `done` is called from a worker's thread, or from this one if there is nothing to translate.
  void submit(std::vector<std::string> sentences, const SearchOptions& search, SentenceForm form, Done done) {
    std::vector<bool> cut(sentences.size());
    for (size_t i = 0; i < sentences.size(); ++i)
      cut[i] = form == SentenceForm::text ? cut_text(sentences[i], search) : cut_pieces(sentences[i], search);
    std::vector<std::string> sources;
    if (search.alignment) sources = sentences;
    const auto answer = [this, cut, form, sources = std::move(sources), done = std::move(done)](Scheduler::Outcome outcome) {
      std::vector<Translation> translations;
      std::exception_ptr error;
      try {
        guarded([&] {
          if (outcome.end != Scheduler::End::done) std::rethrow_exception(outcome.cause);
          for (size_t i = 0; i < outcome.translations.size(); ++i)
            translations.push_back(translation_of(outcome.translations[i], cut[i], sources.empty() ? nullptr : &sources[i], form));
        });
      } catch (...) {
        error = std::current_exception();
      }
      try {
        done(std::move(translations), error);
      } catch (...) {  // the callback's own affair: sentences of others are under way in this thread
      }
    };
    scheduler_.submit(std::move(sentences), search, serve_seconds(), std::numeric_limits<double>::infinity(), answer, form);
  }

  std::future<std::vector<Translation>> submit(std::vector<std::string> sentences, const SearchOptions& search, SentenceForm form) {
    const auto promise = std::make_shared<std::promise<std::vector<Translation>>>();
    submit(std::move(sentences), search, form, [promise](std::vector<Translation> translations, const std::exception_ptr& error) {
      if (error)
        promise->set_exception(error);
      else
        promise->set_value(std::move(translations));
    });
    return promise->get_future();
  }

  std::string translate_document(const std::string& text, Format format, TranslateOptions options) {
    options.n_best = 1;
    const std::string language = info_.directions.empty() ? "" : info_.directions.front().source;
    const DocumentParts parts(Document(text, format == Format::html ? DocumentFormat::html : DocumentFormat::text, language),
                              vocabularies().source(), std::min(most_tokens_, kDocumentTokens));
    SearchOptions search = search_of(options);
    search.alignment = false;
    for (size_t i = 0; i < parts.parts().size(); ++i) search.alignment = search.alignment || parts.needs_links(i);
    std::promise<Scheduler::Outcome> promise;
    auto future = promise.get_future();
    scheduler_.submit(parts.parts(), search, serve_seconds(), std::numeric_limits<double>::infinity(),
                      [&](Scheduler::Outcome o) { promise.set_value(std::move(o)); });
    const Scheduler::Outcome outcome = future.get();
    if (outcome.end != Scheduler::End::done) std::rethrow_exception(outcome.cause);
    std::vector<PartTranslation> translations;
    for (const Candidates& c : outcome.translations) translations.push_back(c.empty() ? PartTranslation{} : c.front());
    return parts.assemble(translations, vocabularies().source(), vocabularies().target());
  }

  // The sides are sentences of text or of pieces; pair_of returns what the model reads of two of them.
  template <class Sentences, class PairOf>
  std::vector<Score> score(const Sentences& sources, const Sentences& targets, const SearchOptions& search, PairOf pair_of) {
    if (sources.size() != targets.size())
      throw ConfigError(fmt::format("{} sources and {} targets; give one target for each source", sources.size(), targets.size()));
    std::vector<EncodedPair> pairs;
    for (size_t i = 0; i < sources.size(); ++i) pairs.push_back(pair_of(vocabularies(), sources[i], targets[i], search));
    const int64_t longest = longest_sentence(loaded_.description.config);
    for (size_t i = 0; i < pairs.size(); ++i)
      if (const size_t length = std::max(pairs[i].source.size(), pairs[i].target.size()); static_cast<int64_t>(length) > longest)
        throw DataError(fmt::format("pair {}: a sentence of {} tokens, but the model has positions for {}; split it", i, length, longest));
    std::vector<std::vector<float>> all;
    {
      const std::lock_guard lock(scoring_);
      all = pair_scores(*loaded_.model, pairs, search, kScoredTokens);
    }
    std::vector<Score> scores(pairs.size());
    for (size_t i = 0; i < pairs.size(); ++i) {
      const std::vector<int32_t>& target = pairs[i].target;
      const size_t given = target.size() - all[i].size();
      for (size_t t = 0; t < all[i].size(); ++t) {  // finite weights can still be too large to compute with
        if (!std::isfinite(all[i][t]))
          throw DataError(fmt::format("pair {}: the model gives a token the log-probability {}", i, all[i][t]));
        scores[i].tokens.push_back(vocabularies().target().token(target[given + t]));
        scores[i].log_probabilities.push_back(all[i][t]);
        scores[i].log_probability += all[i][t];
      }
    }
    return scores;
  }

 private:
  int64_t room(const SearchOptions& search) const {
    const int64_t prefix = std::ssize(search.source_prefix_ids) - std::ssize(usual_.source_prefix_ids);
    return std::max<int64_t>(1, most_tokens_ - std::max<int64_t>(0, prefix));
  }

  // cut_text() and cut_pieces() cut a sentence after the last token that fits, and return whether there were more.
  bool cut_text(std::string& sentence, const SearchOptions& search) const {
    const auto most = static_cast<size_t>(room(search));
    if (sentence.size() < most / 4) return false;
    const Vocabulary& source = vocabularies().source();
    bool cut = false;
    // The rest may be split into more pieces than it was before.
    for (size_t kept = most; kept > 0; --kept) {
      const EncodedLine line = source.encode_with_bytes(sentence);
      if (line.ids.size() <= most) break;
      sentence.resize(static_cast<size_t>(line.bytes[kept - 1].end));
      cut = true;
    }
    return cut;
  }

  bool cut_pieces(std::string& sentence, const SearchOptions& search) const {
    size_t end = 0;
    for (int64_t i = room(search); i > 0 && end < sentence.size(); --i) end = std::min(sentence.find(' ', end + 1), sentence.size());
    const std::string_view rest = std::string_view(sentence).substr(end);
    const bool cut = !rest.empty() && rest != " " + vocabularies().source().piece(vocabularies().source().eos());
    sentence.resize(end);
    return cut;
  }

  Translation translation_of(const Candidates& candidates, bool cut, const std::string* source, SentenceForm form) const {
    Translation t;
    t.truncated = cut;
    for (const PartTranslation& c : candidates) {
      Hypothesis h{.text = c.text, .score = c.hypothesis.score, .log_probability = c.hypothesis.log_probability};
      for (const int32_t id : c.hypothesis.tokens) h.tokens.push_back(vocabularies().target().token(id));
      if (source) h.alignment = alignment_of(c.hypothesis, *source, form);
      t.hypotheses.push_back(std::move(h));
    }
    if (t.hypotheses.empty()) t.hypotheses.emplace_back();
    return t;
  }

  std::vector<std::pair<int, int>> alignment_of(const ::starling::Hypothesis& h, const std::string& source, SentenceForm form) const {
    const int64_t count = form == SentenceForm::text ? std::ssize(vocabularies().source().encode(source))
                          : source.empty()           ? 0
                                                     : std::count(source.begin(), source.end(), ' ') + 1;
    std::vector<std::pair<int, int>> pairs;
    for (size_t t = 0; t < h.tokens.size() && t < h.alignment.size(); ++t)
      if (h.alignment[t] < count) pairs.emplace_back(h.alignment[t], static_cast<int>(t));
    std::sort(pairs.begin(), pairs.end());
    return pairs;
  }

  LoadedModel loaded_;
  const ModelInfo info_;
  const SearchOptions usual_;
  const int64_t most_tokens_;
  BatchingEvents events_;
  Scheduler scheduler_;
  std::mutex scoring_;
  Workers workers_;  // declared last, so that they end first
};

v0::Translator::Translator(const std::string& model, const TranslatorOptions& options)
    : impl_(guarded([&] { return std::make_unique<Impl>(model, options); })) {}
v0::Translator::~Translator() = default;
v0::Translator::Translator(Translator&&) noexcept = default;
v0::Translator& v0::Translator::operator=(Translator&&) noexcept = default;

std::vector<v0::Translation> v0::Translator::translate(const std::vector<std::string>& sentences, const TranslateOptions& options) const {
  return translate_async(sentences, options).get();
}

std::string v0::Translator::translate(const std::string& sentence, const TranslateOptions& options) const {
  return translate(std::vector<std::string>{sentence}, options).front().text();
}

std::vector<v0::Translation> v0::Translator::translate_tokens(const std::vector<std::vector<std::string>>& sentences,
                                                              const TranslateOptions& options) const {
  return translate_tokens_async(sentences, options).get();
}

std::future<std::vector<v0::Translation>> v0::Translator::translate_tokens_async(const std::vector<std::vector<std::string>>& sentences,
                                                                                 const TranslateOptions& options) const {
  return guarded([&] {
    std::vector<std::string> lines;
    for (const std::vector<std::string>& tokens : sentences) lines.push_back(joined(tokens));
    return impl_->submit(std::move(lines), impl_->search_of(options), SentenceForm::pieces);
  });
}

std::future<std::vector<v0::Translation>> v0::Translator::translate_async(std::vector<std::string> sentences,
                                                                          const TranslateOptions& options) const {
  return guarded([&] { return impl_->submit(std::move(sentences), impl_->search_of(options), SentenceForm::text); });
}

void v0::Translator::translate_async(std::vector<std::string> sentences, const TranslateOptions& options,
                                     std::function<void(std::vector<Translation>, std::exception_ptr)> done) const {
  guarded([&] { impl_->submit(std::move(sentences), impl_->search_of(options), SentenceForm::text, std::move(done)); });
}

std::string v0::Translator::translate_document(const std::string& text, Format format, const TranslateOptions& options) const {
  return guarded([&] { return impl_->translate_document(text, format, options); });
}

std::vector<v0::Score> v0::Translator::score(const std::vector<std::string>& sources, const std::vector<std::string>& targets,
                                             const TranslateOptions& options) const {
  return guarded([&] { return impl_->score(sources, targets, impl_->search_of(options), framed_pair); });
}

std::vector<v0::Score> v0::Translator::score_tokens(const std::vector<std::vector<std::string>>& sources,
                                                    const std::vector<std::vector<std::string>>& targets,
                                                    const TranslateOptions& options) const {
  return guarded([&] {
    const auto pair_of = [](const Vocabularies& v, const std::vector<std::string>& source, const std::vector<std::string>& target,
                            const SearchOptions& search) { return framed_pair_of_pieces(v, joined(source), joined(target), search); };
    return impl_->score(sources, targets, impl_->search_of(options), pair_of);
  });
}

std::vector<std::string> v0::Translator::source_tokens(const std::string& sentence) const {
  return guarded([&] { return tokens_of(impl_->vocabularies().source(), sentence); });
}

std::vector<std::string> v0::Translator::target_tokens(const std::string& sentence) const {
  return guarded([&] { return tokens_of(impl_->vocabularies().target(), sentence); });
}

std::string v0::Translator::join_target_tokens(const std::vector<std::string>& tokens) const {
  return guarded([&] {
    const Vocabulary& target = impl_->vocabularies().target();
    std::vector<int32_t> ids;
    for (const std::string& token : tokens) {
      const int32_t id = target.token_id(token);
      ids.push_back(id < 0 ? target.unk() : id);
    }
    return target.decode(ids);
  });
}

const v0::ModelInfo& v0::Translator::model() const { return impl_->info(); }
std::string v0::Translator::machine() const { return impl_->machine(); }

}  // namespace starling
