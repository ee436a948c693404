#include "decode/translator.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <mutex>
#include <numeric>
#include <optional>

#include "base/start_threads.h"
#include "text/detect_language.h"
#include "text/listed_pieces.h"

namespace starling {
namespace {

std::string pieces_of(const Vocabulary& vocabulary, std::span<const int32_t> tokens) {
  std::string text;
  for (const int32_t token : tokens) text += (text.empty() ? "" : " ") + vocabulary.token(token);
  return text;
}

}  // namespace

WorkerBackends make_worker_backends(const Backend& backend) {
  WorkerBackends all;
  for (int i = 0; i < backend.threads(); ++i) all.push_back(backend.sibling());
  return all;
}

Translator::Translator(Model& model, const Vocabularies& vocabularies, const SearchOptions& options, int64_t batch_sentences,
                       int64_t max_source_tokens, const WorkerBackends* backends, std::vector<EnsembleMember> others)
    : own_(backends || model.parameters().shards() ? WorkerBackends() : make_worker_backends(model.parameters().backend())),
      vocabularies_(vocabularies),
      others_(std::move(others)),
      options_(with_prefixes(options, vocabularies)),
      tags_(vocabularies.source(), options_),
      batch_sentences_(batch_sentences),
      max_source_tokens_(std::min(max_source_tokens, longest_sentence(model.config()) - 1)) {
  require_room(options_, model.config());
  if (model.parameters().shards()) {
    CHECK(others_.empty(), "an ensemble with a sharded model");
    workers_.push_back({share_model(model, model.parameters().backend()), {}, {}});
    return;
  }
  for (const auto& backend : backends ? *backends : own_) {
    workers_.push_back({share_model(model, *backend), {}, {}});
    for (const EnsembleMember& m : others_) workers_.back().others.push_back(share_model(*m.model, *backend));
  }
  for (const EnsembleMember& m : others_) max_source_tokens_ = std::min(max_source_tokens_, longest_sentence(m.model->config()) - 1);
}

void Translator::translate_batch(Worker& worker, std::span<const size_t> which, std::span<const Sources> sources,
                                 std::span<const SearchOptions> options, std::vector<std::vector<Translation>>& results,
                                 const std::function<void(double share)>& under_way) const {
  std::vector<Sources> batches(sources.size());
  for (size_t m = 0; m < sources.size(); ++m)
    for (const size_t i : which) batches[m].push_back(sources[m][i]);
  const Sources& batch = batches.front();
  const bool stops = watch_.stop && !worker.model->parameters().shards();
  const double longest = static_cast<double>(batch.front().size());
  int64_t steps = 0;
  const auto each_step = [&] {
    if (stops && watch_.stop()) throw TranslationStopped();
    // Translations are about as long as their sources.
    under_way(std::min(0.95, static_cast<double>(steps++) / longest));
  };
  SearchModels models{{worker.model.get()}, weights_};
  for (const auto& other : worker.others) models.models.push_back(other.get());
  std::vector<SearchOptions> each;
  for (size_t i = 0; i < which.size(); ++i)
    each.push_back(options_for(batch[i], vocabularies_.source(), options[options.size() == 1 ? 0 : which[i]]));
  auto found = sampling_ ? draw_batch(worker, which, batch, each_step) : beam_search(models, batches, each, &worker.work, each_step);
  for (size_t i = 0; i < which.size(); ++i) {
    auto& result = results[which[i]];
    result.clear();
    for (Hypothesis& h : found[i]) {
      std::string text = form_.target_pieces ? pieces_of(vocabularies_.target(), h.tokens) : vocabularies_.target().decode(h.tokens);
      result.push_back({std::move(text), h.log_probability, h.score, h.length, {}});
      result.back().hypothesis = std::move(h);
    }
  }
}

void Translator::set_sampling(const Sampling& sampling) {
  CHECK(!workers_.front().model->parameters().shards() && others_.empty(), "sampling with a sharded model or an ensemble");
  sampling_ = sampling;
  options_.beam = options_.n_best;  // as many rows as samples
}

std::vector<std::vector<Hypothesis>> Translator::draw_batch(Worker& worker, std::span<const size_t> which,
                                                            std::span<const std::vector<int32_t>> batch,
                                                            const std::function<void()>& each_step) const {
  PackedTokens sources;
  std::vector<int64_t> ids;
  for (size_t i = 0; i < batch.size(); ++i) {
    sources.append(batch[i].data(), batch[i].data() + batch[i].size());
    ids.push_back(lines_before_ + static_cast<int64_t>(which[i]));
  }
  const SamplingOptions options{.samples = options_.n_best,
                                .max_length_factor = options_.max_length_factor,
                                .max_length_offset = options_.max_length_offset,
                                .allow_unknown = options_.allow_unknown,
                                .key = sampling_->key,
                                .top_k = sampling_->top_k,
                                .temperature = sampling_->temperature,
                                .prefix = options_.target_prefix_ids,
                                .forbidden = options_.forbidden(),
                                .min_length = options_.min_length,
                                .blank = options_.blank_ids};
  std::vector<SampleScores> scores;
  const ModelVocabulary& vocabulary = worker.model->vocabulary();
  std::vector<Samples> samples = sample_translations(*worker.model, vocabulary, sources, ids, options, &scores, [&] {
    each_step();
    ++worker.work.steps;
  });
  std::vector<std::vector<Hypothesis>> drawn(samples.size());
  for (size_t b = 0; b < samples.size(); ++b)
    for (size_t k = 0; k < samples[b].size(); ++k) {
      Hypothesis& h = drawn[b].emplace_back();
      h.tokens = std::move(samples[b][k]);
      h.length = static_cast<int64_t>(h.tokens.size());
      worker.work.rows += static_cast<int64_t>(options.prefix.size()) + h.length;
      if (!h.tokens.empty() && h.tokens.back() == vocabulary.end) {
        h.end = vocabulary.end;
        h.tokens.pop_back();
      }
      h.log_probabilities = std::move(scores[b][k]);
      h.log_probability = h.score = std::accumulate(h.log_probabilities.begin(), h.log_probabilities.end(), 0.0);
    }
  return drawn;
}

Translator::Batches Translator::cut(std::span<const size_t> order, std::span<const std::vector<int32_t>> sources, int64_t most) {
  Batches batches;
  for (size_t begin = 0; begin < order.size();) {
    // A batch is bounded in tokens too, so that a few very long sentences do not cost the memory of many.
    size_t end = begin;
    const size_t longest = sources[order[begin]].size();
    while (end < order.size() && end - begin < static_cast<size_t>(most) && (end == begin || (end - begin + 1) * longest <= 16384)) ++end;
    batches.push_back(order.subspan(begin, end - begin));
    begin = end;
  }
  return batches;
}

SearchNeed Translator::need_of(std::span<const size_t> batch, std::span<const Sources> sources) {
  const Worker& worker = workers_.front();
  SearchNeed need;
  SearchOptions widest = options_;
  widest.beam = widest_;
  for (size_t m = 0; m < sources.size(); ++m) {
    Model& model = m == 0 ? *worker.model : *worker.others[m - 1];
    int64_t tokens = 0;
    for (const size_t i : batch) tokens += static_cast<int64_t>(sources[m][i].size());
    const SearchNeed each = search_need(model.config(), model.vocabulary(), widest, static_cast<int64_t>(batch.size()), tokens,
                                        size_of(model.parameters().backend().activation()),
                                        model.parameters().shards() ? model.parameters().shards()->size() : 1);
    need.rows = each.rows;
    need.scores = std::max(need.scores, each.scores);
    need.activations += each.activations;
    need.states += each.states;
  }
  // All scores of the rows exist at once where they are averaged, or where samples are drawn from all of them: each time twice.
  if (!others_.empty() || (sampling_ && sampling_->top_k == 0)) need.scores += 2 * need.rows * worker.model->vocabulary().target_size * 4;
  return need;
}

std::vector<SearchNeed> Translator::largest_needs(const Batches& batches, std::span<const Sources> sources) {
  std::vector<SearchNeed> needs;
  for (const auto& batch : batches) needs.push_back(need_of(batch, sources));
  const size_t together = std::min(workers_.size(), needs.size());
  std::partial_sort(needs.begin(), needs.begin() + static_cast<ptrdiff_t>(together), needs.end(),
                    [](const SearchNeed& a, const SearchNeed& b) { return a.total() > b.total(); });
  needs.resize(together);
  return needs;
}

// All shards use the memory of the one that has least, so that all of them cut the same batches.
UsableMemory Translator::usable() {
  UsableMemory memory = memory_.usable();
  if (ShardGroup* shards = workers_.front().model->parameters().shards()) {
    const Tensor least({1}, DType::f64);
    doubles_of(least)[0] = -static_cast<double>(memory.bytes / memory_.processes);
    shards->maximum(least);
    memory.bytes = static_cast<int64_t>(-doubles_of(least)[0]) * memory_.processes;
  }
  return memory;
}

// Returns the most sentences per batch. Products of 8-bit weights are as fast with few rows as with many, and the caches of few sentences
// stay in the processor's cache. Larger weights do not stay there themselves, and need many rows each time that they are read.
int64_t Translator::most_sentences() const {
  constexpr int64_t kRows = 32, kSentences = 16, kBytes = int64_t{16} << 20;
  const ParameterStore& store = workers_.front().model->parameters();
  const bool narrow = store.backend().multiplies_int8() && store.count() <= kBytes &&
                      std::any_of(store.all().begin(), store.all().end(), [](const Parameter& p) { return p.quantized; });
  return narrow ? std::clamp<int64_t>(std::min(kRows / options_.beam, kSentences), 1, batch_sentences_) : batch_sentences_;
}

Translator::Batches Translator::batches_that_fit(std::span<const size_t> order, std::span<const Sources> sources) {
  std::optional<UsableMemory> memory;
  for (int64_t most = most_sentences();; most = (most + 1) / 2) {
    Batches batches = cut(order, sources.front(), most);
    const std::vector<SearchNeed> needs = largest_needs(batches, sources);
    const int64_t need = sum_of(needs).total();
    if (need <= granted_) return batches;
    if (!memory) {
      memory = usable();
      memory->bytes += granted_ * memory_.processes;
    }
    if (need > memory->bytes / memory_.processes && memory_.fewer_at_once && most > 1) continue;
    size_t sentences = 0;
    for (const auto& batch : batches) sentences = std::max(sentences, batch.size());
    require_memory(needs, options_, static_cast<int64_t>(sentences), *memory, memory_.processes);
    granted_ = need;
    return batches;
  }
}

std::vector<int32_t> Translator::source_of(std::string_view line, const Vocabulary& from, const SearchOptions& options, int64_t most,
                                           bool& cut) const {
  return form_.source_pieces ? source_of_pieces(line, from, options, most, cut) : source_tokens(line, from, options, most, cut);
}

std::vector<std::vector<int32_t>> Translator::encode(std::span<const std::string> lines) {
  const Vocabulary& from = vocabularies_.source();
  std::vector<std::vector<int32_t>> sources(lines.size());
  for (size_t i = 0; i < lines.size(); ++i) {
    bool cut = false;
    if (!form_.source_pieces) tags_.see(lines[i]);
    sources[i] = source_of(lines[i], from, options_, most_text_tokens(), cut);
    if (form_.source_pieces) pieces_.see(lines[i], sources[i], from);
    truncated_ += cut;
  }
  return sources;
}

std::vector<SearchOptions> Translator::with_beginnings(std::span<const std::string> beginnings) {
  const Vocabulary& to = vocabularies_.target();
  // The prefix of all lines, which has its room (require_room()), is never cut.
  const int64_t most = std::min(longest_sentence(workers_.front().model->config()) - 2, max_source_tokens_);
  const auto longest = static_cast<size_t>(std::max(most, std::ssize(options_.target_prefix_ids)));
  std::vector<SearchOptions> options(beginnings.size(), options_);
  for (size_t i = 0; i < beginnings.size(); ++i) {
    std::vector<int32_t>& prefix = options[i].target_prefix_ids;
    const size_t hidden = prefix.size();
    bool cut = false;
    std::vector<int32_t> ids;
    if (form_.target_pieces) {
      ids = source_of_pieces(beginnings[i], to, {}, std::numeric_limits<int64_t>::max(), cut);
      if (!ids.empty()) ids.pop_back();  // the end of sentence
    } else {
      ids = to.encode(beginnings[i]);
    }
    prefix.insert(prefix.end(), ids.begin(), ids.end());
    beginnings_cut_ += prefix.size() > longest;
    prefix.resize(std::min(prefix.size(), longest));
    options[i].shown_prefix = static_cast<int64_t>(prefix.size() - hidden);
  }
  return options;
}

std::string Translator::alignment(std::string_view line, const Translation& translation, AlignmentUnit unit, double threshold) const {
  EncodedLine source;
  if (form_.source_pieces) {
    bool cut = false;
    source.ids = source_of_pieces(line, vocabularies_.source(), {}, std::numeric_limits<int64_t>::max(), cut);
    if (!source.ids.empty()) source.ids.pop_back();  // the end of sentence
    if (!source.ids.empty() && vocabularies_.source().listed().is_tag(source.ids.front())) source.ids.erase(source.ids.begin());
    source.bytes.resize(source.ids.size());
  } else {
    source = text_tokens(line, vocabularies_.source());
  }
  const auto room = static_cast<size_t>(std::max<int64_t>(most_text_tokens(), 1));
  if (source.ids.size() > room) source.ids.resize(room), source.bytes.resize(room);  // as source_tokens() cuts it
  return alignment_text(source, line, vocabularies_.target(), translation.hypothesis, unit, threshold);
}

SearchWork Translator::work() const {
  SearchWork sum;
  for (const Worker& w : workers_) {
    sum.steps += w.work.steps;
    sum.rows += w.work.rows;
  }
  return sum;
}

// Shards must agree, and can do so only between batches, since all of them make the same calls.
void Translator::stop_if_asked() {
  ShardGroup* shards = workers_.front().model->parameters().shards();
  if (watch_.stop && shards && any_shard(shards, watch_.stop())) throw TranslationStopped();
}

std::vector<const std::string*> Translator::take_known(std::span<const std::string> all, std::vector<std::string>& lines) {
  std::vector<const std::string*> found(lines.size());
  for (size_t i = 0; i < lines.size(); ++i) {
    if (translation_memory_ && (found[i] = translation_memory_->find(lines[i])))
      ++from_memory_;
    else if (!source_languages_.empty() && is_clearly_in_another_language(lines[i], source_languages_, target_language_))
      found[i] = &all[i], ++in_other_languages_;
    if (found[i]) lines[i].clear();
  }
  return found;
}

std::vector<std::vector<Translation>> Translator::translate(std::span<const std::string> all, std::span<const std::string> beginnings) {
  if ((!translation_memory_ && source_languages_.empty()) || !beginnings.empty()) return translate_lines(all, beginnings);
  std::vector<std::string> lines(all.begin(), all.end());
  const std::vector<const std::string*> found = take_known(all, lines);
  auto translations = translate_lines(lines, beginnings);
  for (size_t i = 0; i < lines.size(); ++i)
    if (found[i]) translations[i].front().text = *found[i];
  return translations;
}

std::vector<std::vector<Translation>> Translator::translate_lines(std::span<const std::string> lines,
                                                                  std::span<const std::string> beginnings) {
  std::vector<Sources> sources;
  sources.push_back(encode(lines));
  for (const EnsembleMember& m : others_) {
    SearchOptions framing;
    framing.source_prefix = m.source_prefix;
    framing = with_prefixes(framing, *m.vocabularies);
    Sources& of_member = sources.emplace_back();
    for (const std::string& line : lines) {
      bool cut = false;
      const int64_t room = max_source_tokens_ - static_cast<int64_t>(framing.source_prefix_ids.size());
      of_member.push_back(source_of(line, m.vocabularies->source(), framing, room, cut));
    }
  }
  CHECK(beginnings.empty() || (beginnings.size() == lines.size() && !sampling_), "{} beginnings of {} translations", beginnings.size(),
        lines.size());
  std::vector<SearchOptions> options = with_beginnings(beginnings);
  if (options_.glossary) add_terms(lines, options);
  return translate_sources(sources, options.empty() ? std::span(&options_, 1) : std::span<const SearchOptions>(options));
}

void Translator::set_glossary(std::shared_ptr<const Glossary> glossary) {
  options_.glossary = std::move(glossary);
  if (!options_.glossary) return;
  if (!others_.empty() || workers_.front().model->parameters().shards())
    throw ConfigError("a glossary works with one model that is not divided among ranks; leave it out");
  if (options_.repetition_penalty != 1 || options_.prefix_bias > 0)
    throw ConfigError("a glossary cannot be combined with repetition-penalty or prefix-bias; leave these out");
  speller_.emplace(vocabularies_.target());
}

void Translator::add_terms(std::span<const std::string> lines, std::vector<SearchOptions>& options) const {
  for (size_t i = 0; i < lines.size(); ++i) {
    SearchOptions of_line = speller_->with_terms(options.empty() ? options_ : options[i], lines[i]);
    if (!of_line.terms) continue;
    if (options.empty()) options.assign(lines.size(), options_);
    options[i] = std::move(of_line);
  }
}

std::vector<std::vector<Translation>> Translator::translate_sources(const std::vector<Sources>& all,
                                                                    std::span<const SearchOptions> options) {
  CHECK(all.size() == others_.size() + 1, "sources for {} of {} models", all.size(), others_.size() + 1);
  const Sources& sources = all.front();
  std::vector<size_t> order;
  for (size_t i = 0; i < sources.size(); ++i)
    if (std::none_of(all.begin(), all.end(), [&](const Sources& each) { return each[i].empty(); })) order.push_back(i);
  // Longest first: memory peaks at the start, and the short ones fill the end.
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return sources[a].size() > sources[b].size(); });

  std::vector<std::vector<Translation>> results(sources.size(), std::vector<Translation>(1));
  widest_ = 1;
  for (const SearchOptions& o : options) widest_ = std::max({widest_, o.beam, o.terms ? o.terms_beam : 0});
  const Batches batches = batches_that_fit(order, all);
  double all_tokens = 0, done_tokens = 0;
  for (const size_t i : order) all_tokens += static_cast<double>(sources[i].size());
  std::vector<double> under_way(workers_.size());  // estimated tokens done in each worker's batch
  std::mutex mutex;                                // guards these numbers and the watch
  std::atomic<size_t> next{0};
  work_side_by_side(std::min(workers_.size(), batches.size()), [&](size_t worker) {
    const auto tell = [&](double done, double tokens) {
      if (!watch_.translated) return;
      const std::lock_guard lock(mutex);
      done_tokens += done;
      under_way[worker] = tokens;
      watch_.translated(std::accumulate(under_way.begin(), under_way.end(), done_tokens) / all_tokens);
    };
    for (size_t b; (b = next++) < batches.size();) {
      stop_if_asked();
      double tokens = 0;
      for (const size_t i : batches[b]) tokens += static_cast<double>(sources[i].size());
      translate_batch(workers_[worker], batches[b], all, options, results, [&](double share) { tell(0, share * tokens); });
      tell(tokens, 0);
    }
  });
  for (size_t i : order) {
    output_tokens_ += results[i].front().tokens;
    missing_terms_ += results[i].front().hypothesis.missing_terms;
  }
  lines_before_ += static_cast<int64_t>(sources.size());
  return results;
}

}  // namespace starling
