#include "tests/faults/fault_runs.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/sha256.h"
#include "run/trainer.h"
#include "storage/checkpoint.h"
#include "strategies/options.h"
#include "tests/faults/rank_files.h"
#include "tests/run/word_pairs.h"
#include "text/vocabulary.h"

namespace starling {
namespace {

namespace fs = std::filesystem;

constexpr double kSame = 1e-5;  // of losses of runs that only differ in the order of sums, relative
constexpr int kPairs = 120;
constexpr int64_t kLateNs = 100'000;  // virtual

// Ranks that the scenario has killed.
int64_t killed(const SimulationResult& result) {
  return std::count_if(result.ranks.begin(), result.ranks.end(), [](const RankReport& r) { return r.error.starts_with("crashed"); });
}

bool close(double a, double b) { return std::abs(a - b) <= kSame * std::abs(b); }

}  // namespace

struct FaultRuns::Undisturbed {
  Outcome outcome;
  Extent extent;
};

// A run directory, and what is seen of it over all attempts.
struct FaultRuns::Running {
  Config config;
  MemoryFileSystem memory, elsewhere;  // elsewhere: of a rank that does not see the others' directory
  Outcome outcome;
  int64_t durable = 0;  // update of the newest checkpoint that is complete
  bool shows_logs = false;
  bool ended = false;  // with everything done
  std::vector<std::string> wrong;
  int64_t failed_saves = 0;
  std::vector<double> update_ends;
  int64_t seventh = 0, tenth = 0;  // operations on the disk up to these updates, or the next ones that are reported

