// The directory of a run, from the first look to the last save. A start reads and checks everything that it can before it writes. A start
// that is refused has changed nothing; one that fails later (a vocabulary that cannot be trained, a full disk) removes what it has made.
// Models are never overwritten: a run that cannot be continued is refused, or moved aside if train.restart says so.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/lock.h"
#include "data/token_store.h"
#include "decode/model_directory.h"
#include "settings/config.h"
#include "storage/checkpoint.h"
#include "storage/path_rollback.h"
#include "storage/state.h"

namespace starling {

// Exists on rank 0 alone. Its functions are called in the order of their declarations.
class RunDirectory {
 public:
  // Reads without writing; what is made from here on is removed again unless keep() is reached. Throws ConfigError if this is the directory
  // of a model, if another process uses it, if it had a checkpoint but has no usable one any more, or if the model of the run or of
  // train.initial-model is not the configuration's; throws DataError or IoError if the texts cannot be used. Reports broken checkpoints to
  // `say`. All arguments must outlive this.
  RunDirectory(FileSystem& files, const Config& config, int threads, Say say);
  const std::optional<Loaded>& checkpoint() const { return checkpoint_; }  // that the run resumes from
  // Locks the run for this process, which refuses if another one trains here, and notes that stream() may appear: it is removed if this
  // start is refused, unless it was there before.
  void begin_stream();
  std::string stream() const { return path("stream"); }                        // directory of a text that comes from a pipe
  const std::optional<State>& state() const { return state_; }                 // of the checkpoint
  const std::optional<ModelDescription>& initial() const { return initial_; }  // of a new run with train.initial-model

  // Returns the checkpoint's vocabularies, else the initial model's, else those of files, else trained ones.
  Vocabularies vocabularies();
  // Throws ConfigError unless the checkpoint has the seed and the batch of the configuration. batch_tokens, worker_batch_tokens: target
  // tokens per update of all workers, and of one.
  void require_same_run(int64_t batch_tokens, int64_t worker_batch_tokens) const;
  // Opens the tokens of the training text. Throws ConfigError, leaving <run>/data as it was, if the checkpoint is of another text.
  TokenStore open_store(const Vocabularies& vocabularies, StoreBuild build);
  // Moves aside the earlier run that is abandoned (by train.restart, or because it never completed a checkpoint), removes what a crash left
  // behind, writes the vocabularies that are missing, and reports which settings have changed since the last start.
  void begin(const Vocabularies& vocabularies);
  // Writes config.yml: the start has succeeded.
  void keep();
  // To be called if the start fails: vocabulary and tokens are kept for the next start, unless this one was refused (is_refusal).
  void failed(const std::exception& error) { made_.keep_work_unless_refused(error); }

  CheckpointStore& checkpoints() { return *checkpoints_; }
  // Throws IoError if this directory was removed, or recreated by another process, since the run began: nothing may be saved there then.
  void require_owned();

 private:
  std::string path(const std::string& name) const;
  void lock();
  void refuse_foreign_directory() const;
  void refuse_own_model() const;
  void find_checkpoint();
  std::string second_directory() const;
  std::filesystem::path own_path() const;
  void refuse_second_of_another_run() const;
  void begin_second();
  void tell_unusable_second(const IoError& error) const;
  // Lists in words what is left of a run that cannot be continued: best model, checkpoints, updates; "" if nothing is.
  std::string remains() const;
  bool had_checkpoint() const;
  void check_texts();
  void describe_models();
  void refuse_fixed_settings() const;
  void set_aside();
  void report_changes() const;
  std::string data_changes() const;
  std::vector<std::string> recorded_lines() const;

  FileSystem& files_;
  const Config& config_;
  const int threads_;  // to read texts with
  Say say_;
  std::unique_ptr<FileLock> lock_;
  PathRollback made_{files_};       // until keep(); released before the lock
  std::string second_;              // directory of the copies, or ""
  std::vector<std::string> found_;  // names in checkpoints/ at the first look
  std::optional<Loaded> checkpoint_;
  std::optional<State> state_;
  std::optional<ModelDescription> model_, initial_;
  std::optional<CheckpointStore> checkpoints_;
  bool texts_checked_ = false, restarts_ = false, from_second_ = false;
};

}  // namespace starling
