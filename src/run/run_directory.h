// The directory of a run, from the first look to the last save. A start reads and compares everything that it can before it writes: one
// that is refused has changed nothing, and one that fails on its way (a vocabulary that cannot be trained, a full disk) takes back what it
// made. What holds models is never written over: a run that cannot be continued is refused, or set aside when train.restart says so.
#pragma once

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

// Of rank 0. The functions are called in their order here.
class RunDirectory {
 public:
  // Looks and writes nothing; what is made from here on is taken back unless keep() is reached. ConfigError when this is the directory of a
  // model, when another process uses it, when it had a checkpoint but has no usable one any more, or when the run or train.initial-model
  // has another model than the configuration; DataError and IoError when the texts cannot be used. `say` is told about broken checkpoints;
  // all arguments must live as long as this.
  RunDirectory(FileSystem& files, const Config& config, int threads, Say say);
  const std::optional<Loaded>& checkpoint() const { return checkpoint_; }      // that the run goes on from
  const std::optional<State>& state() const { return state_; }                 // of the checkpoint
  const std::optional<ModelDescription>& initial() const { return initial_; }  // of a new run with train.initial-model

  // The checkpoint's, the initial model's, those of files, or trained.
  Vocabularies vocabularies();
  // ConfigError unless the checkpoint has the seed and the batch of the configuration; tokens: target tokens an update of all workers, and
  // of one.
  void require_same_run(int64_t batch_tokens, int64_t worker_batch_tokens) const;
  // The tokens of the training text; ConfigError, with <run>/data as it was, if the checkpoint is of another text.
  TokenStore open_store(const Vocabularies& vocabularies, StoreBuild build);
  // Sets aside what train.restart or a run without any checkpoint gives up, clears away what a crash left, writes the vocabularies that
  // are missing, and says which settings differ from the last start.
  void begin(const Vocabularies& vocabularies);
  // Writes config.yml: the start has succeeded.
  void keep();
  // The start has failed. Vocabulary and tokens stay for the next one, unless this one was refused (is_refusal).
  void failed(const std::exception& error) { made_.keep_work_unless_refused(error); }

  CheckpointStore& checkpoints() { return *checkpoints_; }
  // IoError if this directory was removed, or made again by somebody else, since the run began: nothing must be saved there.
  void require_owned();

 private:
  std::string path(const std::string& name) const;
  void refuse_foreign_directory() const;
  void refuse_own_model() const;
  void lock();
  void find_checkpoint();
  // Best model, checkpoints or updates of a run that cannot be continued, in words; "" if there are none.
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
  std::vector<std::string> found_;  // names below checkpoints/ at the first look
  std::optional<Loaded> checkpoint_;
  std::optional<State> state_;
  std::optional<ModelDescription> model_, initial_;
  std::optional<CheckpointStore> checkpoints_;
  bool texts_checked_ = false, restarts_ = false;
};

}  // namespace starling
