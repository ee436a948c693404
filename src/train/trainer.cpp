#include "train/trainer.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <numeric>

#include "base/affinity.h"
#include "base/config.h"
#include "base/counted.h"
#include "base/memory.h"
#include "base/sha256.h"
#include "base/state.h"
#include "comm/threads.h"
#include "data/batches.h"
#include "strategies/factory.h"
#include "train/best_model.h"
#include "train/judge.h"
#include "train/micro_batch.h"
#include "train/progress.h"
#include "train/rank_state.h"
#include "train/run_directory.h"
#include "train/run_tokens.h"
#include "train/small_corpus.h"
#include "train/stop_signals.h"
#include "train/validation.h"

namespace starling {
namespace {

double now() { return WallClock().seconds(); }

class Trainer {
 public:
  Trainer(const Trainer&) = delete;
  Trainer(const Config& config, World& world, const TrainingWatch& watch)
      : config_(config),
        world_(world),
        watch_(watch),
        start_(clock().seconds()),
        files_(real_file_system()),
        progress_(progress_options()) {}

  int run() {
    try {
      return run_to_the_end();
    } catch (const std::exception& e) {
      if (directory_) directory_->failed(e);
      progress_.failure(replica_ ? step() : 0, e.what(), elapsed());
      throw;
    }
  }

 private:
  int run_to_the_end() {
    prepare();
    resume();
    if (first()) {  // nothing that can be refused is left
      directory_->begin(*vocabularies_);
      progress_.open_files(config_.train.output);
      directory_->keep();
    }
    announce();
    // A signal that comes with the last update leaves this to the next start.
    const bool owes_validation = !alone() && config_.valid.enabled() && step() > 0 && validated_ != step();
    if ((finished() || limits_reached()) && !owes_validation) {
      progress_.message(fmt::format("already done: {} in {}, {}; to go on, raise that limit", counted(step(), "update"),
                                    duration_text(earlier_seconds_), limit_reached()));
      return 0;
    }
    std::optional<StopSignals> guard;
    if (may_be_signalled()) guard.emplace();
    replica_->on_asked_to_stop([this] { return stop_asked(); });
    report_start_ = clock().seconds();
    reported_ = comm().traffic();
    reported_step_ = step();
    // What the initial model is worth: updates that only harm it must not become the best.
    if (!config_.train.initial_model.empty() && config_.valid.enabled() && step() == 0 && validated_ < 0) validate();
    if (watch_.resumed) watch_.resumed(true);
    while (!finished() && !stopped_)
      if (update()) between_updates();
    if (watch_.paused) watch_.paused(!alone());
    if (!stopped_ && config_.valid.enabled() && validated_ != step()) validate(), saved_ = -1;  // a checkpoint tells what was validated
    if (saved_ != step()) save();
    if (alone()) report_strategy();
    return conclude();
  }

  // Ranks go their own ways: rank 0 validates and saves by itself, and others end the run (docs/strategies.md).
  bool alone() const { return replica_->strategy().alone(); }

  // What is due after an update and is no training.
  void between_updates() {
    const auto every = [&](int64_t n) { return n > 0 && step() % n == 0; };
    const bool reports = every(config_.log.every) || step() == 1;  // the first shows at once that it runs
    const bool validates = config_.valid.enabled() && every(config_.valid.every);
    const bool compares = every(config_.strategy.check_every), saves = every(config_.checkpoint.every);
    if (!(reports || validates || compares || saves)) return;
    if (watch_.paused) watch_.paused(!alone());
    if (reports) report();
    if (validates) validate();
    if (compares) compare_replicas();
    if (saves) save();
    if (watch_.resumed) watch_.resumed(!alone());
  }

  Communicator& comm() const { return *world_.comm; }
  Clock& clock() const { return *world_.clock; }
  bool first() const { return world_.comm->rank() == 0; }
  int ranks_here() const { return world_.simulated ? comm().size() : world_.local_size; }  // that share this host's memory
  // Simulated ranks share one process, whose signals are rank 0's.
  bool may_be_signalled() const { return first() || !world_.simulated; }
  bool stop_asked() const { return may_be_signalled() && StopSignals::received() != 0; }
  int64_t step() const { return replica_->steps(); }
  double elapsed() const { return earlier_seconds_ + clock().seconds() - start_; }

  // Rank 0 tells; the others are silent. Its files come with RunDirectory::begin.
  ProgressOptions progress_options() const {
    if (!first()) return {};
    // mpirun puts its own terminal in front of every process: what stands behind it cannot be seen from here.
    const bool mpi = comm().size() > 1 && !world_.simulated;
    ProgressOptions options = console_progress(mpi && config_.log.progress == "auto" ? "never" : config_.log.progress);
    options.files_later = true;
    if (watch_.silent) options.console = {}, options.live = false;
    return options;
  }

