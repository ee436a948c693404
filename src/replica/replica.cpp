#include "replica/replica.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "parallel/stages.h"
#include "replica/r_drop.h"
#include "strategies/factory.h"

namespace starling {
namespace {

// Returns the tables whose whole gradient is computed on this rank.
std::vector<ExchangedTable> exchanged_tables(Model& model) {
  const UnitRange& here = model.parameters().units();
  std::vector<ExchangedTable> tables;
  for (const EmbeddingTable& t : model.embedding_tables())
    if (std::all_of(t.table->units.begin(), t.table->units.end(), [&](size_t unit) { return here.in_range(unit); }))
      tables.push_back({t.table, t.source || t.target, t.output});
  return tables;
}

std::vector<MatrixPlace> muon_matrices(Model& model, const OptimizerOptions& options) {
  return options.optimizer == OptimizerKind::muon ? layer_matrices(model) : std::vector<MatrixPlace>{};
}

// Keeps this shard's tokens, as local row indices of its table.
void to_local_rows(std::vector<int32_t>& tokens, const VocabularyShard& shard, int64_t rows) {
  if (!shard.group) return;
  for (int32_t& token : tokens) token -= static_cast<int32_t>(shard.first);
  std::erase_if(tokens, [&](int32_t row) { return row < 0 || row >= rows; });
}

// Target tokens of the text.
double tokens_of(const Batch& batch) { return static_cast<double>(batch.target.count() / passes_of(batch)); }

// Returns a stand-in for a batch on a MetaBackend: the same ops run in the same order, so that gradients become complete as they would, but
// it costs the host nothing. Time is charged for the whole batch.
Batch one_token_each(const Batch& batch) {
  Batch one;
  one.epoch = batch.epoch;
  one.index = batch.index;
  for (const auto& [from, to] : {std::pair(&batch.source, &one.source), std::pair(&batch.target, &one.target)})
    to->append(from->tokens.data(), from->tokens.data() + 1);
  one.sample_ids.assign(batch.sample_ids.begin(), batch.sample_ids.begin() + 1);
  one.weights.assign(batch.weights.begin(), batch.weights.begin() + (batch.weights.empty() ? 0 : 1));
  return one;
}

}  // namespace

std::vector<MatrixPlace> layer_matrices(Model& model) {
  const std::vector<EmbeddingTable> tables = model.embedding_tables();
  std::vector<MatrixPlace> all;
  for (const Parameter& p : model.parameters().all())
    if (p.shape.rank() == 2 && !p.copy && !table_of(tables, p))
      all.push_back({p.offset, p.shape[0], p.shape[1], p.cut.axis == 1 ? p.cut.blocks : 1});
  return all;
}

Replica::Replica(Model& model, const StepOptions& options, World& world, const Mesh* mesh)
    : model_(model),
      options_(options),
      world_(world),
      own_mesh_(mesh ? std::nullopt : std::make_optional<Mesh>(*world.comm)),
      mesh_(mesh ? *mesh : *own_mesh_),
      strategy_(make_strategy(options_in(world, options.strategy), model.parameters(), exchanged_tables(model),
                              mesh_.data_parallel().rank(), mesh_.data_parallel().size(), muon_matrices(model, options.optimizer))),
      cost_(model, strategy_->buckets()),
      optimizer_(model.parameters().backend(), options.optimizer, strategy_->owned(mesh_.data_parallel().rank()),
                 muon_matrices(model, options.optimizer)),
      tracker_(model.parameters(), strategy_->buckets(), [this](size_t b) { bucket_times_.bucket_ready(b, step_->calls->ready); }),
      bucket_times_(*world.clock, strategy_->buckets().size()),
      gradient_sum_(model.parameters()),
      shared_(model, mesh_),
      passes_(model, mesh_, gradient_sum_),
      sharded_time_(*world.clock, mesh_.tensor_parallel()) {
  CHECK(world.computes == model.parameters().values().has_elements(), "a model {} in a world that {}",
        world.computes ? "without elements" : "with elements", world.computes ? "computes" : "only takes time");
  if (options.optimizer.ema > 0 && comm().rank() == 0) average_ = model.parameters().values().clone();
  begin();
}

// Transfers under way still need their destination.
Replica::~Replica() {
  try {
    if (std::uncaught_exceptions() == 0) parameters().wait_for_parameters();
  } catch (...) {  // another rank has gone
  }
  parameters().expect({});
}

Replica::Step::Step(std::span<const Batch> batches, const End& asked_for, const Refinement& samples, double r_drop)
    : references(batches.size()), refinement(samples), end(asked_for) {
  doubled.reserve(batches.size());
  for (const Batch& batch : batches) share.push_back(r_drop > 0 ? &doubled.emplace_back(starling::doubled(batch, r_drop)) : &batch);
  for (const Batch& batch : samples.batches) share.push_back(&batch);
}

StepResult Replica::step(std::span<const Batch> share, End end, const Refinement& refinement) {
  const double start = clock().seconds();
  step_.emplace(share, end, refinement, r_drop());
  const int64_t updates = optimizer_.updates();
  StepResult result = strategy_->step(*this);
  share_parameters();
  // The average follows closely at first: a decay of (1 + t) / (10 + t) until the asked-for one is reached.
  if (average_ && optimizer_.updates() > updates) {
    const double t = static_cast<double>(optimizer_.updates());
    parameters().backend().moving_average(parameters().values(), average_, std::min(options_.optimizer.ema, (1.0 + t) / (10.0 + t)));
  }
  step_.reset();
  times_.total += clock().seconds() - start;
  ++times_.steps;
  return result;
}

void Replica::gradients(const Calls& calls) {
  const double start = clock().seconds();
  gradient_sum_.begin();
  step_->calls = &calls;
  tracker_.restart();
  bucket_times_.restart();
  step_->losses.clear();
  if (step_->share.empty()) parameters().wait_for_parameters();  // at the same place among the exchanges as where there is a forward pass
  if (const auto n = static_cast<int64_t>(step_->share.size()) * (mesh_.hybrid() ? 2 : 1); n > (loss_sums_ ? loss_sums_.rows() : 0))
    loss_sums_ = Tensor({n, Loss::kSums}, DType::f64, parameters().backend().memory());
  std::vector<const Batch*> computed = step_->share;
  // Where nothing is computed, one token stands for a batch, unless its size is that of messages.
  if (!world_.computes && !mesh_.divided()) {
    step_->stand_ins.clear();
    step_->stand_ins.reserve(step_->share.size());
    for (const Batch*& batch : computed) batch = &step_->stand_ins.emplace_back(one_token_each(*batch));
  }
  passes_.restart(std::move(computed));
  const auto turns = mesh_.hybrid() ? hybrid_schedule(mesh_.stage(), step_->share.size())
                                    : one_forward_one_backward(mesh_.stage(), mesh_.stages(), step_->share.size());
  for (const PipelineOp& turn : turns) {
    switch (turn.kind) {
      case PipelineOp::forward:
        forward(turn.pass);
        break;
      case PipelineOp::output:
        output(turn.pass);
        break;
      case PipelineOp::backward:
        backward(turn.pass);
        break;
    }
    const bool losses = turn.kind == (mesh_.hybrid() ? PipelineOp::output : PipelineOp::forward);
    if (losses && turn.pass + 1 == step_->share.size() && calls.forward_done) calls.forward_done();
  }
  times_.passes += clock().seconds() - start;
  gradient_sum_.complete();  // before a strategy may begin to exchange them
  if (step_->share.empty()) {
    if (calls.forward_done) calls.forward_done();
  } else {
    shared_.gather_gradients(clock());
  }
  tracker_.complete_rest();
  step_->calls = nullptr;
}

StepSums Replica::sums() {
  StepSums sums{{}, {step_->end.stop ? 1.0 : 0.0, step_->end.finished ? 1.0 : 0.0, step_->end.time_gone}};
  StepTotals& totals = sums.totals;
  totals.reward = step_->refinement.reward;
  totals.samples = step_->refinement.samples;
  totals.distinct = step_->refinement.distinct;
  if (step_->losses.empty()) return sums;
  Tensor numbers(loss_sums_.shape(), DType::f64);  // on the host, so that one wait is enough
  if (loss_sums_.has_elements()) numbers.copy_from(loss_sums_);
  for (size_t i = 0; i < step_->losses.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    const LossSums loss = step_->losses[i].loss.read(numbers.rows(at, at + 1));
    totals.clipped += static_cast<double>(loss.clipped);
    totals.clippable += static_cast<double>(loss.clippable);
    totals.alignment += loss.alignment;
    if (!step_->losses[i].counted) continue;
    const Batch& batch = *step_->losses[i].counted;
    const auto passes = static_cast<double>(passes_of(batch));
    totals.smoothed += batch.weights.empty() || batch.r_drop > 0 ? loss.smoothed : loss.nll;
    totals.nll += loss.nll / passes;
    totals.correct += static_cast<double>(loss.correct) / passes;
    totals.consistency += loss.consistency;
    totals.tokens += tokens_of(batch);
    totals.source_tokens += static_cast<double>(batch.source.count()) / passes;
    totals.sentences += static_cast<double>(batch.source.sentences()) / passes;
  }
  return sums;
}

double Replica::part_tokens() {
  if (step_->share.size() > step_->references || step_->share.empty() || !mesh_.counts()) return 0;  // samples have another gradient
  if (comm().size() == 1) return step_->share.size() == 1 || mesh_.divided() ? 0 : tokens_of(*step_->share.front());
  double tokens = 0;
  for (const Batch* batch : step_->share) tokens += tokens_of(*batch);
  return tokens;
}

PassRows Replica::rows_of(size_t index, size_t step) {
  const ChunkedPass& pass = *passes_[index].model;
  const Batch& batch = *step_->share[index];  // the whole one, even if one token stands in for it
  return pass.steps() > 1 ? cost_.rows(batch, pass.share(step)) : cost_.rows(batch);
}

void Replica::forward(size_t index) {
  comm().note("forward pass", optimizer_.updates() + 1);
  StagePass& pass = passes_.open(index, options_.label_smoothing);
  Loss loss;
  for (size_t i = 0; i < pass.model->steps(); ++i) {
    StageStep& step = passes_.next_step(index, options_.seed, static_cast<uint64_t>(optimizer_.updates() + 1));
    // A loss computes its own gradients during the forward pass: an output table that nothing else uses is complete before the backward
    // pass begins. Its bucket is exchanged as soon as the backward pass begins.
    step.tape.on_gradient_ready = [this, &pass, index](const Parameter& p) {
      if (!pass.backwards)
        pass.complete.push_back(&p);
      else if (index + 1 == step_->share.size())
        gradient_complete(p);
    };
    const PassRows rows = rows_of(index, i);
    const double start = clock().seconds();
    const auto body = [&] {
      if (i == 0) loss = Loss(step.tape);
      step.out = pass.model->forward(step.tape, step.in, loss);
      if (i + 1 < pass.model->steps()) return;
      keep(std::move(loss), index < step_->references && mesh_.counts() && !mesh_.hybrid() ? step_->share[index] : nullptr);
    };
    if (parameters().expects())
      forward_by_units(rows, body);
    else
      compute(of_pass(index, cost_.forward(rows, index + i == 0)), i, body);
    times_.forward += clock().seconds() - start;
    passes_.forward_done(index);
  }
}

void Replica::forward_by_units(const PassRows& rows, const std::function<void()>& body) {
  std::vector<bool> reached(model_.units(), false);
  bool computing = false;
  parameters().on_reach([&](size_t unit) {
    if (reached[unit]) return;
    reached[unit] = true;
    if (std::exchange(computing, true)) clock().end();
    parameters().arrive(unit);
    clock().begin(cost_.forward_of_unit(unit, rows, true));
  });
  try {
    body();
    if (computing) clock().end();
  } catch (...) {
    parameters().on_reach({});
    throw;
  }
  parameters().on_reach({});
  CHECK(std::find(reached.begin(), reached.end(), false) == reached.end(), "a forward pass that has not reached all units");
}

void Replica::take(const Take& next) {
  take_ = next;
  if (options_.beta2_by_tokens) optimizer_.set_beta2(std::pow(options_.optimizer.beta2, static_cast<double>(next.batches)));
}

double Replica::r_drop() const {
  return static_cast<double>(take_ ? take_->after - take_->batches : optimizer_.updates()) >= options_.r_drop_from * schedule_end_
             ? options_.r_drop
             : 0;
}

void Replica::keep(Loss loss, const Batch* counted) {
  const auto at = static_cast<int64_t>(step_->losses.size());
  loss_sums_.rows(at, at + 1).copy_from(loss.sums);
  loss.sums = {};
  loss.rows = {};  // they lie in the arena
  step_->losses.push_back({std::move(loss), counted});
}

void Replica::output(size_t index) {
  comm().note("output", optimizer_.updates() + 1);
  OutputShares& output = passes_.output();
  const Batch& share = output.own(index);
  if (share.target.count() > 0) {
    Tape& tape = output.begin(index, options_.label_smoothing, options_.seed, static_cast<uint64_t>(optimizer_.updates() + 1));
    const PassRows rows = cost_.rows(share);
    const double start = clock().seconds();
    clock().spend(of_pass(index, cost_.output_forward(rows, index == 0)), [&] {
      Loss loss(tape);
      output.forward(loss);
      keep(std::move(loss), index < step_->references ? &share : nullptr);
    });
    const double middle = clock().seconds();
    clock().spend(of_pass(index, cost_.output_backward(rows)), [&] { tape.backward(); });
    times_.forward += middle - start;
    times_.backward += clock().seconds() - middle;
  }
  output.end(index);
  if (index + 1 == step_->share.size()) shared_.begin_sums(gradient_sum_);
}

void Replica::backward(size_t index) {
  comm().note("backward pass", optimizer_.updates() + 1);
  StagePass& pass = passes_[index];
  const bool last = index + 1 == step_->share.size();
  for (size_t i = pass.steps.size(); i-- > 0;) {
    Tape& tape = passes_.await_gradients(index, i).tape;
    const double start = clock().seconds();
    const PassRows rows = rows_of(index, i);
    const bool packs = index == 0 && i + 1 == pass.steps.size();
    const auto body = [&] {
      if (!std::exchange(pass.backwards, true) && last)
        for (const Parameter* p : pass.complete) gradient_complete(*p);
      tape.backward();
    };
    if (last && mesh_.shards() == 1) {
      const size_t buckets = strategy_->buckets().size();
      bucket_times_.spend(
          [&](size_t b) {
            return of_pass(index, b < buckets ? cost_.backward(rows, static_cast<int64_t>(b), packs) : Work{Work::backward});
          },
          body);
    } else {
      // With shards, the time passes between their exchanges, for all of them together, and not where buckets end: those differ on the rank
      // that also owns the parameters that are not cut.
      compute(of_pass(index, cost_.backward(rows, -1, packs)), i, body);
    }
    times_.backward += clock().seconds() - start;
    passes_.backward_done(index, i);
  }
  if (index == 0 && !last && step_->calls->first_done && !mesh_.divided()) {
    gradient_sum_.complete();
    step_->calls->first_done();
  }
}

// Gradients to which other stages contribute are completed after the pass.
void Replica::gradient_complete(const Parameter& p) {
  if (p.hold == Parameter::owned && !shared_.has(p)) tracker_.complete(p);
}

LookupRows Replica::lookup_rows(const Parameter& table, bool last_only) {
  LookupRows rows;
  for (const EmbeddingTable& t : model_.embedding_tables()) {
    if (t.table != &table) continue;
    for (size_t i = last_only && !step_->share.empty() ? step_->share.size() - 1 : 0; i < step_->share.size(); ++i) {
      const Batch& batch = *step_->share[i];
      if (t.source) rows.touched.insert(rows.touched.end(), batch.source.tokens.begin(), batch.source.tokens.end());
      if (!t.target) continue;
      // The decoder reads the target shifted right by one: the begin token, and all but each sentence's last.
      for (int64_t b = 0; b < batch.target.sentences(); ++b) {
        const auto begin = batch.target.tokens.begin() + batch.target.offsets[static_cast<size_t>(b)];
        const auto end = batch.target.tokens.begin() + batch.target.offsets[static_cast<size_t>(b) + 1];
        if (begin == end) continue;
        rows.touched.push_back(model_.vocabulary().begin);
        rows.touched.insert(rows.touched.end(), begin, end - 1);
      }
    }
  }
  to_local_rows(rows.touched, vocabulary_shard(parameters(), table), table.shape[0]);
  rows.tokens = static_cast<int64_t>(rows.touched.size());
  std::sort(rows.touched.begin(), rows.touched.end());
  rows.touched.erase(std::unique(rows.touched.begin(), rows.touched.end()), rows.touched.end());
  return rows;
}

double Replica::gradient_divisor(const StepTotals& totals) {
  return std::max(options_.optimizer.loss_normalization == LossNormalization::sentences ? totals.sentences : totals.tokens, 1.0);
}

Worker::UpdatePlan Replica::plan_update(const StepSums& sums, double gradient_norm) {
  const int64_t update = optimizer_.updates() + 1;
  const double clip = clip_norm(options_.optimizer, update);
  const double factor = clip > 0 && gradient_norm > clip ? clip / gradient_norm : 1.0;
  const int64_t at = take_ ? take_->after : update;
  double end = schedule_end_;  // or where the time runs out at this pace, if that is sooner
  if (const double gone = sums.control.time_gone; gone > 0) end = std::min(end, static_cast<double>(at) / std::min(gone, 1.0));
  const double scale = (take_ ? take_->rate_factor : 1) * (rate_factor_ ? rate_factor_(update) : 1);
  return {factor / gradient_divisor(sums.totals), scale * starling::learning_rate(options_.optimizer, at, end)};
}

std::string Replica::step_name() const {
  const int64_t update = optimizer_.updates() + 1;
  if (step_->share.empty()) return fmt::format("update {}", update);
  return fmt::format("epoch {}, batch {} (update {})", step_->share.front()->epoch + 1, step_->share.front()->index, update);
}

SwappedParameters::SwappedParameters(ParameterStore& store, const Tensor& other) : store_(store), other_(other) {
  if (other_) swap();
}
SwappedParameters::~SwappedParameters() {
  if (other_) swap();
}
void SwappedParameters::swap() {
  store_.values().swap_elements(other_);
  store_.changed();
}

}  // namespace starling
