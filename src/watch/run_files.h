// Reads the files of a run for people who watch it. They may be anybody's: only regular files that lie in the run directory itself are
// opened, no link is followed, and each look at them reads a bounded number of bytes. A file that is missing or strange has nothing.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace starling {

// What one look at the files of runs may read, and how long it may take; the next look goes on where it ended.
struct Look {
  std::chrono::steady_clock::time_point until = std::chrono::steady_clock::time_point::max();
  uint64_t bytes = std::numeric_limits<uint64_t>::max();  // that may still be read
  const std::atomic<bool>* end = nullptr;                 // set to end it at once

  bool over() const { return bytes == 0 || (end && *end) || std::chrono::steady_clock::now() >= until; }
  // Returns the part for the first of so many runs: an equal share of what is left, and a little even if those before have used up all.
  Look share(size_t runs) const;
};

struct FileMark {
  uint64_t size = 0, inode = 0;
  int64_t changed_ns = 0;
  std::string text() const;
};

// A regular file of a run that is open for reading.
class RunFile {
 public:
  // name: below the run directory, such as "validations/1200.txt". Returns nullopt where that is missing, reached by a link below the
  // run directory, or something else than a regular file.
  static std::optional<RunFile> open(const std::string& run, const std::string& name);
  RunFile(RunFile&& other) noexcept : file_(std::exchange(other.file_, -1)), mark_(other.mark_) {}
  RunFile& operator=(RunFile&&) = delete;
  ~RunFile();

  const FileMark& mark() const { return mark_; }  // when it was opened
  // Returns bytes from an offset, at most `most`, and charges the look with them.
  std::string read(uint64_t offset, uint64_t most, Look& look) const;
  // Returns where there are bytes again behind a hole at this offset, or the offset itself.
  uint64_t after_hole(uint64_t offset) const;

 private:
  RunFile(int file, const FileMark& mark) : file_(file), mark_(mark) {}
  int file_;
  FileMark mark_;
};

// Returns whether a path is a regular file, and no link to one.
bool is_regular_file(const std::string& path);
// Returns the last lines of a file.
std::vector<std::string> last_lines(const RunFile& file, size_t count, Look& look);
// Returns the keys of a configuration with their values as text, "train.max-steps"; lists have numbers, "data.train.0.source". Nothing, if
// it cannot be read; long values are cut.
std::map<std::string, std::string> flat_configuration(const RunFile& file, Look& look);

// Returns the newest translations of validation texts that a run keeps, validations/1200.txt: their updates and names, oldest first.
std::map<int64_t, std::string> kept_translations(const std::string& run, size_t most);
// Returns the mark of the directory that has them, which changes when translations are kept or removed.
std::optional<FileMark> kept_mark(const std::string& run);

}  // namespace starling
