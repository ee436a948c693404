#include "storage/checkpoint.h"

#include <algorithm>
#include <map>

namespace starling {
namespace {

std::string step_name(int64_t step) { return fmt::format("step-{:08}", step); }

std::optional<int64_t> parse_step(const std::string& name) {
  constexpr size_t prefix = 5, most_digits = 18;
  if (!name.starts_with("step-") || name.size() == prefix || name.size() > prefix + most_digits) return std::nullopt;
  int64_t step = 0;
  for (const char c : name.substr(prefix)) {
    if (c < '0' || c > '9') return std::nullopt;
    step = 10 * step + (c - '0');
  }
  return step_name(step) == name ? std::optional(step) : std::nullopt;
}

std::string checkpoints_path(const std::string& run_directory) { return join_path(run_directory, "checkpoints"); }

// Maps each step to its directory, complete or not. One that was renamed to ".old-" counts if no other has taken its place.
std::map<int64_t, std::string> list_steps(FileSystem& files, const std::string& checkpoints) {
  std::map<int64_t, std::string> steps;
  if (!files.exists(checkpoints)) return steps;
  for (const std::string& name : files.list(checkpoints)) {  // sorted: ".old-step-1" comes before "step-1", which overrides it
    const bool aside = name.starts_with(".old-");
    if (const auto step = parse_step(aside ? name.substr(5) : name)) steps[*step] = join_path(checkpoints, name);
  }
  return steps;
}

}  // namespace

std::string checkpoint_aside(const std::string& run_directory, int64_t step) {
  return aside_path(join_path(checkpoints_path(run_directory), step_name(step)));
}

std::optional<Loaded> latest_checkpoint(FileSystem& files, const std::string& run_directory, const Report& report, int64_t after) {
  const auto steps = list_steps(files, checkpoints_path(run_directory));
  for (auto at = steps.rbegin(); at != steps.rend() && at->first > after; ++at) {
    if (auto loaded = try_verify(files, at->second, at->first, report)) return loaded;
  }
  return std::nullopt;
}

int64_t newest_step(FileSystem& files, const std::string& run_directory) {
  const auto steps = list_steps(files, checkpoints_path(run_directory));
  return steps.empty() ? -1 : steps.rbegin()->first;
}

std::optional<Loaded> best_checkpoint(FileSystem& files, const std::string& run_directory, const Report& report) {
  const std::string best = join_path(run_directory, "best");
  const std::string old = old_path(best);
  if (files.exists(best)) return try_verify(files, best, std::nullopt, report);
  if (files.exists(old)) return try_verify(files, old, std::nullopt, report);
  return std::nullopt;
}

CheckpointStore::CheckpointStore(FileSystem& files, std::string run_directory, int keep, Report report, bool cleans)
    : files_(files), run_(std::move(run_directory)), checkpoints_(checkpoints_path(run_)), keep_(keep), report_(std::move(report)) {
  if (keep < 1) throw ConfigError(fmt::format("checkpoint.keep is {}; at least one checkpoint must stay: set it to 1 or more", keep));
  files_.make_directories(checkpoints_);
  if (!cleans) return;
  recover_directory(files_, join_path(run_, "best"));
  clear_away();
}

// Completes, rolls back or removes what a crash, or a removal that failed, has left.
void CheckpointStore::clear_away() {
  for (const std::string& name : files_.list(checkpoints_))
    if (name.starts_with(".tmp-") || name.starts_with(".old-")) recover_directory(files_, join_path(checkpoints_, name.substr(5)));
}

std::string CheckpointStore::directory(int64_t step) const { return join_path(checkpoints_, step_name(step)); }

void CheckpointStore::save(int64_t step, std::span<const Part> parts) {
  const auto publication = begin(step);
  for (const Part& part : parts) publication->add(write_part(files_, publication->aside(), part));
  commit(*publication);
}

std::unique_ptr<Publication> CheckpointStore::begin(int64_t step) { return std::make_unique<Publication>(files_, directory(step), step); }

void CheckpointStore::commit(Publication& publication, const Report& report, const GoOn& go_on) {
  publication.commit();
  const Report& told = report ? report : report_;
  const int64_t step = last_saved_ = publication.step();
  known_sound_.insert(step);
  for (const bool again : {true, false}) {
    try {
      clear_away();
      prune(told);
      break;
    } catch (const IoError& error) {  // the new checkpoint is safe; a surplus old one is no reason to stop
      if (!again && told) told(error.what());
    }
  }
  try_second(told, fmt::format("the checkpoint of update {} could not be copied to", step), [&](CheckpointStore& second) {
    copy_directory(files_, directory(step), second.directory(step), go_on);
    second.last_saved_ = step;
    known_in_second_.insert(step);
    second.known_sound_.swap(known_in_second_);
    second.prune(told);
    known_in_second_ = second.known_sound_;
  });
}

void CheckpointStore::save_best(int64_t step, std::span<const Part> parts) {
  const std::string best = join_path(run_, "best");
  replace_directory(files_, best, step, parts);
  try_second(report_, "the best model could not be copied to",
             [&](CheckpointStore& second) { copy_directory(files_, best, join_path(second.run_, "best")); });
}

// The other disk may be gone and come back: what is needed of it is made each time. Nothing is cleaned up, since two threads may copy at
// once, a checkpoint and the best model; the run's start has done that.
void CheckpointStore::try_second(const Report& report, const std::string& what, const std::function<void(CheckpointStore& second)>& body) {
  if (second_path_.empty()) return;
  try {
    CheckpointStore second(files_, second_path_, keep_, report, false);
    body(second);
  } catch (const Error& error) {
    if (report) report(fmt::format("warning: {} checkpoint.second-directory: {}", what, error.what()));
  }
}

std::optional<Loaded> CheckpointStore::latest() {
  auto loaded = latest_checkpoint(files_, run_, report_);
  if (loaded) known_sound_.insert(loaded->step);
  return loaded;
}

bool CheckpointStore::sound(int64_t step, const std::string& path, const Report& report) {
  if (known_sound_.contains(step)) return true;
  const bool fine = try_verify(files_, path, step, report).has_value();
  if (fine) known_sound_.insert(step);
  return fine;
}

void CheckpointStore::prune() { prune(report_); }

void CheckpointStore::prune(const Report& report) {
  const auto steps = list_steps(files_, checkpoints_);
  int kept = 0;
  for (auto at = steps.rbegin(); at != steps.rend(); ++at) {
    const auto& [step, path] = *at;
    if (kept < keep_) {
      kept += sound(step, path, report) ? 1 : 0;
    } else if (step != last_saved_) {
      remove(step, path);
    }
  }
}

void CheckpointStore::remove(int64_t step, const std::string& path) {
  const std::string doomed = aside_path(directory(step));
  files_.remove_all(doomed);
  files_.rename(path, doomed);  // from here on it is not a checkpoint, however far the removal gets
  files_.sync_directory(checkpoints_);
  files_.remove_all(doomed);
  known_sound_.erase(step);
}

void CheckpointStore::remove_after(int64_t step) {
  for (const auto& [later, path] : list_steps(files_, checkpoints_))
    if (later > step) remove(later, path);
  last_saved_ = std::min(last_saved_, step);
  try_second(report_, fmt::format("checkpoints after update {} could not be removed from", step),
             [&](CheckpointStore& second) { second.remove_after(step); });
}

}  // namespace starling
