#include "run/run_directory.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "data/text_stream.h"
#include "evaluation/text_roles.h"
#include "evaluation/validation.h"
#include "run/fine_tuning.h"
#include "run/run_tokens.h"
#include "run/run_vocabulary.h"
#include "storage/outputs.h"
#include "storage/unused_name.h"

namespace starling {
namespace {

constexpr const char* kOwner = "run.txt";  // in a second directory: the path of its run

// Settings that only the first start of a run uses.
constexpr const char* kFixed[] = {"vocab.sample-lines", "model.init-bound", "train.initial-model"};

std::string value_of(const std::vector<std::string>& lines, const std::string& key) {
  for (const std::string& line : lines)
    if (line.starts_with(key + ":")) return line.substr(std::min(line.size(), key.size() + 2));
  return "";
}

// Whether a line of the file contains one of the texts.
bool any_line_has(const std::string& path, std::initializer_list<std::string_view> texts) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    for (const std::string_view text : texts)
      if (line.find(text) != std::string::npos) return true;
  return false;
}

std::vector<std::string> names_in(FileSystem& files, const std::string& directory) {
  return files.info(directory).kind == FileKind::directory ? files.list(directory) : std::vector<std::string>();
}

}  // namespace

RunDirectory::RunDirectory(FileSystem& files, const Config& config, int threads, Say say)
    : files_(files), config_(config), threads_(threads), say_(say ? std::move(say) : [](const std::string&) {}) {
  refuse_foreign_directory();
  refuse_own_model();
  if (files_.exists(path("lock"))) lock();
  second_ = second_directory();
  find_checkpoint();
  check_texts();
  describe_models();
  refuse_fixed_settings();
}

std::string RunDirectory::path(const std::string& name) const { return join_path(config_.train.output, name); }

void RunDirectory::refuse_foreign_directory() const {
  const std::string& output = config_.train.output;
  if (files_.exists(path("manifest.json")))
    throw ConfigError(fmt::format(
        "train.output {0}: this is the directory of a model (it has a manifest.json), which files of a run would damage; choose "
        "another train.output, and to begin with this model's weights set train.initial-model to {0}",
        output));
  if (is_race_directory(output))
    throw ConfigError(
        fmt::format("train.output {}: this is the directory of a race, which files of a run would damage; choose another", output));
  if (!is_run_directory(output)) refuse_run_files({"train.output", output});
}

// Fine-tuning makes a new run; a run that is continued has its model anyway.
void RunDirectory::refuse_own_model() const {
  if (config_.train.initial_model.empty()) return;
  const std::filesystem::path inside = real_path(config_.train.initial_model).lexically_relative(own_path());
  if (inside.empty() || (inside != "." && *inside.begin() != "best" && *inside.begin() != "checkpoints")) return;
  throw ConfigError(
      fmt::format("train.initial-model {} is the model of the run that train.output names, {}: leave it out to continue that run, or, to "
                  "fine-tune its model into a new run, choose another train.output",
                  config_.train.initial_model, config_.train.output));
}

// One process trains in a run directory at a time.
void RunDirectory::begin_stream() {
  lock();
  if (config_.train.restart && !checkpoint_ && files_.exists(stream()))
    files_.rename(stream(), unused_name(files_, path("before-restart-stream")));
  made_.note_work(stream());
}

void RunDirectory::lock() {
  if (lock_) return;
  made_.note(path("lock"));
  files_.make_directories(config_.train.output);
  lock_ = FileLock::try_acquire(path("lock"));
  if (lock_) return;
  made_.keep();  // it is the other's by now
  throw ConfigError(
      fmt::format("{}: another process (training or tune-search) uses this directory; wait for it, or choose another "
                  "train.output",
                  config_.train.output));
}