  explicit Running(Config c) : config(std::move(c)) { memory.make_directories(config.train.output); }
  SimulationResult attempt(const Attempt& a);
  void event(std::string_view line, double now);
  void list(MemoryFileSystem& files, bool first);
  bool begins_ = false;
  void look(bool started_again);
};

void FaultRuns::Running::event(std::string_view line, double now) {
  const auto e = nlohmann::json::parse(line);
  const int64_t step = e.at("step");
  if (e.at("type") == "checkpoint") durable = step;
  if (e.at("type") == "checkpoint-failed") ++failed_saves;
  if (e.at("type") == "report" && std::exchange(begins_, false)) outcome.begins.push_back(step);
  if (e.at("type") == "report") {
    update_ends.push_back(now);
    if (step >= 7 && seventh == 0) seventh = memory.operations();
    if (step >= 10 && tenth == 0) tenth = memory.operations();
  }
  if (e.at("type") == "report") outcome.reports[step] = {e.at("target_tokens"), e.at("loss"), e.at("epoch"), e.at("sentences")};
}

SimulationResult FaultRuns::Running::attempt(const Attempt& a) {
  memory.set_faults(a.disk);
  begins_ = true;
  elsewhere.make_directories(config.train.output);
  std::vector<int> status(static_cast<size_t>(a.scenario.ranks), -1);
  SimulationResult result = simulate_to_end(a.scenario, [&](World& world) {
    const int rank = world.comm->rank();
    // Nobody leaves a barrier before the last rank, another one at each start, has come.
    const bool late = rank == static_cast<int>(a.scenario.seed % static_cast<uint64_t>(a.scenario.ranks));
    world.comm->set_deadline(kDeadlineSeconds);
    if (late) world.clock->sleep_until(kLateNs);
    world.comm->barrier().wait();
    if (world.clock->now_ns() < kLateNs) wrong.push_back(fmt::format("rank {} left a barrier before the last rank came", rank));
    TrainingWatch watch;
    watch.silent = !shows_logs, watch.signals = false;
    bool stop = false;
    watch.updated = [&](int64_t step, int64_t, int64_t) { stop = stop || step == a.stop_at; };
    watch.stop = [&] { return stop; };
    watch.event = [&](std::string_view line) { event(line, world.clock->seconds()); };
    watch.files = [&] { return std::make_unique<RankFiles>(config.train.output, rank == a.apart ? elsewhere : memory); };
    status[static_cast<size_t>(rank)] = run_training(config, world, watch);
  });
  ended = !result.error && std::all_of(status.begin(), status.end(), [](int s) { return s <= 0; }) && status[0] == 0;
  return result;
}

// No file is there but those of as many checkpoints as are kept, and of best models: one that could not be read is set aside.
void FaultRuns::Running::list(MemoryFileSystem& files, bool first) {
  const auto names = [&](const std::string& path) { return files.exists(path) ? files.list(path) : std::vector<std::string>(); };
  const auto left = [&](const std::string& name) { wrong.push_back(fmt::format("{} was left over{}", name, first ? "" : " elsewhere")); };
  const std::string& run = config.train.output;
  for (const std::string& name : names(run))
    if (name != "checkpoints" && !(first && name == "best") && !name.starts_with("before-restart") && !name.starts_with("best-before-"))
      left(name);
  int64_t kept = 0;
  for (const std::string& name : names(run + "/checkpoints")) {
    const std::string path = run + "/checkpoints/" + name;
    if (!first || !name.starts_with("step-")) {
      left("checkpoints/" + name);
      continue;
    }
    ++kept;
    try {
      const Loaded checkpoint = verify_directory(files, path);
      for (const std::string& file : names(path))
        if (file != "manifest.json" && !checkpoint.has(file)) left(name + "/" + file);
    } catch (const DataError&) {  // the one that a fault has changed stays for inspection
      --kept;
    }
  }
  // One more if the power failed before the last one that is too many was removed.
  if (kept > config.checkpoint.keep + 1)
    wrong.push_back(fmt::format("{} checkpoints are left: {}", kept, fmt::join(names(run + "/checkpoints"), " ")));
}

// What is left in the end; after a machine has started again, the next start would remove what it has left half done.
void FaultRuns::Running::look(bool started_again) {
  const std::string& run = config.train.output;
  const auto latest = latest_checkpoint(memory, run), best = best_checkpoint(memory, run);
  for (const auto& [which, checkpoint] : {std::pair("last", latest), std::pair("best", best)}) {
    if (!checkpoint) {
      wrong.push_back(fmt::format("there is no {} checkpoint in the end", which));
      continue;
    }
    for (const PartInfo& part : checkpoint->files)
      if (part.name.ends_with(".safetensors")) outcome.files[fmt::format("{} {}", which, part.name)] = part.sha256;
  }
  if (!started_again) list(memory, true), list(elsewhere, false);
  for (const auto& entry : fs::directory_iterator(run))
    if (const std::string name = entry.path().filename(); !name.starts_with("before-restart")) outcome.names.push_back(name);
  std::sort(outcome.names.begin(), outcome.names.end());
}

FaultRuns::FaultRuns() : directory_(fs::temp_directory_path() / fmt::format("starling-fault-runs-{}", ::getpid())) {
  fs::create_directories(directory_);
  write_word_pairs(path("a"), path("b"), kPairs, 8, 2, 6);
  write_word_pairs(path("valid.a"), path("valid.b"), 10, 8, 2, 6);
}
FaultRuns::~FaultRuns() { fs::remove_all(directory_); }

Config FaultRuns::config(const Layout& layout, const std::string& run) const {
  Config c = parse_config("model:\n  preset: transformer-tiny\n  width: 16\n  feed-forward: 32\n  encoder-layers: 1\n", "test");
  c.data.train = {{path("a"), path("b"), "", 1}};
  c.vocab.training.size = 40;
  c.vocab.source = c.vocab.target = path("joint.spm");
  c.train.output = path(run);
  c.train.batch_tokens = 120, c.train.max_steps = 12, c.train.threads = 1, c.train.precision = "f32";
  c.train.optimizer.warmup = 4, c.train.optimizer.learning_rate = 3e-3, c.train.optimizer.ema = 0.9;
  c.strategy.bucket_mib = 0.005, c.strategy.check_every = 3;
  c.checkpoint.every = 3, c.checkpoint.keep = 2;
  c.valid.every = 4, c.valid.source = path("valid.a"), c.valid.target = path("valid.b"), c.valid.metrics = {"cross-entropy"};
  c.log.progress = "never", c.log.every = 1;
  const int64_t check = c.strategy.check_every;
  const double bucket = c.strategy.bucket_mib;
  layout.set(c);
  c.strategy.check_every = check, c.strategy.bucket_mib = bucket, c.strategy.deadline_seconds = kDeadlineSeconds;
  return c;
}

const FaultRuns::Undisturbed& FaultRuns::reference(const Layout& layout) {
  const auto found = references_.find(layout.name);
  if (found != references_.end()) return found->second;
  const Config c = config(layout, "undisturbed");
  Running run(c);
  Attempt attempt;
  attempt.scenario.ranks = layout.ranks;
  const SimulationResult result = run.attempt(attempt);
  if (result.error) std::rethrow_exception(result.error);
  Undisturbed u;
  u.extent.seconds = 1e-9 * static_cast<double>(result.virtual_ns);
  u.extent.disk_operations = run.memory.operations();
  for (const int64_t change : run.memory.changes())
    if (run.seventh < change && (run.tenth == 0 || change <= run.tenth)) u.extent.disk_changes.push_back(change);
  u.extent.updates = run.outcome.reports.rbegin()->first;
  u.extent.update_ends = run.update_ends;
  run.look(false);
  const std::string newest = join_path(c.train.output, "checkpoints");
  for (const std::string& step : run.memory.list(newest))
    for (const std::string& file : run.memory.list(join_path(newest, step)))
      u.extent.disk_bytes += run.memory.info(join_path(join_path(newest, step), file)).size;
  u.outcome = run.outcome;
  fs::remove_all(c.train.output);
  return references_.emplace(layout.name, std::move(u)).first->second;
}

Outcome FaultRuns::relay(const std::vector<Leg>& legs) {
  Running run(config(legs.front().layout, "relay"));
  for (const Leg& leg : legs) {
    run.config = config(leg.layout, "relay");
    Attempt attempt;
    attempt.scenario.ranks = leg.layout.ranks;
    attempt.stop_at = leg.until;
    const SimulationResult result = run.attempt(attempt);
    if (result.error) std::rethrow_exception(result.error);
  }
  CHECK(run.ended, "the last leg has not ended");
  fs::remove_all(path("relay"));
  return run.outcome;
}

const Outcome& FaultRuns::undisturbed(const Layout& layout) { return reference(layout).outcome; }
Extent FaultRuns::extent(const Layout& layout) { return reference(layout).extent; }

std::vector<std::string> FaultRuns::wrong_undisturbed() {
  std::vector<std::string> wrong;
  const Outcome& one = undisturbed(layouts().front());
  int64_t trained = 0, written = 0;
  for (const auto& [step, report] : one.reports) trained += report.epoch == 1 ? report.target_tokens : 0;
  const Vocabulary vocabulary = Vocabulary::load(path("joint.spm"));
  std::ifstream text(path("b"));
  for (std::string line; std::getline(text, line);) written += std::ssize(vocabulary.encode(line)) + 1;  // and the end of the sentence
  if (trained != written) wrong.push_back(fmt::format("the first epoch has {} target tokens, and the text {}", trained, written));
  for (const Layout& layout : layouts()) {
    const Outcome& outcome = undisturbed(layout);
    const bool comparable = layout.kind == Layout::synchronous &&
                            config(layout, "").train.batch_tokens == config(layouts().front(), "").train.batch_tokens &&
                            config(layout, "").model.preset == config(layouts().front(), "").model.preset &&
                            config(layout, "").train.optimizer.optimizer == config(layouts().front(), "").train.optimizer.optimizer;
    if (!comparable) continue;
    for (const auto& [step, report] : one.reports) {
      const auto other = outcome.reports.find(step);
      if (other == outcome.reports.end())
        wrong.push_back(fmt::format("{}: no report of update {}", layout.name, step));
      else if (other->second.target_tokens != report.target_tokens || !close(other->second.loss, report.loss))
        wrong.push_back(fmt::format("{}: update {} has {} tokens with loss {:.9g}; one worker has {} with {:.9g}", layout.name, step,
                                    other->second.target_tokens, other->second.loss, report.target_tokens, report.loss));
    }
  }
  return wrong;
}

// One run: the attempts of a seed, and what is checked after each.
class FaultRuns::Trial {
 public:
  Trial(uint64_t seed, const Layout& layout, std::vector<Attempt> attempts, const Config& config, const Undisturbed& expected,
        bool shows_logs)
      : seed_(seed),
        attempts_(std::move(attempts)),
        layout_(layout),
        expected_(expected),
        config_(config),
        run_(config),
        exact_(layout.kind != Layout::by_time) {
    run_.shows_logs = shows_logs;
  }