  void prepare() {
    require_data(config_);
    if (first()) require_tokenizer(config_.valid);
    comm_settings(config_.strategy, comm());
    require_one_configuration();
    const bool divide = config_.train.threads == 0 && comm().size() > 1 && !world_.simulated;
    const auto warn = [&](const std::string& line) { progress_.message("warning: train.threads: " + line); };
    const int threads = divide ? threads_for_rank(comm()) : threads_to_use(config_.train.threads, usable_core_list(), warn);
    backend_ = backend_for_precision(config_.train.precision, threads);
    if (first()) {
      directory_.emplace(*files_, config_, backend_->threads(), [&](const std::string& line) { progress_.message(line); });
      vocabularies_.emplace(directory_->vocabularies());
    }
    share_vocabularies();
    model_ = make_model(config_.model, vocabularies_->sizes(), *backend_, config_.train.seed, true);
    take_initial_weights();
    plan_steps();
    if (first()) directory_->require_same_run(batch_tokens_, worker_batch_tokens());
    open_store();
    if (config_.valid.enabled()) open_validation();
    stream_.emplace(*store_, batch_options(config_, batch_tokens_));
    batches_per_epoch_ = stream_->count_batches(0);
    const MicroBatchNeed need{size_of(backend_->activation()), model_->parameters().count(), ranks_here()};
    const auto say = [&](const std::string& line) { progress_.message(line); };
    micro_tokens_ = std::stoll(broadcast_text(comm(), std::to_string(micro_batch_tokens(config_, need, usable_memory(), say))));
  }

  // Rank 0 scores. What auto chose for Japanese stays for the whole run, also where MeCab comes or goes.
  void open_validation() {
    std::string japanese;
    if (directory_ && directory_->state()) {
      const State& s = *directory_->state();
      if (s.has("tokenizer") && s.text("tokenize") == "auto") japanese = s.text("tokenizer");
    }
    validator_.emplace(config_.valid, *vocabularies_, ValidatorRank{first(), japanese, ranks_here()});
    if (validator_->truncated() > 0)
      progress_.message(fmt::format("validation: {} sentences were cut at 1000 tokens", validator_->truncated()));
    if (first()) validation_ = sha256_hex(sha256_file(*files_, config_.valid.source) + sha256_file(*files_, config_.valid.target));
    if (const auto& choice = validator_->tokenizer()) {
      tokenizer_ = choice->tokenizer.name();
      if (!choice->notice().empty()) progress_.message(choice->notice());
    }
  }

  // Ranks with unlike settings would meet in the wrong collectives. What may differ between hosts is left out.
  void require_one_configuration() {
    Config mine = config_;
    mine.train.output = "run", mine.train.threads = 0, mine.log = {}, mine.log.every = config_.log.every;
    const std::vector<std::string> all = gather_texts(comm(), dump_config(mine, false));
    for (int r = 0; r < comm().size(); ++r)
      if (all[static_cast<size_t>(r)] != all[0])
        throw ConfigError(fmt::format(
            "rank {} on {} has another configuration than rank 0 on {}; give every host the same file. It has\n{}and rank 0\n{}", r,
            comm().host(r), comm().host(0), all[static_cast<size_t>(r)], all[0]));
  }

  // Rank 0 has trained or loaded them.
  void share_vocabularies() {
    if (comm().size() == 1) return;
    comm().note("preparation", 0);
    wait_for_first();
    const std::string source = broadcast_text(comm(), first() ? vocabularies_->source().bytes() : "");
    const std::string target = broadcast_text(comm(), first() && !vocabularies_->joint() ? vocabularies_->target().bytes() : "");
    if (first()) return;
    std::optional<Vocabulary> second;
    if (!target.empty()) second = Vocabulary::from_bytes(target, "target vocabulary of rank 0");
    vocabularies_.emplace(Vocabulary::from_bytes(source, "vocabulary of rank 0"), std::move(second));
  }

  // The tokens of the training text, on every host.
  void open_store() {
    const double start = now();
    const StoreBuild build{.threads = backend_->threads(), .say = [&](const std::string& line) { progress_.message(line); }};
    const auto of_first = [&] {
      TokenStore store = directory_->open_store(*vocabularies_, build);
      const FilterCounts counts = store.counts();
      progress_.message(fmt::format("data: {} pairs, {} kept ({} empty, {} longer than {} tokens, {} of unequal length){}", counts.total,
                                    counts.kept, counts.empty, counts.too_long, config_.data.max_length, counts.ratio,
                                    store.reused() ? ", tokens reused" : fmt::format(", tokenised in {:.1f} s", now() - start)));
      return store;
    };
    store_.emplace(
        open_tokens_together(*files_, config_.train.output, config_.data, *vocabularies_, build, world_, of_first, data_digest_));
  }

  void wait_for_first() { comm().barrier().wait(kPatience); }

  // What the number of workers makes of batch, rate and warm-up; the replica follows.
  void plan_steps() {
    StepOptions options{config_.train.optimizer, config_.strategy, mixed() ? 0 : config_.train.label_smoothing, config_.train.seed,
                        config_.train.max_steps};
    const int workers = make_strategy(config_.strategy, model_->parameters(), {}, comm().rank(), comm().size())->workers();
    const BatchPlan plan = plan_batch(config_.strategy, config_.train.batch_tokens, workers);
    batch_tokens_ = plan.global_tokens;
    options.optimizer.learning_rate *= plan.rate_factor, options.optimizer.sgd_learning_rate *= plan.rate_factor;
    optimizer_ = options.optimizer;
    if (config_.train.warmup_tokens > 0)
      options.optimizer.warmup = std::max<int64_t>(1, (config_.train.warmup_tokens + batch_tokens_ / 2) / batch_tokens_);
    rate_ = options.optimizer.learning_rate, warmup_ = options.optimizer.warmup;
    replica_.emplace(*model_, options, world_);
  }

