#include "evaluation/validation.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/files.h"
#include "base/push_once.h"
#include "base/text_files.h"
#include "data/batches.h"
#include "decode/framing.h"
#include "evaluation/validation_script.h"
#include "metrics/metrics.h"
#include "parallel/output_shares.h"
#include "parallel/stages.h"

namespace starling {

namespace {

constexpr size_t kLongestValidated = 1000;         // tokens per side
constexpr const char* kGivenUp = "given up";       // cannot be a translation, since those end with a line end
constexpr Tag kBoundaryTag = 37, kOutputTag = 38;  // the index of the tensor is added to kOutputTag

// Truncates a side that is too long and returns whether it was.
bool cut(std::vector<int32_t>& side, int32_t end) {
  if (side.size() <= kLongestValidated) return false;
  side.resize(kLongestValidated);
  side.back() = end;
  return true;
}

// Cross-entropies of nats and tokens in turn.
std::vector<double> per_token(std::span<const double> sums) {
  std::vector<double> values;
  for (size_t i = 0; i + 1 < sums.size(); i += 2) values.push_back(sums[i] / std::max(sums[i + 1], 1.0));
  return values;
}

}  // namespace

ParallelSentences read_sentences(const std::string& source, const std::string& target, const Vocabularies& vocabularies,
                                 std::span<const int32_t> tag) {
  ParallelSentences s;
  PairReader reader({source, target, "", 1});
  std::string_view from, to;
  while (reader.next(from, to)) {
    s.sources.emplace_back(from);
    s.references.emplace_back(to);
    s.pairs.push_back(encode_pair(vocabularies.source(), vocabularies.target(), from, to, tag));
    s.truncated += cut(s.pairs.back().source, vocabularies.source().eos());
    s.truncated += cut(s.pairs.back().target, vocabularies.target().eos());
  }
  return s;
}

CrossEntropy cross_entropy(Model& model, std::span<const Batch> batches, size_t first, size_t step,
                           const std::function<bool(double share)>& look) {
  CrossEntropy total;
  Arena arena(model.parameters().backend().memory());
  for (size_t i = first; i < batches.size(); i += step) {
    if (look && !look(static_cast<double>(i) / static_cast<double>(batches.size()))) break;
    arena.release({});
    Tape tape(model.parameters(), arena);
    const LossSums sums = model.loss(tape, batches[i], 0.0).read();
    total.nll += sums.nll;
    total.tokens += sums.tokens;
  }
  return total;
}

void require_tokenizer(const ValidConfig& c) {
  const bool needed = c.enabled() && std::any_of(c.metrics.begin(), c.metrics.end(), is_tokenized);
  if (needed && c.tokenize != "auto") bleu_tokenizer_from(c.tokenize);
}

void require_sentences(const ValidSet& set, int64_t sentences) {
  if (sentences == 0) throw DataError(fmt::format("{}: no sentences to validate on; give another file or remove it", set.source));
}

Validator::Validator(const ValidConfig& config, const Vocabularies& vocabularies, const ValidatorRank& rank)
    : config_(config),
      vocabularies_(vocabularies),
      processes_(rank.processes),
      usable_(rank.usable),
      screen_(rank.screen),
      stop_(rank.stop),
      directory_(rank.directory),
      step_(rank.step) {
  for (const ValidSet& set : config.texts()) read(set, rank);
}

void Validator::read(const ValidSet& set, const ValidatorRank& rank) {
  SearchOptions search = config_.search;
  if (!set.tag.empty()) search.source_prefix = set.tag;
  search = with_prefixes(search, vocabularies_);  // refuses pieces that are not there before hours of training
  ParallelSentences s = read_sentences(set.source, set.target, vocabularies_, search.source_prefix_ids);
  require_sentences(set, static_cast<int64_t>(s.pairs.size()));
  Text text{set.name(), search, {static_cast<int64_t>(sources_.size()), 0}, {static_cast<int64_t>(batches_.size()), 0}, {}};
  if (rank.scores && std::any_of(config_.metrics.begin(), config_.metrics.end(), is_tokenized))
    text.tokenizer = choose_tokenizer(config_.tokenize, {&s.references, 1}, rank.japanese);
  std::move(s.sources.begin(), s.sources.end(), std::back_inserter(sources_));
  std::move(s.references.begin(), s.references.end(), std::back_inserter(references_));
  for (Batch& batch : make_batches(s.pairs, config_.batch_tokens)) batches_.push_back(std::move(batch));
  truncated_ += s.truncated;
  text.sentences.end = static_cast<int64_t>(sources_.size());
  text.batches.end = static_cast<int64_t>(batches_.size());
  texts_.push_back(std::move(text));
}

std::string Validator::tokenizer() const {
  std::vector<std::string> names;
  for (const Text& text : texts_)
    if (text.tokenizer) push_once(names, text.tokenizer->tokenizer.name());
  return fmt::format("{}", fmt::join(names, ","));
}

std::vector<std::string> Validator::notices() const {
  std::vector<std::string> lines;
  for (const Text& text : texts_)
    if (text.tokenizer && !text.tokenizer->notice().empty()) push_once(lines, text.tokenizer->notice());
  return lines;
}

void Validator::add(Result& result, const std::string& metric, const std::vector<double>& values) const {
  result.scores.emplace_back(metric, std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size()));
  if (texts_.size() == 1) return;
  result.by_text.resize(texts_.size());
  for (size_t i = 0; i < texts_.size(); ++i) {
    result.by_text[i].first = texts_[i].name;
    result.by_text[i].second.emplace_back(metric, values[i]);
  }
}