  FaultRun run() {
    attempts_.emplace_back().scenario.ranks = layout_.ranks;  // a quiet one
    for (size_t i = 0; i < attempts_.size() && !run_.ended; ++i) {
      const Attempt& a = attempts_[i];
      ++result_.attempts;
      exact_ = exact_ && a.scenario.ranks == layout_.ranks;
      const std::map<int64_t, UpdateReport> before = std::exchange(run_.outcome.reports, {});
      run_.outcome.begins.clear();
      const auto from = latest_checkpoint(run_.memory, config_.train.output);
      const SimulationResult result = run_.attempt(a);
      result_.updates += std::ssize(run_.outcome.reports);
      for (const std::string& what : std::exchange(run_.wrong, {})) wrong(what);
      check(a, result);
      // It continues from the newest checkpoint, or from one before it where the disk fails.
      const auto reported = expected_.outcome.reports.upper_bound(from ? from->step : 0);  // periodic strategies report their merges
      const int64_t next = reported == expected_.outcome.reports.end() ? 0 : reported->first;
      if (const auto& begins = run_.outcome.begins; layout_.kind != Layout::by_time && !begins.empty())
        if (a.disk.at > 0 ? begins[0] > next : begins[0] != next)
          wrong(fmt::format("it began with update {}, and update {} comes next", begins[0], next));
      run_.outcome.reports.insert(before.begin(), before.end());
      count(a, result);
      start_again(a);
      if (a.corrupts && !run_.ended) corrupt();
      if (i + 1 == attempts_.size() && !run_.ended)
        wrong("it does not end though nothing disturbs it: " + (result.error ? result.failure : "a status other than 0"));
    }
    if (run_.ended) check_end();
    return std::move(result_);
  }

