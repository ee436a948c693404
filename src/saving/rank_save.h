// Saves one checkpoint of several ranks. Each rank writes its own files into the temporary directory that rank 0 has made: nothing is
// gathered. A rank on a host that does not see that directory sends its files to rank 0 in small pieces. Rank 0 then publishes the
// checkpoint. Where all ranks see the directory and have the memory, their files are copied, and written while they go on training.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/json.h"
#include "comm/communicator.h"
#include "saving/copies.h"
#include "storage/checkpoint.h"

namespace starling {

// What to call before and after this rank writes its files (or copies them), while rank 0 does.
struct AroundWriting {
  std::function<void()> before = [] {}, after = [] {};
};
struct SavePlace {
  FileSystem& files;
  std::string run_directory;     // its path on this rank
  CheckpointStore* checkpoints;  // on rank 0, elsewhere null
  int64_t step;
  std::string mark;  // rank 0's, distinguishes this save from what an earlier one may have left on a host
};

class RankSave {
 public:
  // The communicator has all ranks that save, and must outlive this.
  RankSave(SavePlace place, Communicator& comm);
  // Cancels a save that is not complete, and removes what was written of it.
  ~RankSave();
  RankSave(const RankSave&) = delete;

  // Collective. Writes this rank's files, with names that no other rank has and known sizes, and publishes the checkpoint. Returns "", or
  // if a file cannot be written, on all ranks, which rank failed and why; then the existing checkpoints are as they were, and nothing is
  // left of this one.
  std::string save(std::span<const Part> own, const AroundWriting& around = {});

  // Collective. The same beside training: copies the files and begins to write them; the originals may change afterwards. at_once: writes
  // before it returns, as in the simulator, whose runs are not to depend on a disk's speed. Where a rank does not see the directory or
  // lacks the memory, it does all that save() does before it returns.
  void begin(std::span<const Part> own, const AroundWriting& around, Copies& copies, bool at_once);
  // Collective, after each update, until it returns what save() returns. wait: until it does.
  std::optional<std::string> advance(bool wait);
  // Gives up the copy in another directory, on rank 0: another one follows.
  void skip_copy() { copy_skipped_ = true; }
  // Lines about old checkpoints that could not be removed, on rank 0.
  const std::vector<std::string>& reports() const { return reports_; }

 private:
  std::string open();
  bool sees() const;
  nlohmann::json write(std::span<const Part> own, bool writes) const;
  std::string collect(std::span<const Part> own, const nlohmann::json& mine);
  void publish();
  std::string finish(std::span<const Part> own, const AroundWriting& around, bool writes);
  void together();
  std::string tell(const std::string& complaint);
  std::string of_rank(int rank, const std::string& why) const;
  void run(std::function<void()> body);
  bool all_have_ended(bool wait);
  void join();

  const SavePlace place_;
  Communicator& comm_;
  const std::string aside_;
  std::unique_ptr<Publication> publication_;
  std::vector<std::string> reports_;
  std::string complaint_;  // on rank 0
  // Of a save beside training.
  enum class Phase : uint8_t { writing, publishing, over } phase_ = Phase::over;
  bool at_once_ = false;
  std::vector<Part> copied_;
  nlohmann::json written_;
  std::string result_;
  std::thread thread_;
  std::exception_ptr error_;
  std::atomic<bool> ended_ = false, cancelled_ = false, copy_skipped_ = false;
  const GoOn go_on_ = [this] {
    if (cancelled_) throw IoError("the save was cancelled because the run has ended");
  };
  Tensor votes_;
  std::optional<Pending> vote_;
};

}  // namespace starling