void RunDirectory::find_checkpoint() {
  found_ = names_in(files_, path("checkpoints"));
  checkpoint_ = latest_checkpoint(files_, config_.train.output, say_);
  try {
    refuse_second_of_another_run();
    if (!second_.empty())
      if (auto copy = latest_checkpoint(files_, second_, say_, checkpoint_ ? checkpoint_->step : -1)) {
        from_second_ = true;
        checkpoint_ = std::move(copy);
      }
  } catch (const IoError& error) {
    tell_unusable_second(error);
  }
  if (checkpoint_) {
    if (config_.train.restart)
      throw ConfigError(
          fmt::format("train.restart is for a run that cannot be continued, but {} can, after update {}; leave train.restart out, or, to "
                      "start over, choose another train.output",
                      from_second_ ? second_ : config_.train.output, checkpoint_->step));
    const std::string state = checkpoint_->path("state.json");
    state_ = State::from_json(files_.read_file(state), state);
    return;
  }
  const std::string found = remains();
  restarts_ = !found.empty();
  if (restarts_ && !config_.train.restart && had_checkpoint())
    throw ConfigError(
        fmt::format("{0}: a run has been here ({1}), but there is no usable checkpoint to continue from; restore {0}/checkpoints, choose "
                    "another train.output, or add --train.restart true to start over, which keeps what is there in {0}/before-restart",
                    config_.train.output, found));
}

// Of this run alone: those of other runs lie beside it. "": there is none.
std::string RunDirectory::second_directory() const {
  const std::string& second = config_.checkpoint.second_directory;
  if (second.empty()) return "";
  const std::filesystem::path run = own_path(), place = real_path(second) / run.filename();
  if (place == run || lies_in(place, run))
    throw ConfigError(
        fmt::format("checkpoint.second-directory {}: the copies would lie in train.output {} itself; give a directory elsewhere", second,
                    config_.train.output));
  return join_path(second, run.filename());
}

std::filesystem::path RunDirectory::own_path() const { return real_path(config_.train.output); }

// The second directory says whose it is, since a run that only has the same name must not continue from there.
void RunDirectory::refuse_second_of_another_run() const {
  const std::string record = join_path(second_, kOwner);
  if (second_.empty() || !files_.exists(record)) return;
  if (const std::string owner = files_.read_file(record); owner != own_path().string() + "\n")
    throw ConfigError(
        fmt::format("checkpoint.second-directory: {} has the copies of the run {}; give another directory, or, to continue that "
                    "run here, remove {}",
                    second_, owner.substr(0, owner.find('\n')), record));
}

std::string RunDirectory::remains() const {
  std::vector<std::string> found;
  if (files_.exists(path("best")) || files_.exists(path(".old-best"))) found.push_back("best/");
  const auto broken = std::count_if(found_.begin(), found_.end(),
                                    [](const std::string& name) { return name.starts_with("step-") || name.starts_with(".old-step-"); });
  if (broken > 0) found.push_back(fmt::format("{} damaged checkpoint{}", broken, broken == 1 ? "" : "s"));
  if (any_line_has(path("events.jsonl"), {R"("type":"report")", R"("type":"checkpoint")"}))
    found.push_back("updates in events.jsonl");
  else if (any_line_has(path("train.log"), {"] step "}))
    found.push_back("updates in train.log");
  return fmt::format("{}", fmt::join(found, ", "));
}

// Whether the run may ever have had a complete checkpoint: then something is missing that nobody should lose by starting again.
bool RunDirectory::had_checkpoint() const {
  const bool any = std::any_of(found_.begin(), found_.end(), [](const std::string& name) { return !name.starts_with(".tmp-"); });
  return any || !files_.exists(path("events.jsonl")) || any_line_has(path("events.jsonl"), {R"("type":"checkpoint")"});
}

// Reads every text once before anything is made from it; the token store does this again only if it must be rebuilt.
void RunDirectory::check_texts() {
  if (config_.valid.enabled())
    for (const ValidSet& set : config_.valid.texts()) {
      const DataOptions text{{{set.source, set.target, "", 1}}, config_.data.max_length, 0};
      require_sentences(set, check_corpora(text, threads_, say_).front());
    }
  if (!checkpoint_) TokenStore::require_own(files_, path("data"));
  for (const std::string& line : same_texts(config_)) say_("warning: " + line);
  if (is_stream(config_.data)) return;
  texts_checked_ = !files_.exists(path("data"));
  if (texts_checked_) check_corpora(config_.data, threads_, say_);
}