  // Of rank 0, in a new run with train.initial-model; else null.
  const ModelDescription* initial() const { return directory_ && directory_->initial() ? &*directory_->initial() : nullptr; }

  // A new run with train.initial-model has the weights from there; the optimizer begins anew.
  void take_initial_weights() {
    if (config_.train.initial_model.empty()) return;
    const ModelDescription* initial = this->initial();
    if (initial) {
      load_weights(*files_, join_path(initial->directory, "model.safetensors"), model_->parameters());
      progress_.message(fmt::format("weights and vocabulary from {}", initial->directory));
    }
    wait_for_first();
    const std::string clip = broadcast_text(comm(), initial ? fmt::format("{}", initial->config.clip) : "");
    if (!clip.empty()) model_->set_clip(std::stod(clip));  // until the first update: it is validated as it is
    comm().broadcast(model_->parameters().values(), 0).wait(kPatience);
    model_->parameters().changed();
  }

  void announce() {
    progress_.message(
        fmt::format("model: {}, {:.2f} M parameters; {}; {} target tokens an update, computed {} at a time; about {} an epoch",
                    config_.model.preset, static_cast<double>(model_->parameters().count()) / 1e6, backend_->describe(), batch_tokens_,
                    std::min(micro_tokens_, batch_tokens_), counted(batches_per_epoch_, "update")));
    if (mixed())
      progress_.message(
          fmt::format("objective: expected GLEU of {} samples a source (baseline {}) + {:g} x likelihood without label smoothing",
                      config_.refine.samples, config_.refine.baseline, config_.refine.likelihood_weight));
    progress_.message(fmt::format("learning rate {:g} after {} updates of warm-up{}", rate_, warmup_,
                                  batches_per_epoch_ > 0 ? fmt::format(", {:.1f} epochs", double(warmup_) / double(batches_per_epoch_)) : ""));
    warn();
    nlohmann::ordered_json event{{"type", "start"},
                                 {"step", step()},
                                 {"parameters", model_->parameters().count()},
                                 {"backend", backend_->describe()},
                                 {"pairs", store_->size()}};
    if (comm().size() > 1) {
      // Ranks that are alike share a line.
      std::vector<std::string> texts =
          gather_texts(comm(), fmt::format("{}{}: {}", comm().host(comm().rank()),
                                           world_.simulated ? "" : ", " + cores_text(usable_core_list()), backend_->describe()));
      for (int r = 0, last = 0; r < comm().size(); r = last + 1) {
        for (last = r; last + 1 < comm().size() && texts[static_cast<size_t>(last) + 1] == texts[static_cast<size_t>(r)];) ++last;
        progress_.message(fmt::format("{} on {}", last > r ? fmt::format("ranks {} to {}", r, last) : fmt::format("rank {}", r),
                                      texts[static_cast<size_t>(r)]));
      }
      progress_.message(fmt::format("strategy: {}", replica_->strategy().describe()));
      event["ranks"] = comm().size();
      event["strategy"] = config_.strategy.name;
    }
    progress_.event(event);
  }

  // Settings that may be meant, but rarely are.
  void warn() {
    const TrainConfig& t = config_.train;
    const ModelConfig& m = config_.model;
    if (mixed() && std::max({m.dropout, m.attention_dropout, m.feed_forward_dropout}) > 0)
      progress_.message(
          "warning: train.objective is mixed and there is dropout, so the gradient is that of other models than the one that "
          "is sampled from; set model.dropout, attention-dropout and feed-forward-dropout to 0");
    if (mixed() && t.initial_model.empty() && step() == 0)
      progress_.message(
          "warning: train.objective is mixed from random weights on, whose samples teach nothing; name a converged model in "
          "train.initial-model");
    const ModelDescription* initial = this->initial();
    if (initial && initial->config.clip > 0 && std::abs(state_clip(config_, 1) / initial->config.clip - 1) > 1e-6)
      progress_.message(
          fmt::format("warning: train.initial-model bounds its states by {0:g}, but this run begins with {1:g} (0 = none); to go "
                      "on as it ended, set train.clip-start and model.clip to {0:g}",
                      initial->config.clip, state_clip(config_, 1)));
    if (initial && initial->config.clip == 0 && state_clip(config_, 1) > 0)
      progress_.message(fmt::format(
          "warning: the states of train.initial-model are not bounded, but this run bounds them by {:g} from its first update on; "
          "what they exceed it by is lost at once: set model.clip to 0, or begin wide with train.clip-start",
          state_clip(config_, 1)));
    for (const std::string& key : idle_keys(config_)) progress_.message("warning: " + key);
    if (const std::string advice = small_corpus_advice(config_, store_->size(), batches_per_epoch_); !advice.empty() && step() == 0)
      progress_.message(advice);
    if (t.optimizer.sgd_after > 0 && t.optimizer.sgd_after >= t.max_steps)
      progress_.message(fmt::format("train.sgd-after {} is not reached within train.max-steps {}", t.optimizer.sgd_after, t.max_steps));
  }

  bool time_is_up() const { return config_.train.max_minutes > 0 && elapsed() >= 60 * config_.train.max_minutes; }

  bool finished() const {
    if (alone()) return finished_;  // the servers count
    return step() >= config_.train.max_steps || limits_reached() || finished_ || (comm().size() == 1 && time_is_up());
  }