// The shards agree on the answer, since all of them make the same calls.
bool Validator::asked_to_stop(Model& model) const { return stop_ && any_shard(model.parameters().shards(), stop_()); }

double Validator::all_seconds() const {
  const bool scores = std::find(config_.metrics.begin(), config_.metrics.end(), "cross-entropy") != config_.metrics.end();
  return std::max((scores ? entropy_seconds_ : 0) + (translates() ? translation_seconds_ : 0), 1e-9);
}

std::optional<std::vector<double>> Validator::cross_entropy(Model& model, Communicator& comm, TaskProgress& progress) const {
  bool stopped = false;
  const Tensor total({static_cast<int64_t>(2 * texts_.size()) + 1}, DType::f64);  // of each text nats and tokens; ranks that gave up
  const std::span<double> sums = doubles_of(total);
  for (size_t t = 0; t < texts_.size() && !stopped; ++t) {
    const Range of = texts_[t].batches;
    const auto look = [&](double done) {
      const double all = (static_cast<double>(of.begin) + done * static_cast<double>(of.count())) / static_cast<double>(batches_.size());
      if (progress.due()) progress.tell((begun_ + all * entropy_seconds_) / all_seconds(), "cross-entropy");
      return !(stopped = asked_to_stop(model));
    };
    const auto batches = std::span(batches_).subspan(static_cast<size_t>(of.begin), static_cast<size_t>(of.count()));
    const CrossEntropy own =
        starling::cross_entropy(model, batches, static_cast<size_t>(comm.rank()), static_cast<size_t>(comm.size()), look);
    sums[2 * t] = own.nll;
    sums[2 * t + 1] = static_cast<double>(own.tokens);
  }
  sums.back() = stopped ? 1 : 0;
  comm.all_reduce(total).wait(kNoDeadline);
  if (sums.back() > 0) return std::nullopt;
  return per_token(sums);
}