void RunDirectory::describe_models() {
  if (checkpoint_) {
    model_.emplace(read_description(files_, checkpoint_->directory));
    require_same_model(config_, model_->config, config_.train.output, "this run was started with",
                       "restore it, or start afresh with another train.output");
  } else if (!config_.train.initial_model.empty()) {
    initial_.emplace(describe_model(files_, config_.train.initial_model));
    require_same_model(config_, initial_->config, initial_->directory, "train.initial-model names",
                       "leave the model section out, give it the values of that model, or name another one");
    if (initial_->quantized)
      say_(fmt::format("warning: the weights of train.initial-model {} are rounded to 8 bits; begin with the model that it was made of",
                       config_.train.initial_model));
  }
}

// The settings of the checkpoint; of an older version's those of the last start, or none if they cannot be read: the file is only a record,
// and people may edit it.
std::vector<std::string> RunDirectory::recorded_lines() const {
  if (state_ && state_->has("settings")) return settings_of(*state_);
  try {
    return config_lines(load_record(path("config.yml")));
  } catch (const Error&) {
    return {};
  }
}

// Otherwise config.yml would record these settings as if they had an effect.
void RunDirectory::refuse_fixed_settings() const {
  const std::vector<std::string> before = recorded_lines(), now = config_lines(config_);
  if (!checkpoint_ || before.empty()) return;
  for (const std::string key : kFixed)
    if (value_of(before, key) != value_of(now, key))
      throw ConfigError(
          fmt::format("{}: this run was started with {} {}, and changing it to {} has no effect any more; set it back or "
                      "leave it out, or start afresh with another train.output",
                      config_.train.output, key, value_of(before, key), value_of(now, key)));
}

Vocabularies RunDirectory::vocabularies() {
  if (model_) return adopt_vocabularies(config_, files_, model_->vocabularies, "the run in " + config_.train.output);
  if (initial_) return adopt_vocabularies(config_, files_, initial_->vocabularies, "train.initial-model " + config_.train.initial_model);
  for (const std::string& file : vocabularies_to_train(config_, files_)) {
    lock();
    made_.note_work(file);
  }
  return open_vocabularies(config_, files_, say_);
}

void RunDirectory::require_same_run(int64_t batch_tokens, int64_t worker_batch_tokens) const {
  if (!state_) return;
  const auto refuse = [&](const std::string& what) {
    throw ConfigError(fmt::format("{}: this run was started with {}; restore that, or start afresh with another train.output",
                                  config_.train.output, what));
  };
  const State& s = *state_;
  if (s.unsigned_integer("seed") != config_.train.seed)
    refuse(fmt::format("train.seed {}, not {}", s.unsigned_integer("seed"), config_.train.seed));
  const bool worker_keeps = config_.strategy.batch == BatchScope::per_worker && s.has("worker-batch-tokens") &&
                            s.integer("worker-batch-tokens") == worker_batch_tokens;
  if (s.integer("batch-tokens") != batch_tokens && !worker_keeps)
    refuse(fmt::format("a global batch of {} target tokens, not {}", s.integer("batch-tokens"), batch_tokens));
}

TokenStore RunDirectory::open_store(const Vocabularies& v, StoreBuild build) {
  build.checked = texts_checked_;
  lock();
  made_.note_work(path("data"));
  return open_run_tokens(files_, config_.train.output, config_.data, v, build, state_.has_value(), [&](const TokenStore& store) {
    if (state_ && state_->text("data") != data_digest(store))
      throw ConfigError(
          fmt::format("{}: this run was started with different training data or filters ({}); restore them, or start afresh with another "
                      "train.output",
                      config_.train.output, data_changes()));
  });
}

// Says in words what has changed in the section data since the last start.
std::string RunDirectory::data_changes() const {
  const std::vector<std::string> before = recorded_lines(), now = config_lines(config_);
  std::vector<std::string> changes, names;
  for (const auto& [lines, others, when] : {std::tuple(&before, &now, "then "), {&now, &before, "now "}})
    for (const std::string& line : *lines)
      if (!before.empty() && line.starts_with("data.") && std::find(others->begin(), others->end(), line) == others->end())
        changes.push_back(when + line);
  for (const CorpusFiles& corpus : config_.data.train) names.push_back(corpus.name());
  return changes.empty() ? fmt::format("the text in {} is not the same", fmt::join(names, ", "))
                         : fmt::format("{}", fmt::join(changes, ", "));
}