  // Those that this rank knows of itself.
  bool limits_reached() const {
    const TrainConfig& t = config_.train;
    return early_stopped_ || (t.max_epochs > 0 && stream_->position().epoch >= t.max_epochs);
  }

  // Which of them ended the run.
  std::string limit_reached() const {
    const TrainConfig& t = config_.train;
    if (early_stopped_)
      return fmt::format("early stopping: {} not better in {} validations", config_.valid.deciding_metric(), judge_.stalled());
    if (step() >= t.max_steps) return fmt::format("complete: train.max-steps {}", t.max_steps);
    if (limits_reached()) return fmt::format("complete: train.max-epochs {}", t.max_epochs);
    if (time_is_up()) return fmt::format("complete: train.max-minutes {:g}", t.max_minutes);
    return "complete";
  }

  double fraction() const {
    const TrainConfig& t = config_.train;
    double f = alone() ? last_.fraction : static_cast<double>(step()) / static_cast<double>(t.max_steps);
    const BatchPosition at = stream_->position();
    if (t.max_epochs > 0)
      f = std::max(f, (static_cast<double>(at.epoch) +
                       static_cast<double>(at.index) / static_cast<double>(std::max<int64_t>(batches_per_epoch_, 1))) /
                          static_cast<double>(t.max_epochs));
    if (t.max_minutes > 0) f = std::max(f, elapsed() / (60 * t.max_minutes));
    return std::min(f, 1.0);
  }

  // The first update of SGD says so.
  void announce_sgd() {
    if (optimizer_.sgd_after == 0 || step() != optimizer_.sgd_after) return;
    const auto clipping = [](double norm) { return norm > 0 ? fmt::format("clipped to norm {:g}", norm) : std::string("not clipped"); };
    progress_.message(fmt::format("{} updates of {} done; from here on plain SGD: learning rate {:g}{}, gradient {}", step(),
                                  optimizer_.optimizer, optimizer_.sgd_learning_rate,
                                  optimizer_.sgd_halve_every > 0 ? " with halvings" : "", clipping(optimizer_.sgd_clip_norm)));
  }

  bool mixed() const { return config_.train.objective == "mixed"; }

  // Samples for this rank's share, whose references get the weight of the likelihood. A simulated clock is charged one forward pass
  // over as many target tokens as the samples would have if they were as long as the references.
  Refinement refine(Batch& own) {
    Refinement refinement;
    comm().note("sampling", step() + 1);
    clock().spend(replica_->cost().forward(own.source.count(), config_.refine.samples * own.target.count()),
                  [&] { refinement = sample_refinement(*model_, own, config_.refine, config_.train.seed, step() + 1, micro_tokens_); });
    own.weights.assign(own.sample_ids.size(), static_cast<float>(config_.refine.likelihood_weight));
    return refinement;
  }

  // False if the strategy had no update to be made any more.
  bool update() {
    announce_sgd();
    deployed_ = {};
    const int64_t before = step();
    const BatchPosition position = stream_->position();
    model_->set_clip(state_clip(config_, step() + 1));
    const Batch batch = stream_->next();
    const int workers = replica_->strategy().workers();
    std::vector<Batch> parts;
    Refinement refinement;
    if (comm().rank() < workers) {
      const ComputeCost& cost = replica_->cost();
      Batch own = share(batch, comm().rank(), workers, cost.source_weight(), cost.target_weight());
      if (mixed() && own.target.count() > 0) refinement = refine(own);
      if (own.target.count() > 0) parts = split(own, micro_tokens_);
    }
    // Ranks stop together: what one of them knows, all learn with the sums of this step.
    const bool last = first() && (time_is_up() || (alone() && limits_reached()));
    last_ = replica_->step(parts, {stop_asked(), last}, refinement);
    stopped_ = last_.totals.stop > 0, finished_ = last_.totals.finished > 0;
    epoch_ = batch.epoch + 1;
    window_loss_ += last_.totals.smoothed;
    window_target_ += static_cast<int64_t>(last_.totals.tokens), window_source_ += static_cast<int64_t>(last_.totals.source_tokens);
    window_sentences_ += static_cast<int64_t>(last_.totals.sentences);
    window_clipped_ += last_.totals.clipped, window_clippable_ += last_.totals.clippable;
    window_reward_ += last_.totals.reward, window_samples_ += last_.totals.samples, window_distinct_ += last_.totals.distinct;
    progress_.tick(make_report());
    if (!alone() || (step() > before && comm().rank() < workers)) {
      int64_t own = 0;
      for (const Batch& part : parts) own += part.target.count();
      if (watch_.updated) watch_.updated(step(), own, replica_->strategy().aside_bytes());
      return true;
    }
    stream_->seek(position);
    saved_ = -1;  // the servers may have gone on since
    return false;
  }

  // Replicas must be equal bit for bit; a rank that computes wrongly shows here.
  void compare_replicas() {
    if (comm().size() == 1 || diverges()) return;
    Sha256 hash;
    const Tensor& values = model_->parameters().values();
    // A rank that only serves has current values for its own part alone.
    const bool whole = comm().rank() < replica_->strategy().workers();
    if (whole) hash.update({values.raw(), static_cast<size_t>(values.bytes())});
    const std::vector<std::string> hashes = gather_texts(comm(), whole ? to_hex(hash.digest()) : "");
    for (int r = 0; r < replica_->strategy().workers(); ++r)
      if (hashes[static_cast<size_t>(r)] != hashes[0])
        throw Error(
            fmt::format("the parameters of rank {} on {} differ from those of rank 0 on {} after update {}: one of them computes or "
                        "communicates wrongly; the latest checkpoint may be from before or after it",
                        r, comm().host(r), comm().host(0), step()));
  }

