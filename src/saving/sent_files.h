// Files that one rank sends to another in small pieces, where the two do not see one directory.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/files.h"
#include "comm/communicator.h"

namespace starling {

// Does something with files, and returns what went wrong, or "".
std::string complaint_of(const std::function<void()>& body);

// Sends what is written to a rank.
class SendingSink final : public ByteSink {
 public:
  SendingSink(Communicator& comm, int to);
  using ByteSink::write;
  void write(std::span<const std::byte> bytes) override;
  void send();  // what is left; once, at the end

 private:
  Communicator& comm_;
  const int to_;
  const Tensor piece_;
  size_t filled_ = 0;
};

// Receives what a SendingSink of rank `from` sends, `size` bytes.
class Incoming {
 public:
  Incoming(Communicator& comm, int from, uint64_t size);
  void pass_to(ByteSink& sink);
  void discard();  // what has not been received yet: the sender waits for it to be

 private:
  std::span<const std::byte> next();
  Communicator& comm_;
  const int from_;
  uint64_t left_;
  const Tensor piece_;
};

// A checkpoint or model directory of rank 0 as this rank sees it: the directory itself, or a copy of some of its files that rank 0 has
// sent, .tmp-received-RANK in the run directory, which is removed with this object, and at the rank's next start if the process was killed.
class SeenDirectory {
 public:
  // Collective. wanted: whether this rank wants to read it; names: the files that it may read, the same on all ranks. Throws on all ranks
  // IoError, naming the rank, if a file cannot be read or written.
  SeenDirectory(FileSystem& files, Communicator& comm, const std::string& run_directory, const std::string& directory,
                const std::vector<std::string>& names, bool wanted);
  SeenDirectory(const SeenDirectory&) = delete;
  const std::string& path() const { return copy_.path.empty() ? directory_ : copy_.path; }

 private:
  struct Copy {
    ~Copy();
    FileSystem& files;
    std::string path;  // "": there is none
  };
  const std::string directory_;
  Copy copy_;
};

}  // namespace starling
