// One checkpoint of several ranks. What one rank alone has, it writes itself into the directory that rank 0 has made aside: nothing is
// gathered. On a host that does not see that directory it sends its files to rank 0 in small pieces. Rank 0 then makes the checkpoint
// whole.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "comm/communicator.h"
#include "storage/checkpoint.h"

namespace starling {

// Collective; returns when the checkpoint is in its place. own: this rank's files, whose names no other rank has, and whose sizes are
// known; checkpoints: of rank 0, elsewhere null; run_directory: as this rank calls it; mark: rank 0's, tells this save from what an earlier
// one may have left on a host. When a file cannot be written, the checkpoints stay as they were: rank 0 throws an IoError with the rank and
// its reason, which ends the others. around: called before and after this rank writes its files, while rank 0 writes.
struct AroundWriting {
  std::function<void()> before = [] {}, after = [] {};
};
void save_by_ranks(FileSystem& files, const std::string& run_directory, CheckpointStore* checkpoints, int64_t step,
                   std::span<const Part> own, const std::string& mark, Communicator& comm, const AroundWriting& around = {});

}  // namespace starling