  TrainReport make_report() const {
    TrainReport r;
    r.step = step(), r.max_steps = config_.train.max_steps, r.epoch = epoch_;
    r.loss = window_target_ > 0 ? window_loss_ / static_cast<double>(window_target_) : reported_loss_;
    r.sentences = window_sentences_, r.source_tokens = window_source_, r.target_tokens = window_target_;
    r.seconds = clock().seconds() - report_start_ - paused_, r.virtual_time = world_.simulated;
    r.learning_rate = last_.learning_rate, r.gradient_norm = last_.gradient_norm;
    if (window_clippable_ > 0) r.clipped = window_clipped_ / window_clippable_;
    if (window_samples_ > 0) r.reward = window_reward_ / window_samples_, r.distinct = window_distinct_ / window_samples_;
    r.fraction = fraction();
    return r;
  }

  void report() {
    if (window_target_ == 0) return;  // no sums have been exchanged since the last line
    const TrainReport line = make_report();
    progress_.report(line);
    reported_loss_ = line.loss;
    report_communication();
    window_reward_ = window_samples_ = window_distinct_ = 0;
    window_loss_ = window_clipped_ = window_clippable_ = 0, window_target_ = window_source_ = window_sentences_ = 0, paused_ = 0;
    report_start_ = clock().seconds();
  }

  // One small gather: what each rank sent and how long it waited since the last report.
  void report_communication() {
    if (comm().size() == 1 || alone()) return;
    const Traffic now_sent = comm().traffic();
    const double span = std::max(clock().seconds() - report_start_, 1e-9);
    const Tensor all({2 * comm().size()}, DType::f64);
    all.data<double>()[2 * comm().rank()] = 1e-9 * static_cast<double>(now_sent.waited_ns - reported_.waited_ns);
    all.data<double>()[2 * comm().rank() + 1] = static_cast<double>(now_sent.bytes_sent - reported_.bytes_sent);
    comm().all_reduce(all).wait();
    reported_ = comm().traffic();
    const int64_t updates = std::max<int64_t>(1, step() - reported_step_);
    reported_step_ = step();
    if (!first()) return;
    std::vector<double> waited, bytes;
    for (int r = 0; r < comm().size(); ++r)
      waited.push_back(all.data<double>()[2 * r]), bytes.push_back(all.data<double>()[2 * r + 1] / static_cast<double>(updates));
    const auto least = std::min_element(waited.begin(), waited.end()) - waited.begin();
    const double mean = std::accumulate(waited.begin(), waited.end(), 0.0) / static_cast<double>(waited.size());
    progress_.event({{"type", "communication"},
                     {"step", step()},
                     {"seconds", span},
                     {"waited", waited},
                     {"bytes_per_update", bytes},
                     {"embeddings", replica_->strategy().embedding_report()}});
    std::string text =
        fmt::format("communication: ranks waited {:.1f} % of the time (rank {} least, {:.1f} %), {:.2f} MiB sent per rank and update",
                    100 * mean / span, least, 100 * waited[static_cast<size_t>(least)] / span,
                    *std::max_element(bytes.begin(), bytes.end()) / (1 << 20));
    if (const std::string rows = replica_->strategy().embedding_report(); !rows.empty() && step() == 1) text += "; " + rows;
    progress_.message(text);
  }

  void validate() {
    if (alone()) return validate_alone();
    comm().note("validation", step());
    const double start = clock().seconds();
    Tensor average = replica_->average();
    if (comm().size() > 1 && config_.train.optimizer.ema > 0) {  // rank 0 keeps it
      if (!first()) average = Tensor(model_->parameters().values().shape(), model_->parameters().values().dtype());
      comm().broadcast(average, 0).wait(kPatience);
    }
    if (diverges()) average = deployed();
    if (replica_->strategy().workers() < comm().size()) {  // ranks that only serve know their own part, but translate a share too
      comm().broadcast(model_->parameters().values(), 0).wait(kPatience);
      model_->parameters().changed();
    }
    const SwappedParameters averaged(model_->parameters(), average);
    const Validator::Result result = validator_->run(*model_, comm());
    validated_ = step();
    if (first()) judge(result);
    if (comm().size() > 1) {
      wait_for_first();
      early_stopped_ = broadcast_text(comm(), early_stopped_ ? "stop" : "") == "stop";
    }
    paused_ += clock().seconds() - start;
  }

  void validate_alone() {
    validated_ = step();
    if (!first()) return;
    const double start = clock().seconds();
    const SwappedParameters served(model_->parameters(), replica_->average() ? replica_->average() : replica_->deployed(false));
    const World self = make_local_world();
    judge(validator_->run(*model_, *self.comm));
    paused_ += clock().seconds() - start;
  }

