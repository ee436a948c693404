#include "train/validation.h"

#include <algorithm>

#include "base/task_progress.h"
#include "data/batches.h"
#include "text/metrics.h"
#include "train/output_shares.h"
#include "train/stages.h"

namespace starling {

namespace {

constexpr size_t kLongest = 1000;  // tokens a side
constexpr Tag kBoundaryTag = 37, kOutputTag = 38;  // and the number of the tensor

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
    if (comm.rank() != 0) continue;
    const MetricScore score = evaluate(metric, hypotheses, {&references_, 1}, options);
    result.scores.emplace_back(metric, score.score);
    if (metric == "bleu") result.length_ratio = score.length_ratio;
  }
  result.seconds = steady_seconds() - start;
  return result;
}

namespace {

// What the stage before sends of a batch, and what this one gives to the next.
std::vector<Var> from_stage_before(Model& part, const Mesh& mesh, const Batch& batch, Tape& tape) {
  std::vector<Var> in;
  if (mesh.first_stage()) return in;
  for (const Shape& shape : part.boundary(part.parameters().units().begin, batch)) {
    const Tensor x = tape.allocate(shape, tape.backend().activation());
    mesh.pipeline().receive(x, mesh.stage() - 1, kBoundaryTag).wait(kPatience);
    in.push_back({&tape, -1, x});
  }
  return in;
}

void to_stage_behind(const Mesh& mesh, const std::vector<Var>& out, std::vector<Pending>& sent) {
  for (const Var& y : out) sent.push_back(mesh.pipeline().send(y.value, mesh.stage() + 1, kBoundaryTag));
}

// Of this stage's units for a batch; a loss only where the output is.
LossSums stage_loss(Model& part, const Mesh& mesh, const Batch& batch, Tape& tape, std::vector<Pending>& sent) {
  Loss loss(tape);
  to_stage_behind(mesh, part.forward(tape, batch, 0.0, from_stage_before(part, mesh, batch, tape), loss), sent);
  return mesh.counts() ? loss.read() : LossSums();
}

// Where every stage has the output: of the sentences that it has it for.
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
    const SteppedPass::ForOutput left = pass->for_output();
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
    mesh.replica().receive(reads[k].value, from, kOutputTag + static_cast<Tag>(k)).wait(kPatience);
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
  const Tensor total({2}, DType::f64);  // negative log-likelihood, tokens
  total.zero();
  Arena arena(part.parameters().backend().memory());
  std::vector<Pending> sent;
  for (size_t i = static_cast<size_t>(mesh.data().rank()); i < batches_.size(); i += static_cast<size_t>(mesh.replicas())) {
    for (const Pending& p : sent) p.wait(kPatience);
    sent.clear();
    arena.release({});
    Tape tape(part.parameters(), arena);
    const LossSums sums = mesh.hybrid() ? hybrid_loss(part, mesh, batches_[i], tape, sent) : stage_loss(part, mesh, batches_[i], tape, sent);
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