std::optional<std::vector<std::string>> Validator::translate(Model& model, Communicator& comm, TaskProgress& progress) {
  // Memory that other processes took since the start must not end a run. But memory that one rank uses for this search must not count as
  // taken for the next rank, so all ranks read the free memory before any of them searches, and each gets its part.
  const UsableMemory usable = usable_();
  comm.barrier().wait(kNoDeadline);
  // Sentence i belongs to rank i % size.
  const auto ranks = static_cast<size_t>(comm.size());
  const auto rank = static_cast<size_t>(comm.rank());
  std::vector<std::string> hypotheses(sources_.size());
  std::string text;
  bool stopped = false;
  if (rank < sources_.size()) {
    const Backend& backend = model.parameters().backend();
    const bool alone = !model.parameters().shards();  // shards compute with the model's own backend
    if (const std::tuple kind{backend.activation(), backend.threads(), &backend.memory()}; alone && made_for_ != kind)
      workers_ = make_worker_backends(backend), made_for_ = kind;
    Translator translator(model, vocabularies_, config_.search, 128, 1000, alone ? &workers_ : nullptr);
    translator.set_memory({.processes = processes_, .fewer_at_once = true, .usable = [&] { return usable; }});
    translator.set_watch({.stop = stop_, .translated = [&](double done) {
                            if (progress.due()) progress.tell((begun_ + done * translation_seconds_) / all_seconds(), "translating");
                          }});
    std::vector<std::vector<int32_t>> own;  // with the tags of their texts, all in one call so that they share batches
    for (const Text& each : texts_) {
      std::vector<std::string> lines;
      for (auto i = static_cast<size_t>(each.sentences.begin); i < static_cast<size_t>(each.sentences.end); ++i)
        if (i % ranks == rank) lines.push_back(sources_[i]);
      translator.set_search(each.search);
      for (std::vector<int32_t>& source : translator.encode(lines)) own.push_back(std::move(source));
    }
    try {
      for (auto& n_best : translator.translate_encoded(own)) text += n_best.front().text + "\n";
    } catch (const TranslationStopped&) {
      stopped = true;
    }
  }
  comm.barrier().wait(kNoDeadline);  // the gather below has the usual deadline
  const std::vector<std::string> texts = gather_texts(comm, stopped ? kGivenUp : text);
  if (std::find(texts.begin(), texts.end(), kGivenUp) != texts.end()) return std::nullopt;
  for (size_t r = 0; r < ranks; ++r) {
    size_t at = 0;
    for (size_t i = r; i < sources_.size(); i += ranks) {
      const size_t end = texts[r].find('\n', at);
      hypotheses[i] = texts[r].substr(at, end - at);
      at = end + 1;
    }
  }
  return hypotheses;
}

Validator::Result Validator::run(Model& model, Communicator& comm, const std::string& name) {
  const double start = steady_seconds();
  TaskProgress progress(name, comm.rank() == 0 ? screen_ : TaskScreen());
  Result result;
  std::vector<std::string> hypotheses;
  if (progress.due()) progress.tell(0, "");
  begun_ = 0;
  double entropy_seconds = entropy_seconds_, translation_seconds = translation_seconds_;  // of this run
  for (const std::string& metric : config_.metrics) {
    const double before = steady_seconds();
    if (metric == "cross-entropy") {
      const auto measured = cross_entropy(model, comm, progress);
      if (!measured) return {.stopped = true};
      add(result, metric, *measured);
      entropy_seconds = steady_seconds() - before;
      begun_ += entropy_seconds_;
      continue;
    }
    if (hypotheses.empty()) {
      std::optional<std::vector<std::string>> translations = translate(model, comm, progress);
      if (!translations) return {.stopped = true};
      hypotheses = std::move(*translations);
      translation_seconds = steady_seconds() - before;
      begun_ += translation_seconds_;
      const size_t at = hypotheses.size() / 3;
      result.example = fmt::format("{} => {} (reference: {})", sources_[at], hypotheses[at], references_[at]);
    }
    if (comm.rank() != 0) continue;
    if (metric == kScriptMetric) {
      if (progress.due()) progress.tell(-1, "valid.script");
      continue;
    }
    std::vector<double> values;
    double length_ratio = 0;
    for (const Text& text : texts_) {
      EvaluateOptions options;
      if (text.tokenizer) options.tokenizer = text.tokenizer->tokenizer;
      const auto part = [&](const std::vector<std::string>& lines) {
        return std::vector(lines.begin() + text.sentences.begin, lines.begin() + text.sentences.end);
      };
      const std::vector<std::string> references = part(references_);
      const MetricScore score = evaluate(metric, part(hypotheses), {&references, 1}, options);
      values.push_back(score.score);
      length_ratio += score.length_ratio / static_cast<double>(texts_.size());
    }
    add(result, metric, values);
    if (metric == "bleu") result.length_ratio = length_ratio;
  }
  const bool whole = comm.rank() != 0 || hypotheses.empty() || keep_and_score(hypotheses, result);
  if (!config_.script.empty()) {
    comm.barrier().wait(kNoDeadline);  // a script may take longer than a message's deadline
    if (broadcast_text(comm, whole ? "" : kGivenUp) == kGivenUp) return {.stopped = true};
  }
  entropy_seconds_ = entropy_seconds;
  translation_seconds_ = translation_seconds;
  result.seconds = steady_seconds() - start;
  return result;
}

