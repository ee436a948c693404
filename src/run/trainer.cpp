#include "run/trainer.h"

#include <csignal>

#include "base/counted.h"
#include "base/memory.h"
#include "base/messages.h"
#include "base/sha256.h"
#include "run/cleaned_text.h"
#include "run/run_checkpoints.h"
#include "run/run_drivers.h"
#include "run/run_parts.h"
#include "run/run_reports.h"
#include "run/run_setup.h"
#include "run/update_loop.h"
#include "run/validation_loop.h"

namespace starling {
namespace {

// Rank 0 reports; the others are silent. The log files are opened after RunDirectory::begin.
ProgressOptions progress_options(const Config& config, const World& world, const TrainingWatch& watch) {
  if (world.comm->rank() != 0) return {};
  // mpirun gives every process a terminal of its own; whether the output ends at a real one cannot be seen from here.
  const bool mpi = world.comm->size() > 1 && !world.simulated;
  ProgressOptions options = console_progress(mpi && config.log.progress == "auto" ? "never" : config.log.progress);
  options.files_later = true;
  if (watch.silent || watch.log) {
    options.console = watch.log;
    options.live = false;
  }
  options.event = watch.event;
  options.tensorboard = config.log.tensorboard;
  return options;
}

class Trainer {
 public:
  Trainer(const Trainer&) = delete;
  Trainer(const Config& config, World& world, const TrainingWatch& watch)
      : config_(config), watch_(watch), run_(config, world, progress_options(config, world, watch)) {
    run_.signals = watch.signals;
    run_.stop = watch.stop;
    if (watch.files) run_.files = watch.files();
  }

  int run() {
    try {
      return run_to_the_end();
    } catch (const std::exception& e) {
      if (run_.directory) run_.directory->failed(e);
      run_.progress.failure(run_.replica ? run_.step() : 0, e.what(), status_.elapsed());
      throw;
    }
  }

 private:
  int run_to_the_end() {
    set_up(run_);
    run_.driver = make_run_driver(run_, status_);
    validations_.open();
    plan_batches(run_);
    guard_.set_up();
    checkpoints_.resume();
    plan_micro_batches(run_, guard_.acts());
    if (run_.first()) {  // nothing can be refused any more
      run_.directory->begin(*run_.vocabularies);
      run_.progress.open_files(config_.train.output);
      run_.directory->keep();
    }
    const bool trained = run_.driver->finished() || status_.limits_reached();
    if (!trained) {
      pass_largest_first(run_);
      checkpoints_.prepare();
    }
    reports_.announce();
    // A signal that comes with the last update leaves this to the next start.
    const bool owes_validation = run_.driver->synchronous() && validates() && run_.step() > 0 && validations_.validated() != run_.step();
    if (trained && !owes_validation) {
      run_.say(fmt::format("already done: {} in {}, {}; to continue, raise that limit", counted(run_.step(), "update"),
                           duration_text(status_.earlier_seconds), limit_reached()));
      run_.progress.event({{"type", "stop"}, {"step", run_.step()}, {"reason", limit_reached()}, {"seconds", status_.earlier_seconds}});
      return 0;
    }
    std::optional<StopSignals> guard;
    if (run_.may_be_signalled()) guard.emplace();
    run_.replica->on_asked_to_stop([this] { return run_.stop_asked(); });
    loop_.emplace(config_, *run_.replica, run_.mesh->data_parallel().rank(), run_.growth ? &*run_.growth : nullptr, run_.micro_tokens);
    reports_.begin();
    // What the initial model is worth: updates that only harm it must not become the best.
    if (!config_.train.initial_model.empty() && validates() && run_.step() == 0 && validations_.validated() < 0) validate();
    guard_.begin();
    status_.preparation += run_.clock().seconds() - status_.start;
    if (validations_.owed()) {  // which a signal ended before
      validate();
      checkpoints_.outdated();
    }
    if (watch_.resumed) watch_.resumed(true);
    while (!run_.driver->finished() && !status_.stopped)
      if (text_ready() && update()) between_updates();
    if (watch_.paused) watch_.paused(run_.driver->synchronous());
    // A checkpoint records what was validated. A best model that could not be saved is tried once more.
    if (!status_.stopped && validates() && validations_.validated() != run_.step()) {
      validate();
      checkpoints_.outdated();
    }
    if (validations_.owed()) status_.stopped = true;
    advance_checkpoint(true);
    if (!checkpoints_.current()) save(true);
    if (!status_.stopped) validations_.require_best_saved();
    reports_.end();
    return conclude();
  }

