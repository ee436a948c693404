// Saves one checkpoint of several ranks. Each rank writes its own files into the temporary directory that rank 0 has made: nothing is
// gathered. A rank on a host that does not see that directory sends its files to rank 0 in small pieces. Rank 0 then publishes the
// checkpoint.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "comm/communicator.h"
#include "storage/checkpoint.h"

namespace starling {

// What to call before and after this rank writes its files, while rank 0 writes.
struct AroundWriting {
  std::function<void()> before = [] {}, after = [] {};
};
// Collective; returns when the checkpoint is published: "". If a file cannot be written, the existing checkpoints stay as they were,
// nothing is left of this one, and all ranks are told which rank failed and why. own: this rank's files, with names that no other rank has
// and known sizes; checkpoints: on rank 0, elsewhere null; run_directory: its path on this rank; mark: rank 0's, distinguishes this save
// from what an earlier one may have left on a host.
std::string save_by_ranks(FileSystem& files, const std::string& run_directory, CheckpointStore* checkpoints, int64_t step,
                          std::span<const Part> own, const std::string& mark, Communicator& comm, const AroundWriting& around = {});

}  // namespace starling