void RunDirectory::begin(const Vocabularies& vocabularies) {
  lock();
  if (names_in(files_, path("checkpoints")) != found_)
    throw ConfigError(fmt::format("{}: another process has trained here since this start began; start again", config_.train.output));
  for (const char* name : {"vocab.spm", "source.spm", "target.spm"}) made_.note(path(name));
  publish_vocabularies(config_, files_, vocabularies);
  if (restarts_) set_aside();
  if (checkpoint_) report_changes();
  for (const char* name : {"checkpoints", "train.log", "events.jsonl", "config.yml"}) made_.note(path(name));
  checkpoints_.emplace(files_, config_.train.output, static_cast<int>(config_.checkpoint.keep), say_);
  begin_second();
}

// A run that has its own checkpoint goes on without copies.
void RunDirectory::tell_unusable_second(const IoError& error) const {
  if (!checkpoint_ || from_second_) throw error;
  say_(fmt::format("warning: checkpoint.second-directory cannot be used: {}", error.what()));
}

void RunDirectory::begin_second() {
  if (second_.empty()) return;
  checkpoints_->also_in(second_);
  try {
    made_.note(second_);
    CheckpointStore(files_, second_, static_cast<int>(config_.checkpoint.keep), say_);  // cleans up after a crash
    files_.replace_file(join_path(second_, kOwner), own_path().string() + "\n");
    if (!from_second_) return;
    // The state that was restored knows the best model of its time.
    const auto best = best_checkpoint(files_, second_, say_), own = best_checkpoint(files_, config_.train.output);
    if (!best || (own && own->step >= best->step)) return;
    made_.note(path("best"));
    copy_directory(files_, join_path(second_, "best"), path("best"));
  } catch (const IoError& error) {
    tell_unusable_second(error);
  }
}

void RunDirectory::keep() {
  Config record = config_;
  record.train.restart = false;  // it is meant for one start
  files_.replace_file(path("config.yml"), dump_config(record, true));
  made_.keep();
}

void RunDirectory::set_aside() {
  const std::string place = unused_name(files_, path("before-restart"));
  recover_directory(files_, path("best"));
  files_.make_directory(place);
  for (const std::string& name : found_)
    if (name.starts_with(".tmp-")) files_.remove_all(path("checkpoints/" + name));  // written in part
  const auto move = [&](std::initializer_list<const char*> names) {
    for (const char* name : names)
      if (files_.exists(path(name))) files_.rename(path(name), join_path(place, name));
    files_.sync_directory(place);
    files_.sync_directory(config_.train.output);
  };
  move({"best", "checkpoints", "validations", "tensorboard"});
  move({"train.log", "events.jsonl", "config.yml"});  // last: they say that there never was a checkpoint, should the power fail before
  const char* why = config_.train.restart ? "train.restart" : "the run that was here ended before its first checkpoint was complete";
  say_(fmt::format("{}: this run starts over; models and logs of the one before are in {}", why, place));
}

// Says which settings differ from those of the run so far, whether the command has others now or the file that keeps them was changed.
void RunDirectory::report_changes() const {
  const std::vector<std::string> before = recorded_lines();
  if (before.empty()) return;
  const char* const since = state_->has("settings") ? "the checkpoint" : "the last start";
  for (const std::string& line : config_lines(config_)) {
    if (std::find(before.begin(), before.end(), line) != before.end()) continue;
    const std::string key = line.substr(0, line.find(':')), then = value_of(before, key);
    say_(fmt::format("changed since {}: {}{} -> {}", since, key, then.empty() ? "" : " " + then, value_of({line}, key)));
  }
}

void RunDirectory::require_owned() {
  if (lock_->in_place()) return;
  // The lock file alone may have been taken for a leftover; whoever uses this directory since has made another one.
  if (!files_.exists(path("lock")) && files_.exists(path("config.yml"))) lock_ = FileLock::try_acquire(path("lock"));
  if (lock_ && lock_->in_place()) return;
  throw IoError(
      fmt::format("{0}: this directory was removed, or made again for another run, since this training began; nothing more is saved "
                  "there, and this training ends: let one training at a time use {0}, and give others a train.output of their own",
                  config_.train.output));
}

}  // namespace starling