  // Waits for text, where it is a stream. Returns false at its end, or if the run is to stop.
  bool text_ready() {
    while (run_.text) {
      const int64_t window = run_.stream->position().epoch;
      const TextStream::Ready ready = run_.text->wait(window, [this] { return run_.stop_asked() || status_.time_is_up(); });
      if (ready == TextStream::Ready::yes) return true;
      if (ready == TextStream::Ready::empty) {
        run_.stream->seek({window + 1, 0});
        continue;
      }
      status_.text_ended = ready == TextStream::Ready::ended;
      status_.stopped = run_.stop_asked();
      status_.over = true;
      return false;
    }
    return true;
  }

  bool served() const { return run_.replicas() == Replicas::served; }
  bool validates() const { return config_.valid.enabled(); }
  std::string limit_reached() const { return status_.limit_reached(validations_.selector().stalled()); }

  void between_updates() {
    if (!due_.any()) return;
    if (watch_.paused) watch_.paused(run_.driver->synchronous());
    if (due_.reports) reports_.report();
    if (due_.validates) validate();
    if (due_.compares) compare_replicas();
    if (due_.saves) save(false);
    if (watch_.resumed) watch_.resumed(run_.driver->synchronous());
  }

  void validate() {
    const double start = run_.clock().seconds();
    validations_.validate();
    reports_.pause(run_.clock().seconds() - start);
  }

  void save(bool last) {
    const double start = run_.clock().seconds();
    checkpoints_.save(last);
    reports_.pause(run_.clock().seconds() - start);
  }

  void advance_checkpoint(bool wait) {
    if (!checkpoints_.under_way()) return;
    const double start = run_.clock().seconds();
    checkpoints_.advance(wait);
    reports_.pause(run_.clock().seconds() - start);
  }

  // Samples for this rank's share, whose references get the weight of the likelihood. A simulated clock is charged one forward pass
  // over as many target tokens as the samples would have if they were as long as the references.
  Refinement refine(Batch& own) {
    Refinement refinement;
    const int64_t next = run_.step() + 1;
    run_.comm().note("sampling", next);
    const ComputeCost& cost = run_.replica->cost();
    PassRows rows = cost.rows(own);
    for (double* of_target : {&rows.target, &rows.target_recurrent, &rows.target_tokens})
      *of_target *= static_cast<double>(config_.refine.samples);
    run_.clock().spend(cost.forward(rows), [&] {
      refinement = sample_refinement(*run_.model, own, config_.refine, config_.train.seed, next, run_.micro_tokens);
    });
    if (own.weights.empty()) own.weights.assign(own.sample_ids.size(), 1.0f);
    for (float& weight : own.weights) weight *= static_cast<float>(config_.refine.likelihood_weight);
    return refinement;
  }

  // Returns false if the strategy had no further update to make.
  bool update() {
    reports_.announce_sgd();
    const int64_t before = run_.step();
    const BatchPosition position = run_.stream->position();
    double gone = 0;
    UpdateLoop::Source source;
    source.next = [&](int64_t count) { return next_batches(*run_.stream, count); };
    // Ranks stop together: what one of them knows, all learn with the sums of this step. Workers that update on their own have no common
    // time.
    source.end = [&] {
      gone = run_.replicas() == Replicas::merged ? 0 : status_.time_gone();
      return Replica::End{run_.stop_asked(), run_.driver->last_update(), served() ? 0 : gone};
    };
    if (run_.mixed()) source.refine = [&](Batch& own) { return refine(own); };
    MadeUpdate made;
    try {
      made = loop_->make(source);
    } catch (const DivergedError& e) {  // nothing has changed
      guard_.not_finite(e);
      due_ = {};  // of the update before it
      went_back();
      return true;
    }
    const StepControl& control = made.result.control;
    status_.stopped = control.stop > 0;
    status_.over = control.finished > 0;
    status_.epoch = made.epoch + 1;
    reports_.add(made.result);
    advance_checkpoint(false);
    if (run_.driver->updated(before)) {
      const int64_t factor = run_.growth ? run_.growth->factor() : 1;
      due_ = loop_->count(run_.every, run_.noise);
      reports_.tell_growth(factor);
      if (const double now = served() ? gone : control.time_gone; now > 0) by_time_.add(due_, now);
      due_.saves = due_.saves || checkpoints_.due_again();
      // The actions that are due would wait for late parameters; that wait is a part of training.
      if (due_.any() || status_.stopped || run_.driver->finished()) run_.model->parameters().wait_for_parameters();
      // All ranks of a replica have the same tokens; only one counts them.
      const int64_t own = run_.mesh->counts() ? made.own_tokens : 0;
      if (guard_.updated(made.result)) went_back();
      if (watch_.updated) watch_.updated(run_.step(), own, run_.replica->strategy().aside_bytes());
      return true;
    }
    run_.stream->seek(position);
    checkpoints_.outdated();  // the servers may have gone on since
    return false;
  }

