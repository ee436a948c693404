#include "train/validation.h"

#include <algorithm>

#include "base/task_progress.h"
#include "data/batches.h"
#include "text/metrics.h"

namespace starling {

namespace {

constexpr size_t kLongest = 1000;  // tokens a side
constexpr Tag kBoundaryTag = 37;

// Whether it was too long.
bool cut(std::vector<int32_t>& side, int32_t end) {
  if (side.size() <= kLongest) return false;
  side.resize(kLongest), side.back() = end;
  return true;
}

}  // namespace

ParallelSentences read_sentences(const std::string& source, const std::string& target, const Vocabularies& vocabularies) {
  ParallelSentences s;
  PairReader reader({source, target, "", 1});
  std::string_view from, to;
  while (reader.next(from, to)) {
    s.sources.emplace_back(from), s.references.emplace_back(to);
    s.pairs.push_back(encode_pair(vocabularies.source(), vocabularies.target(), from, to));
    s.truncated += cut(s.pairs.back().source, vocabularies.source().eos());
    s.truncated += cut(s.pairs.back().target, vocabularies.target().eos());
  }
  return s;
}

CrossEntropy cross_entropy(Model& model, std::span<const Batch> batches, size_t first, size_t step) {
  CrossEntropy total;
  Arena arena(model.parameters().backend().memory());
  for (size_t i = first; i < batches.size(); i += step) {
    arena.release({});
    Tape tape(model.parameters(), arena);
    const LossSums sums = model.loss(tape, batches[i], 0.0).read();
    total.nll += sums.nll, total.tokens += sums.tokens;
  }
  return total;
}

void require_tokenizer(const ValidConfig& c) {
  const bool needed = c.enabled() && std::any_of(c.metrics.begin(), c.metrics.end(), is_tokenized);
  if (needed && c.tokenize != "auto") bleu_tokenizer_from(c.tokenize);
}

void require_sentences(const ValidConfig& c, int64_t sentences) {
  if (sentences == 0) throw DataError(fmt::format("{}: no sentences to validate on; give another file or remove valid.source", c.source));
}

Validator::Validator(const ValidConfig& config, const Vocabularies& vocabularies, const ValidatorRank& rank)
    : config_(config), vocabularies_(vocabularies), processes_(rank.processes), usable_(rank.usable) {
  ParallelSentences s = read_sentences(config.source, config.target, vocabularies);
  sources_ = std::move(s.sources), references_ = std::move(s.references), truncated_ = s.truncated;
  require_sentences(config, static_cast<int64_t>(s.pairs.size()));
  batches_ = make_batches(s.pairs, config.batch_tokens);
  if (rank.scores && std::any_of(config.metrics.begin(), config.metrics.end(), is_tokenized))
    tokenizer_ = choose_tokenizer(config.tokenize, {&references_, 1}, rank.japanese);
}

double Validator::cross_entropy(Model& model, Communicator& comm) const {
  const CrossEntropy own = starling::cross_entropy(model, batches_, static_cast<size_t>(comm.rank()), static_cast<size_t>(comm.size()));
  const Tensor total({2}, DType::f64);  // negative log-likelihood, tokens
  doubles_of(total)[0] = own.nll, doubles_of(total)[1] = static_cast<double>(own.tokens);
  comm.all_reduce(total).wait(kPatience);
  return doubles_of(total)[0] / std::max(doubles_of(total)[1], 1.0);
}

std::vector<std::string> Validator::translate(Model& model, Communicator& comm) {
  // Memory that others took since the start must not end a run, but what a rank takes for this very search is no loss to the next one:
  // all look before any searches, and of what is free then each has its part.
  const UsableMemory usable = usable_();
  comm.barrier().wait(kPatience);
  // Sentence i is rank i % size's.
  const auto ranks = static_cast<size_t>(comm.size());
  std::vector<std::string> own;
  for (size_t i = static_cast<size_t>(comm.rank()); i < sources_.size(); i += ranks) own.push_back(sources_[i]);
  std::vector<std::string> hypotheses(sources_.size());
  std::string text;
  if (!own.empty()) {
    const Backend& backend = model.parameters().backend();
    const bool alone = !model.parameters().shards();  // shards compute with the model's own backend
    if (const std::tuple kind{backend.activation(), backend.threads(), &backend.memory()}; alone && made_for_ != kind)
      workers_ = make_worker_backends(backend), made_for_ = kind;
    Translator translator(model, vocabularies_, config_.search, 128, 1000, alone ? &workers_ : nullptr);
    translator.set_memory({.processes = processes_, .fewer_at_once = true, .usable = [&] { return usable; }});
    for (auto& n_best : translator.translate(own)) text += n_best.front().text + "\n";
  }
  comm.barrier().wait(kPatience);  // the gather below has the usual deadline
  const std::vector<std::string> texts = gather_texts(comm, text);
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

Validator::Result Validator::run(Model& model, Communicator& comm) {
  const double start = steady_seconds();
  Result result;
  std::vector<std::string> hypotheses;
  EvaluateOptions options;
  if (tokenizer_) options.tokenizer = tokenizer_->tokenizer;
  for (const std::string& metric : config_.metrics) {
    if (metric == "cross-entropy") {
      result.scores.emplace_back(metric, cross_entropy(model, comm));
      continue;
    }
    if (hypotheses.empty()) {
      hypotheses = translate(model, comm);
      const size_t at = hypotheses.size() / 3;
      result.example = fmt::format("{} => {} (reference: {})", sources_[at], hypotheses[at], references_[at]);
    }
    if (comm.rank() == 0) result.scores.emplace_back(metric, evaluate(metric, hypotheses, {&references_, 1}, options).score);
  }
  result.seconds = steady_seconds() - start;
  return result;
}

bool Validator::translates() const {
  return std::any_of(config_.metrics.begin(), config_.metrics.end(), [](const std::string& m) { return m != "cross-entropy"; });
}

Validator::Result Validator::run_in_stages(Model& part, const Mesh& mesh) const {
  const double start = steady_seconds();
  Communicator& pipeline = mesh.pipeline();
  Backend& backend = part.parameters().backend();
  const UnitRange units = part.parameters().units();
  const auto tensors = [&](size_t unit, const Batch& batch) {
    std::vector<Tensor> all;
    for (const Shape& shape : part.boundary(unit, batch)) all.emplace_back(shape, backend.activation(), backend.memory());
    return all;
  };
  const Tensor total({2}, DType::f64);  // negative log-likelihood, tokens
  total.zero();
  Arena arena(backend.memory());
  std::vector<Pending> sent;
  for (size_t i = static_cast<size_t>(mesh.data().rank()); i < batches_.size(); i += static_cast<size_t>(mesh.replicas())) {
    for (const Pending& p : sent) p.wait(kPatience);
    sent.clear();
    arena.release({});
    Tape tape(part.parameters(), arena);
    std::vector<Var> in;
    if (!mesh.first_stage())
      for (const Tensor& x : tensors(units.begin, batches_[i])) {
        pipeline.receive(x, mesh.stage() - 1, kBoundaryTag).wait(kPatience);
        in.push_back({&tape, -1, x});
      }
    Loss loss(tape);
    for (const Var& y : part.forward(tape, batches_[i], 0.0, std::move(in), loss))
      sent.push_back(pipeline.send(y.value, mesh.stage() + 1, kBoundaryTag));
    if (!mesh.counts()) continue;
    const LossSums sums = loss.read();
    doubles_of(total)[0] += sums.nll, doubles_of(total)[1] += static_cast<double>(sums.tokens);
  }
  for (const Pending& p : sent) p.wait(kPatience);
  mesh.all().all_reduce(total).wait(kPatience);
  Result result;
  result.scores = {{"cross-entropy", doubles_of(total)[0] / std::max(doubles_of(total)[1], 1.0)}};
  result.seconds = steady_seconds() - start;
  return result;
}

}  // namespace starling