 private:
  void wrong(const std::string& what) { result_.wrong.push_back(fmt::format("start {}: {}", result_.attempts, what)); }

  void check(const Attempt& a, const SimulationResult& result) {
    // Nobody waits for a lost rank for longer than the deadline. A wait that may be long counts it from when the rank was lost; before
    // that, the network may have been cut for a while.
    int64_t sent = 0, received = 0;
    const int64_t crashed = killed(result);
    for (size_t i = 0; i < result.ranks.size(); ++i) {
      const RankReport& r = result.ranks[i];
      const double waited = 1e-9 * static_cast<double>(r.longest_wait_ns);
      if (waited > kDeadlineSeconds + kLongestCut + 1) wrong(fmt::format("rank {} waited for {} s, longer than the deadline", i, waited));
      sent += r.traffic.bytes_sent, received += r.traffic.bytes_received;
    }
    // What was sent has arrived, if all have ended.
    const bool failed = result.error || crashed > 0;
    if (failed ? received > sent : received != sent) wrong(fmt::format("{} bytes were sent and {} received", sent, received));
    // A rank that is lost is named, unless a disk has ended the run before.
    if (result.error && crashed == 1 && !a.disk.at && a.disk.capacity_bytes < 0 && a.scenario.link_faults.empty()) {
      const std::string text = result.failure, name = fmt::format("rank {}", a.scenario.crashes[0].rank);
      if (text.find(name) == std::string::npos) wrong(fmt::format("{} crashed, and the error is: {}", name, text));
    }
    // Every update is that of the undisturbed run: no sentence is lost or trained on twice.
    if (layout_.kind == Layout::by_time) return;
    for (const auto& [step, report] : run_.outcome.reports) {
      const auto then = expected_.outcome.reports.find(step);
      if (then == expected_.outcome.reports.end())
        wrong(fmt::format("there is an update {}, one too many", step));
      else if (report.target_tokens != then->second.target_tokens ||
               (exact_ ? report.loss != then->second.loss : !close(report.loss, then->second.loss)))
        wrong(fmt::format("update {} has {} tokens with loss {:.9g}, undisturbed {} with {:.9g}", step, report.target_tokens, report.loss,
                          then->second.target_tokens, then->second.loss));
    }
  }