  // Rank 0: is it the best so far, and has it been for too long?
  void judge(const Validator::Result& result) {
    const int64_t known = judge_.best_step();
    const Judge::Verdict verdict = judge_.judge(step(), result.scores);
    early_stopped_ = judge_.stops();
    if (verdict.best) {
      directory_->require_owned();
      if (!best_model_) {
        const std::string metric = config_.valid.deciding_metric();
        best_model_.emplace(*files_, config_.train.output, metric, validation_ + (is_tokenized(metric) ? " " + tokenizer_ : ""),
                            [&](const std::string& line) { progress_.message(line); });
      }
      best_model_->save(directory_->checkpoints(), step(), judge_.best(), known,
                        model_parts(*model_, model_->config(), *vocabularies_, search_options(config_.valid), step()));
    }
    progress_.validation({.step = step(),
                          .epoch = epoch_,
                          .scores = result.scores,
                          .metric = config_.valid.deciding_metric(),
                          .best = verdict.best,
                          .by = verdict.by,
                          .stalled = judge_.stalled(),
                          .seconds = result.seconds,
                          .tokenizer = tokenizer_,
                          .example = result.example});
    for (const std::string& message : verdict.messages) progress_.message(message);
  }

  void save() {
    if (alone()) return save_alone();
    comm().note("checkpoint", step());
    const double start = clock().seconds();
    RankState ranks(*replica_, comm());
    NamedTensors tensors = ranks.shared();
    const NamedTensors of_ranks = ranks.gather_own();
    if (diverges()) {
      const SwappedParameters merged(model_->parameters(), deployed());
      if (first()) save_here(tensors, of_ranks);
    } else {
      const NamedTensors optimizer = ranks.gather_optimizer();
      tensors.insert(tensors.end(), optimizer.begin(), optimizer.end());
      if (first()) save_here(tensors, of_ranks);
    }
    saved_ = step();
    if (comm().size() > 1) wait_for_first();
    paused_ += clock().seconds() - start;
  }

  // The servers' parameters, optimizer and progress.
  void save_alone() {
    saved_ = step();
    if (!first()) return;
    const double start = clock().seconds();
    NamedTensors tensors;
    Tensor parameters;
    for (const Strategy::StateTensor& t : replica_->strategy_state())
      if (t.name == "parameters")
        parameters = t.tensor;
      else
        tensors.emplace_back(t.name, t.tensor);
    const SwappedParameters served(model_->parameters(), parameters);
    save_here(tensors, {});
    paused_ += clock().seconds() - start;
  }

  // Leaves the others, and says what the run was like.
  void report_strategy() {
    comm().note("end", step());
    replica_->leave();
    const Strategy::Report report = replica_->strategy().report();
    if (!first() || report.text.empty()) return;
    progress_.message(report.text);
    nlohmann::ordered_json event{{"type", "strategy"}, {"step", step()}};
    for (const auto& [name, value] : report.figures) event[name] = value;
    progress_.event(event);
  }

  // Ranks have parameters and moments of their own.
  bool diverges() const { return replica_->strategy().diverges(); }

  int64_t worker_batch_tokens() const { return batch_tokens_ / replica_->strategy().workers(); }

  // What replicas that differ validate and save; made once for an update.
  const Tensor& deployed() {
    const bool final = !stopped_ && finished();
    if (!deployed_ || deployed_final_ != final) deployed_ = replica_->deployed(final), deployed_final_ = final;
    return deployed_;
  }

  void save_here(const NamedTensors& optimizer, const NamedTensors& of_ranks) {
    directory_->require_owned();
    const double start = now();
    const SwappedParameters averaged(model_->parameters(), replica_->average());
    std::vector<Part> parts = model_parts(*model_, model_->config(), *vocabularies_, search_options(config_.valid), step());
    std::vector<NamedBytes> tensors, ranks;
    const auto named = [](const std::string& name, const Tensor& t) {
      return NamedBytes{name, t.dtype() == DType::f64 ? "F64" : "F32", {t.count()}, {t.raw(), static_cast<size_t>(t.bytes())}};
    };
    const auto add = [&](const std::string& name, const Tensor& t) { tensors.push_back(named(name, t)); };
    for (const auto& [name, tensor] : of_ranks) ranks.push_back(named(name, tensor));
    if (!ranks.empty()) parts.push_back(safetensors_part("ranks.safetensors", std::move(ranks)));
    for (const auto& [name, tensor] : optimizer) add(name, tensor);
    if (replica_->average()) add("parameters", replica_->average());  // swapped: the raw values
    parts.push_back(safetensors_part("training.safetensors", std::move(tensors)));
    parts.push_back(text_part("state.json", state().to_json()));
    directory_->checkpoints().save(step(), parts);
    progress_.event(
        {{"type", "checkpoint"}, {"step", step()}, {"directory", directory_->checkpoints().directory(step())}, {"seconds", now() - start}});
  }

  State state() const {
    State s;
    s.put("step", step());
    s.put("moments-since", replica_->moments_since());
    s.put("ranks", int64_t{comm().size()});
    s.put("strategy", config_.strategy.name);
    s.put("epoch", stream_->position().epoch);
    s.put("batch", stream_->position().index);
    s.put("seed", config_.train.seed);
    s.put("batch-tokens", batch_tokens_);
    s.put("worker-batch-tokens", worker_batch_tokens());
    s.put("micro-batch-tokens", micro_tokens_);
    s.put("data", data_digest_);
    s.put("source-vocabulary", vocabularies_->source().hash());
    s.put("target-vocabulary", vocabularies_->target().hash());
    s.put("seconds", elapsed());
    judge_.save(s);
    s.put("tokenize", config_.valid.tokenize);
    s.put("tokenizer", tokenizer_);
    s.put("validation", validation_);
    s.put("validated", validated_);
    return s;
  }

