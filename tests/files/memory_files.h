// A file system in memory that fails on command: the test double behind every crash test. It keeps apart what programs see and what
// a disk would still hold after a power cut (bytes only after sync, names only after sync_directory), and forgets the rest in reboot().
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/random.h"

namespace starling {

enum class Fault {
  io_error,     // the operation fails with IoError and does nothing; later operations work
  short_write,  // a write stores half of its bytes and fails with IoError (other operations: like io_error)
  crash,        // SimulatedCrash, from this operation (a write: after half of its bytes) and every later one, until reboot()
};

// What a crash leaves of the things that were not synced.
enum class Surviving {
  synced_only,  // nothing else
  everything,   // all of it: the program died, the machine did not
  names_only,   // names and sizes arrived before the bytes: unsynced content reads as zeros
  random,       // some prefix of each directory's changes, some prefix of each file's bytes
};

struct FaultPlan {
  int64_t at = 0;  // 1-based number of the operation to hit, counted from set_faults(); 0: none
  Fault fault = Fault::io_error;
  Surviving surviving = Surviving::synced_only;
  int64_t capacity_bytes = -1;  // disk size; -1: endless
  bool can_exchange = true;     // false: exchange() is not offered, as on some network file systems
  uint64_t seed = 0;            // for Surviving::random
};

// Not an Error: code that handles failing files must not swallow a power cut.
struct SimulatedCrash {};

class MemoryFileSystem final : public FileSystem {
 public:
  MemoryFileSystem();
  ~MemoryFileSystem() override;

  // Installs a plan and starts counting operations anew.
  void set_faults(const FaultPlan& plan);
  int64_t operations() const { return operations_; }
  // The numbers of those that change what is stored or what of it survives.
  const std::vector<int64_t>& changes() const { return changes_; }
  bool crashed() const { return crashed_; }
  // The machine starts again: what did not survive is gone, and the plan is cleared.
  void reboot();
  // Only the program starts again (it was killed): nothing is forgotten, what was not synced still is not; the plan is cleared.
  void restart_program();

  std::unique_ptr<OutputFile> create(const std::string& path, uint64_t expected_bytes = 0) override;
  void read_pieces(const std::string& path, const std::function<void(std::span<const std::byte>)>& take) override;
  std::unique_ptr<MappedFile> map(const std::string& path) override;
  void rename(const std::string& from, const std::string& to) override;
  bool exchange(const std::string& a, const std::string& b) override;
  bool remove(const std::string& path) override;
  bool make_directory(const std::string& path) override;
  void sync_directory(const std::string& path) override;
  std::vector<std::string> list(const std::string& path) override;
  FileInfo info(const std::string& path) override;

 private:
  struct Node;
  class Output;
  using NodePtr = std::shared_ptr<Node>;
  using Names = std::map<std::string, NodePtr>;

  enum class Does { reads, changes, writes };
  bool hit(const std::string& path, Does what);
  NodePtr find(const std::string& path) const;
  NodePtr find_file(const std::string& path) const;
  Node& parent_of(const std::string& path) const;
  uint64_t used_bytes(const Node& node) const;
  void forget(Node& node);

  NodePtr root_;
  FaultPlan plan_;
  Random random_{0, 0};
  std::atomic<int64_t> operations_ = 0;  // several threads may read files
  std::vector<int64_t> changes_;
  std::atomic<bool> crashed_ = false;
};

}  // namespace starling