  void count(const Attempt& a, const SimulationResult& result) {
    const auto add = [&](const char* what, int64_t n) { result_.happened[what] += n; };
    const Scenario& s = a.scenario;
    const int64_t crashed = killed(result);
    int64_t cut = 0;
    for (const LinkFault& f : s.link_faults) cut += f.factor == 0;
    add("slow ranks", std::ssize(s.stragglers)), add("networks cut", cut), add("slow links", std::ssize(s.link_faults) - cut);
    add("messages lost", result.lost), add("messages delayed", result.delayed), add("messages doubled", result.doubled);
    add("ranks killed", crashed), add("other numbers of ranks", s.ranks != layout_.ranks);
    add("told to stop", a.stop_at > 0 && !result.error && crashed == 0 && !run_.ended);
    add("ranks without the directory", a.apart > 0);
    if (a.disk.at > 0 && run_.memory.operations() >= a.disk.at)
      add(a.disk.fault == Fault::crash ? "power cuts" : a.disk.fault == Fault::io_error ? "failing operations" : "torn writes", 1);
    const int64_t failed = std::exchange(run_.failed_saves, 0);
    add("saves that failed", failed), add("full disks", a.disk.at == 0 && failed > 0);
    add("deadlines", result.error && result.failure.find("waited") != std::string::npos);
  }

  void start_again(const Attempt& a) {
    started_again_ = a.power || run_.memory.crashed();
    result_.happened["machines started again"] += started_again_;
    if (started_again_)
      run_.memory.reboot(), run_.elsewhere.reboot();
    else
      run_.memory.restart_program();
    const auto latest = latest_checkpoint(run_.memory, config_.train.output);
    if (run_.durable > 0 && (!latest || latest->step < run_.durable))
      wrong(fmt::format("the checkpoint of update {} was complete, and the newest one is {}", run_.durable, latest ? latest->step : -1));
  }

  // Changes a byte of the newest checkpoint, once, and if there is another.
  void corrupt() {
    const auto latest = latest_checkpoint(run_.memory, config_.train.output);
    if (!latest || result_.happened["corrupt files"] > 0) return;
    int whole = 0;
    for (const std::string& name : run_.memory.list(join_path(config_.train.output, "checkpoints"))) whole += name.starts_with("step-");
    const std::string path = latest->path(latest->files[seed_ % latest->files.size()].name);
    std::string content = run_.memory.read_file(path);
    if (whole < 2 || content.empty()) return;
    content[static_cast<size_t>(seed_ * 7919) % content.size()] ^= 1;
    run_.memory.write_file(path, content);
    run_.durable = 0;
    ++result_.happened["corrupt files"];
  }

  void check_end() {
    run_.look(started_again_);
    for (const std::string& what : run_.wrong) wrong(what);
    const Outcome &outcome = run_.outcome, &expected = expected_.outcome;
    if (layout_.kind != Layout::by_time && outcome.reports.size() != expected.reports.size())
      wrong(fmt::format("{} updates, undisturbed {}", outcome.reports.size(), expected.reports.size()));
    if (exact_ && outcome.files != expected.files) {
      for (const auto& [name, hash] : expected.files)
        if (!outcome.files.contains(name) || outcome.files.at(name) != hash) wrong(name + " is not the undisturbed run's");
      for (const auto& [name, hash] : outcome.files)
        if (!expected.files.contains(name)) wrong(name + " is one file too many");
    }
    if (outcome.names != expected.names) wrong(fmt::format("files were left in the run directory: {}", fmt::join(outcome.names, " ")));
  }

  const uint64_t seed_;
  std::vector<Attempt> attempts_;
  const Layout& layout_;
  const Undisturbed& expected_;
  const Config& config_;
  Running run_;
  bool exact_;                  // as the undisturbed run, to the last bit
  bool started_again_ = false;  // after the last attempt
  FaultRun result_;
};

FaultRun FaultRuns::run(uint64_t seed) {
  const Layout& layout = layouts()[seed % layouts().size()];
  return run(layout, draw_attempts(seed, layout, extent(layout)), seed);
}

FaultRun FaultRuns::run(const Layout& layout, const std::vector<Attempt>& attempts, uint64_t seed) {
  const Config c = config(layout, "run");
  FaultRun run = Trial(seed, layout, attempts, c, reference(layout), shows_logs).run();
  fs::remove_all(c.train.output);
  return run;
}

}  // namespace starling