  // The guard has brought the run back to an earlier update.
  void went_back() {
    const bool saves = due_.saves;
    due_ = {};
    due_.saves = checkpoints_.went_back() || saves;
  }

  // Replicas must be equal bit for bit; a rank that computes wrongly shows here.
  void compare_replicas() {
    Communicator& comm = run_.mesh->data_parallel();
    if (comm.size() == 1 || run_.replicas() != Replicas::equal) return;
    Sha256 hash;
    const Tensor& values = run_.model->parameters().values();
    // A rank that only serves has current values for its own part alone.
    const int workers = run_.replica->strategy().workers();
    const bool whole = comm.rank() < workers;
    if (whole) hash.update(values.on_host().host_bytes());
    const std::vector<std::string> hashes = gather_texts(comm, whole ? to_hex(hash.digest()) : "");
    for (int r = 0; r < workers; ++r)
      if (hashes[static_cast<size_t>(r)] != hashes[0])
        throw Error(
            fmt::format("the parameters of rank {} on {} differ from those of rank {} on {} after update {}: one of them computes or "
                        "communicates wrongly; the latest checkpoint may be from before or after it",
                        run_.mesh->rank_of(r), comm.host(r), run_.mesh->rank_of(0), comm.host(0), run_.step()));
  }

  int conclude() {
    // A signal that another rank received counts as this rank's.
    const int received = run_.signals ? StopSignals::received() : 0, signal = !status_.stopped ? 0 : received ? received : SIGTERM;
    run_.progress.end_live_line();
    const std::string why = signal && !run_.signals ? "stopped as asked; the same call continues"
                            : signal == SIGINT      ? "interrupted; the same command continues"
                            : signal                ? fmt::format("stopped by signal {}; the same command continues", signal)
                                                    : limit_reached();
    const PeakMemory peak = peak_memory();
    const std::string child = peak.children > 0 ? fmt::format(", vocabulary training {} MiB", peak.children >> 20) : "";
    run_.progress.event({{"type", "stop"},
                         {"step", run_.step()},
                         {"reason", why},
                         {"seconds", status_.elapsed()},
                         {"peak_memory_mib", peak.own >> 20},
                         {"peak_child_memory_mib", peak.children >> 20}});
    const std::string planned =
        run_.memory && run_.backend->memory().host() ? fmt::format(" ({:.0f} planned)", run_.memory->peak() / (1 << 20)) : "";
    std::string text = fmt::format("{}: {} in {}, peak memory {} MiB{}{}; everything is in {}", why, counted(run_.step(), "update"),
                                   duration_text(status_.elapsed()) + (run_.world.simulated ? " virtual" : ""), peak.own >> 20, planned,
                                   child, config_.train.output);
    if (const double bound = run_.model->config().clip; bound > config_.model.clip)
      text += fmt::format(
          "; its states are bounded by {:.3g} and not yet by model.clip {:g}: the run is shorter than train.clip-steps or "
          "max-steps",
          bound, config_.model.clip);
    if (const ModelSelector& selector = validations_.selector(); selector.has_best())
      text += "; " + selector.summary() + kept_best(*run_.files, config_.train.output, selector.best_step(), selector.best());
    run_.say(text);
    for (const std::string& advice : validations_.advice()) run_.say(advice);
    const double warmup = warmup_of(run_.optimizer, static_cast<double>(schedule_end(run_))).updates;
    if (!signal && config_.train.max_minutes > 0 && run_.optimizer.warmup_share == 0 && static_cast<double>(run_.taken()) < warmup)
      run_.say(
          fmt::format("warning: the run ended within its warm-up of {}, before its learning rate was reached; shorten train.warmup, or "
                      "set train.warmup-share",
                      counted(std::llround(warmup), "update")));
    return signal ? 128 + signal : 0;
  }

  const Config& config_;
  const TrainingWatch& watch_;
  RunParts run_;
  RunStatus status_{run_};
  RunReports reports_{run_, status_};
  ValidationLoop validations_{run_, status_};
  ActionsByTime by_time_{config_};
  std::optional<UpdateLoop> loop_;
  RunGuard guard_{run_};
  RunCheckpoints checkpoints_{run_, status_, validations_, by_time_, guard_, config_.checkpoint.beside_training && !watch_.paused};
  PostUpdateActions due_;  // after it
};

}  // namespace

int run_training(const Config& config, World& world, const TrainingWatch& watch) {
  Config cleaned = config;
  const Say say = [&](const std::string& line) {
    if (watch.log) watch.log(line);
    if (!watch.silent) tell("{}", line);
  };
  clean_together(*real_file_system(), cleaned, world, say, watch.silent ? TaskScreen() : standard_error_screen());
  return Trainer(cleaned, world, watch).run();
}

int run_training(const Config& config) {
  World world = make_local_world();
  return run_training(config, world);
}

}  // namespace starling