  void resume() {
    NamedTensors optimizer;
    std::string text;
    const Loaded* loaded = directory_ && directory_->checkpoint() ? &*directory_->checkpoint() : nullptr;  // rank 0
    if (loaded) text = directory_->state()->to_json(), optimizer = load_checkpoint(*loaded);
    wait_for_first();
    text = broadcast_text(comm(), text);
    if (text.empty()) return;
    comm().broadcast(model_->parameters().values(), 0).wait(kPatience);
    model_->parameters().changed();
    const State state = State::from_json(text, "the state of rank 0");
    take_up(state);
    replica_->begin();
    RankState ranks(*replica_, comm());
    std::optional<SafetensorsFile> training, own;
    if (first()) training.emplace(*files_, loaded->path("training.safetensors"));
    if (first() && loaded->has("ranks.safetensors")) own.emplace(*files_, loaded->path("ranks.safetensors"));
    const bool each_its_own = !alone() && resume_own(ranks, own, state);
    // Without the replicas that it belongs to, what the strategy was about to do is worth nothing.
    if (each_its_own || alone() || !diverges()) ranks.scatter_shared(training ? &*training : nullptr);
    if (!each_its_own || !diverges()) {
      if (own) add_mean_moments(*own, state.integer("ranks"), optimizer);
      ranks.scatter_optimizer(optimizer);
    }
    if (first()) progress_.message(fmt::format("continuing after update {} from {}", step(), loaded->directory));
  }

  // Each rank takes up what it had for itself. False if there is no such thing, or the checkpoint is not of so many ranks and this
  // strategy; replicas that differed then all begin with the deployed parameters and the mean of the moments.
  bool resume_own(RankState& ranks, const std::optional<SafetensorsFile>& file, const State& state) {
    const bool same = state.has("ranks") && state.integer("ranks") == comm().size() && state.text("strategy") == config_.strategy.name;
    if (ranks.scatter_own(file && same ? &*file : nullptr)) return true;
    if (file && state.has("ranks"))
      progress_.message(fmt::format("the checkpoint is of {} ranks with strategy {}{}", state.integer("ranks"), state.text("strategy"),
                                    file->find("rank0.parameters")
                                        ? ", whose replicas differed: all begin with its deployed model and the mean of its moments"
                                        : ": what each of them had for itself is dropped"));
    return false;
  }

  // Rank 0: loads parameters and average, and returns the optimizer's state.
  NamedTensors load_checkpoint(const Loaded& loaded) {
    load_weights(*files_, loaded.path("model.safetensors"), model_->parameters());
    const SafetensorsFile training(*files_, loaded.path("training.safetensors"));
    const auto restore = [&](const std::string& name, const Tensor& t) {
      const NamedBytes& saved = training.at(name);
      if (static_cast<int64_t>(saved.data.size()) != t.bytes())
        throw DataError(fmt::format("{}: tensor {} has {} bytes instead of {}", training.path(), name, saved.data.size(), t.bytes()));
      t.upload(std::as_bytes(saved.data));
    };
    NamedTensors optimizer;
    for (const auto& [name, tensor] : replica_->optimizer().state()) {
      optimizer.emplace_back(name, Tensor({model_->parameters().values().count()}, tensor.dtype()));
      if (training.find(name)) restore(name, optimizer.back().second);  // absent where train.optimizer was sgd: Adam begins anew
    }
    const Tensor& average = replica_->average();
    if (training.find("parameters")) {  // then the file of weights holds their moving average
      if (average) average.copy_from(model_->parameters().values());
      restore("parameters", model_->parameters().values());
      model_->parameters().changed();
    } else if (average) {  // train.ema was turned on since: the average begins here
      average.copy_from(model_->parameters().values());
    }
    return optimizer;
  }

  void take_up(const State& s) {
    replica_->optimizer().set_updates(s.integer("step"));
    if (s.has("moments-since")) replica_->optimizer().set_moments_since(s.integer("moments-since"));
    // With more or fewer workers of an unchanged batch each, about the same place in the epoch.
    int64_t batch = s.integer("batch");
    if (const int64_t then = s.integer("batch-tokens"); then != batch_tokens_)
      batch = std::min(batch * then / batch_tokens_, std::max<int64_t>(batches_per_epoch_ - 1, 0));
    stream_->seek({s.integer("epoch"), batch});
    epoch_ = s.integer("epoch") + 1;
    earlier_seconds_ = s.real("seconds");
    finished_ = config_.train.max_minutes > 0 && earlier_seconds_ >= 60 * config_.train.max_minutes;
    // The sum of a batch's gradient is cut into the same parts as before, whatever memory is free today: equal bits.
    if (config_.train.micro_batch_tokens == 0) micro_tokens_ = s.integer("micro-batch-tokens");
    take_up_judgement(s);
    validated_ = s.integer("validated");
    if (step() > 0) model_->set_clip(state_clip(config_, step()));
    saved_ = step();
  }

