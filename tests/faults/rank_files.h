// The files of one rank: its run's checkpoints are in memory, where they can be lost, all else is on the machine's disk. A rank that the
// scenario has crashed does nothing any more, whatever its destructors try.
#pragma once

#include "sim/simulate.h"
#include "tests/files/forwarding_files.h"
#include "tests/files/memory_files.h"

namespace starling {

class RankFiles final : public ForwardingFiles {
 public:
  RankFiles(std::string run, MemoryFileSystem& memory) : run_(std::move(run)), memory_(memory) {}
  bool make_directory(const std::string& path) override {
    if (has_both(path)) memory_.make_directory(path);
    return ForwardingFiles::make_directory(path);
  }
  void sync_directory(const std::string& path) override {
    if (has_both(path)) memory_.sync_directory(path);
    ForwardingFiles::sync_directory(path);
  }

 private:
  FileSystem& at(const std::string& path) override {
    // Destructors know how to fail.
    if (crashed_rank() || memory_.crashed()) throw IoError(path + ": this rank has been killed");
    std::string within = path.starts_with(run_ + "/") ? path.substr(run_.size() + 1) : "";
    if (within.starts_with(kAside)) within.erase(0, std::min(within.find('/'), within.size() - 1) + 1);
    const bool models = within.starts_with("checkpoints") || within.starts_with("best") || within.starts_with(".tmp-best") ||
                        within.starts_with(".old-best");
    return models ? memory_ : ForwardingFiles::at(path);
  }
  // Directories with models in memory and other files beside them.
  bool has_both(const std::string& path) const { return path == run_ || file_name(path).starts_with(kAside); }
  static constexpr std::string_view kAside = "before-restart";
  const std::string run_;
  MemoryFileSystem& memory_;
};

}  // namespace starling