// A few sentences of each text with their references, for people who watch the run from elsewhere, where its texts may not be.
std::string Validator::shown_sentences() const {
  constexpr size_t kShown = 5, kFewest = 2, kMost = 60;  // sentences: of one text; of each of several; of all
  const auto beginning = [](const std::string& line) { return line.substr(0, 2000); };
  nlohmann::ordered_json sentences = nlohmann::ordered_json::array();
  for (const Text& text : texts_) {
    const auto all = static_cast<size_t>(text.sentences.count());
    const size_t shown = std::min(texts_.size() == 1 ? kShown : kFewest, all);
    for (size_t i = 0; i < shown && sentences.size() < kMost; ++i) {
      const size_t line = static_cast<size_t>(text.sentences.begin) + i * all / shown;
      sentences.push_back({{"line", line},
                           {"text", texts_.size() == 1 ? "" : text.name},
                           {"source", beginning(sources_[line])},
                           {"reference", beginning(references_[line])}});
    }
  }
  const nlohmann::ordered_json all{{"sentences", sentences}};
  return all.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

bool Validator::keep_and_score(const std::vector<std::string>& translations, Result& result) {
  const bool scores = std::find(config_.metrics.begin(), config_.metrics.end(), kScriptMetric) != config_.metrics.end();
  if (directory_.empty() || (!scores && !config_.keep_translations)) return true;
  bool interrupted = false;
  const auto files = real_file_system();
  const auto write = [&](const std::string& name, const std::vector<std::string>& lines) {
    const std::string path = join_path(directory_, name);
    files->replace_file(path, fmt::format("{}\n", fmt::join(lines, "\n")));
    return path;
  };
  try {
    files->make_directories(directory_);
    if (config_.keep_translations && !shown_) files->replace_file(join_path(directory_, "sentences.json"), shown_sentences());
    shown_ = true;
    const std::string path = write(fmt::format("{:07}.txt", step_()), translations);
    if (scores) {
      const ScriptResult script = run_validation_script(
          config_.script, {path, write("sources.txt", sources_), write("references.txt", references_)}, 60 * config_.script_minutes, stop_);
      interrupted = script.interrupted;
      if (script.score)
        result.scores.emplace_back(kScriptMetric, *script.score);
      else
        result.complaints.push_back(
            fmt::format("warning: valid.script {}: {}; this validation has no score from it", config_.script, script.complaint));
    }
    if (!config_.keep_translations) files->remove(path);
  } catch (const IoError& e) {
    result.complaints.push_back(fmt::format("warning: the translations of this validation were not kept: {}", e.what()));
  }
  return !interrupted;
}

namespace {

// Receives the previous stage's output for a batch.
std::vector<Var> from_stage_before(Model& part, const Mesh& mesh, const Batch& batch, Tape& tape) {
  std::vector<Var> in;
  if (mesh.first_stage()) return in;
  for (const Shape& shape : part.boundary(part.parameters().units().begin, batch)) {
    const Tensor x = tape.allocate(shape, tape.backend().activation());
    mesh.pipeline().receive(x, mesh.stage() - 1, kBoundaryTag).wait(kNoDeadline);
    in.push_back({&tape, -1, x});
  }
  return in;
}

void to_stage_behind(const Mesh& mesh, const std::vector<Var>& out, std::vector<Pending>& sent) {
  for (const Var& y : out) sent.push_back(mesh.pipeline().send(y.value, mesh.stage() + 1, kBoundaryTag));
}

// Runs this stage's units on a batch; returns a loss only on the stage with the output.
LossSums stage_loss(Model& part, const Mesh& mesh, const Batch& batch, Tape& tape, std::vector<Pending>& sent) {
  Loss loss(tape);
  to_stage_behind(mesh, part.forward(tape, batch, 0.0, from_stage_before(part, mesh, batch, tape), loss), sent);
  return mesh.counts() ? loss.read() : LossSums();
}

// The same if every stage has the output: returns the loss of the sentences for which this stage computes the output.
LossSums hybrid_loss(Model& part, const Mesh& mesh, const Batch& batch, Tape& tape, std::vector<Pending>& sent) {
  const std::vector<UnitRange> stages = stage_units(part, mesh);
  const std::vector<Batch> shares = output_shares(batch, output_weights(part, stages));
  const Batch& own = shares[static_cast<size_t>(mesh.stage())];
  std::vector<Var> reads(part.output_reads().size());
  const auto pass = part.begin_layers(batch, shares, 1);
  Loss layers(tape), loss(tape);
  for (size_t step = 0; step < pass->steps(); ++step) {
    std::vector<Var> in;
    if (step == pass->first_taking()) in = from_stage_before(part, mesh, batch, tape);
    to_stage_behind(mesh, pass->forward(tape, std::move(in), layers), sent);
    const ChunkedPass::ForOutput left = pass->for_output();
    if (!left.rows.tape) continue;
    const std::vector<Range> rows = share_rows(part, shares, left.tensor);
    for (int s = 0; s < mesh.stages(); ++s) {
      const Range& r = rows[static_cast<size_t>(s)];
      if (r.count() == 0) continue;
      const Tensor values = left.rows.value.rows(r.begin, r.end);
      if (s == mesh.stage())
        reads[left.tensor] = {&tape, -1, values};
      else
        sent.push_back(mesh.replica().send(values, s, kOutputTag + static_cast<Tag>(left.tensor)));
    }
  }
  if (own.target.count() == 0) return {};
  const std::vector<Shape> shapes = part.boundary(part.units() - 1, own);
  for (size_t k = 0; k < reads.size(); ++k) {
    if (reads[k].tape) continue;
    const auto from = static_cast<int>(stage_of(stages, part.output_reads()[k]));
    reads[k] = {&tape, -1, tape.allocate(shapes[k], tape.backend().activation())};
    mesh.replica().receive(reads[k].value, from, kOutputTag + static_cast<Tag>(k)).wait(kNoDeadline);
  }
  part.begin_output(own, 0.0)->forward(tape, reads, loss);
  return loss.read();
}

}  // namespace

bool Validator::translates() const {
  return std::any_of(config_.metrics.begin(), config_.metrics.end(), [](const std::string& m) { return m != "cross-entropy"; });
}

Validator::Result Validator::run_in_stages(Model& part, const Mesh& mesh) const {
  const double start = steady_seconds();
  const Tensor total({static_cast<int64_t>(2 * texts_.size())}, DType::f64);  // of each text negative log-likelihood and tokens
  total.zero();
  const std::span<double> all = doubles_of(total);
  Arena arena(part.parameters().backend().memory());
  std::vector<Pending> sent;
  for (size_t i = static_cast<size_t>(mesh.data_parallel().rank()); i < batches_.size(); i += static_cast<size_t>(mesh.replicas())) {
    for (const Pending& p : sent) p.wait(kNoDeadline);
    sent.clear();
    arena.release({});
    Tape tape(part.parameters(), arena);
    const LossSums sums =
        mesh.hybrid() ? hybrid_loss(part, mesh, batches_[i], tape, sent) : stage_loss(part, mesh, batches_[i], tape, sent);
    size_t text = 0;
    while (static_cast<int64_t>(i) >= texts_[text].batches.end) ++text;
    all[2 * text] += sums.nll;
    all[2 * text + 1] += static_cast<double>(sums.tokens);
  }
  for (const Pending& p : sent) p.wait(kNoDeadline);
  mesh.all().all_reduce(total).wait(kNoDeadline);
  Result result;
  add(result, "cross-entropy", per_token(all));
  result.seconds = steady_seconds() - start;
  return result;
}

}  // namespace starling