  // Rank 0 judges; the others need to know whether the run has ended.
  void take_up_judgement(const State& s) {
    if (first()) restore_judge(s), early_stopped_ = judge_.stops();
    early_stopped_ = broadcast_text(comm(), early_stopped_ ? "stop" : "") == "stop";
  }

  void restore_judge(const State& s) {
    const std::string before = s.has("tokenizer") ? s.text("tokenizer") : "13a";  // the only one of older versions
    std::vector<std::string> otherwise;
    if (!before.empty() && !tokenizer_.empty() && before != tokenizer_) {
      std::copy_if(config_.valid.metrics.begin(), config_.valid.metrics.end(), std::back_inserter(otherwise), is_tokenized);
      progress_.message(fmt::format("{} had the tokenizer {} so far, and it is {} from here on: the earlier scores do not count any more",
                                    fmt::join(otherwise, ", "), before, tokenizer_));
    }
    if (s.has("validation") && !s.text("validation").empty() && !validation_.empty() && s.text("validation") != validation_) {
      otherwise = config_.valid.metrics;
      progress_.message("the validation text is another one than so far: the earlier scores do not count any more");
    }
    judge_.restore(s, otherwise);
  }

  int conclude() {
    // A signal that another rank got counts as this rank's.
    const int received = StopSignals::received(), signal = !stopped_ ? 0 : received ? received : SIGTERM;
    progress_.end_live_line();
    const std::string why = signal == SIGINT ? "interrupted; the same command continues"
                            : signal         ? fmt::format("stopped by signal {}; the same command continues", signal)
                                             : limit_reached();
    const PeakMemory peak = peak_memory();
    const std::string child = peak.children > 0 ? fmt::format(", vocabulary training {} MiB", peak.children >> 20) : "";
    progress_.event({{"type", "stop"},
                     {"step", step()},
                     {"reason", why},
                     {"seconds", elapsed()},
                     {"peak_memory_mib", peak.own >> 20},
                     {"peak_child_memory_mib", peak.children >> 20}});
    std::string text =
        fmt::format("{}: {} in {}, peak memory {} MiB{}; everything is in {}", why, counted(step(), "update"),
                    duration_text(elapsed()) + (world_.simulated ? " virtual" : ""), peak.own >> 20, child, config_.train.output);
    if (const double bound = model_->config().clip; bound > config_.model.clip)
      text += fmt::format(
          "; its states are bounded by {:.3g} and not yet by model.clip {:g}: train.clip-steps or max-steps is more than "
          "this run",
          bound, config_.model.clip);
    if (judge_.has_best()) text += "; " + judge_.told() + kept_best(*files_, config_.train.output, judge_.best_step(), judge_.best());
    progress_.message(text);
    return signal ? 128 + signal : 0;
  }

  const Config& config_;
  World& world_;
  const TrainingWatch& watch_;
  double start_;  // by the world's clock, s
  std::unique_ptr<FileSystem> files_;
  Progress progress_;
  std::optional<RunDirectory> directory_;  // of rank 0
  std::string data_digest_;
  std::unique_ptr<Backend> backend_;
  std::optional<Vocabularies> vocabularies_;
  std::optional<TokenStore> store_;
  std::optional<Validator> validator_;
  std::optional<BatchStream> stream_;
  std::unique_ptr<Model> model_;
  std::optional<Replica> replica_;
  int64_t batch_tokens_ = 0;  // of all workers together
  int64_t micro_tokens_ = 0, batches_per_epoch_ = 0;
  OptimizerOptions optimizer_;  // with scaled rates
  double rate_ = 0;             // peak, after scaling
  int64_t warmup_ = 0;          // updates
  bool stopped_ = false, finished_ = false;
  Traffic reported_;
  int64_t reported_step_ = 0;
  double reported_loss_ = 0;  // of the last line, shown while no sums have been exchanged since

  Tensor deployed_;  // see deployed()
  bool deployed_final_ = false;
  StepResult last_;
  int64_t epoch_ = 1;
  double earlier_seconds_ = 0;  // of the runs before this one
  double report_start_ = 0;
  double paused_ = 0;  // validation and checkpoints since the last report, s
  double window_loss_ = 0, window_clipped_ = 0, window_clippable_ = 0;
  double window_reward_ = 0, window_samples_ = 0, window_distinct_ = 0;
  int64_t window_target_ = 0, window_source_ = 0, window_sentences_ = 0;
  std::optional<BestModel> best_model_;  // of rank 0, once there is one
  std::string validation_;               // of rank 0: digest of the validation text; "": there is none
  std::string tokenizer_;                // rank 0: of BLEU and GLEU, as in signatures; "": neither is measured
  Judge judge_{config_.valid.metrics, config_.valid.deciding_metric(), config_.valid.early_stopping};
  bool early_stopped_ = false;
  int64_t validated_ = -1, saved_ = -1;
};

}  // namespace

BatchOptions batch_options(const Config& config, int64_t batch_tokens) {
  BatchOptions options;
  options.batch_tokens = batch_tokens, options.seed = config.train.seed;
  for (const CorpusFiles& corpus : config.data.train) options.weights.push_back(corpus.weight);
  return options;
}

int run_training(const Config& config, World& world, const TrainingWatch& watch) { return Trainer(config, world, watch).run(); }

int run_training(const Config& config) {
  World world = make_local_world();
  return run_training(config, world);
}

}  // namespace starling
