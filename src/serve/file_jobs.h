// Files that are being translated, and their translations until they are fetched: in memory only, under names that nobody guesses.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <limits>
#include <map>
#include <mutex>
#include <thread>

#include "serve/file_translation.h"

namespace starling {

struct FileLimits {
  int64_t bytes = 10 << 20;  // of a file; 0: no files
  double seconds = 600;      // within which a file must be translated, and for which its translation is kept
};

class FileJobs {
 public:
  enum class State : char { queued, translating, done, failed };
  struct Status {
    State state = State::queued;
    std::string key;  // of the client, without which no status is given
    std::optional<double> seconds_left;
    int64_t characters = 0;
    std::string error;
  };
  struct File {
    std::string name, target;  // as the client called it; the language that it is in now
    std::string bytes;
  };
  // What became of a file; without an error it is there under its name.
  using Done = std::function<void(const std::string& id, const std::optional<ApiError>& error)>;

  // The models must outlive it, or its stop().
  FileJobs(ModelSet& models, JobOptions options, FileLimits limits) : models_(models), options_(std::move(options)), limits_(limits) {}
  ~FileJobs() { stop(); }

  // Starts a translation and returns its name. `done` is called once, from another thread, unless it is cancelled. Throws ApiError: 400 for
  // files that are not supported, 413 for larger ones, 429 where there are too many.
  std::string start(FileQuery file, std::shared_ptr<JobSize> size, Done done);
  std::optional<Status> status(const std::string& id) const;
  // Returns a translation that is done; removes it if `once`.
  std::optional<File> file(const std::string& id, bool once);
  void cancel(const std::string& id);
  // Forgets what is too old.
  void expire(double now);
  // Takes nothing more: what waits fails with 503, and so does what is not done after this many seconds.
  void drain(double seconds);
  // Cancels everything, and takes nothing more.
  void stop();

 private:
  struct Job;
  void work();
  void translate(Job& job);
  int64_t held_bytes() const;

  ModelSet& models_;
  const JobOptions options_;
  const FileLimits limits_;
  mutable std::mutex mutex_;  // guards everything below, and the jobs
  std::condition_variable more_;
  std::map<std::string, std::shared_ptr<Job>> jobs_;
  std::deque<std::shared_ptr<Job>> waiting_;
  std::vector<std::thread> threads_;
  std::atomic<bool> stopped_{false};
  std::atomic<double> give_up_{std::numeric_limits<double>::infinity()};  // the time of drain()
};

// Returns 32 digits that nobody can guess.
std::string secret_name();

}  // namespace starling
