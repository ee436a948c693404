#include "serve/file_jobs.h"

#include <sys/random.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/start_threads.h"

namespace starling {
namespace {

constexpr size_t kThreads = 2;            // that translate files; more would only share the same queues
constexpr int64_t kFilesTogether = 16;    // of the largest size that may be held,
constexpr size_t kMostJobs = 1000;        // and files of any size
constexpr uint64_t kUnpackedFactor = 10;  // bytes of text and tags in an archive of the largest size

ApiError stopping() { return {503, "the server is shutting down; send the request to another one"}; }

}  // namespace

struct FileJobs::Job {
  std::string id, key = secret_name();
  FileQuery file;  // its bytes are gone once it is translated
  std::shared_ptr<JobSize> size;
  Done done;
  int64_t bytes = 0;  // of the file, then of its translation
  double begun = 0, share = 0, expires = 0;
  State state = State::queued;
  std::string result, error;
  std::atomic<bool> cancelled{false};
};

std::string secret_name() {
  unsigned char bytes[16];
  for (size_t got = 0; got < sizeof bytes;) {
    const ssize_t n = getrandom(bytes + got, sizeof bytes - got, 0);
    if (n > 0) got += static_cast<size_t>(n);
  }
  std::string name;
  for (const unsigned char b : bytes) name += fmt::format("{:02x}", b);
  return name;
}

int64_t FileJobs::held_bytes() const {
  int64_t all = 0;
  for (const auto& [id, job] : jobs_) all += job->bytes;
  return all;
}

std::string FileJobs::start(FileQuery file, std::shared_ptr<JobSize> size, Done done) {
  if (std::ssize(file.bytes) > limits_.bytes) throw ApiError(413, fmt::format("the file is larger than {} bytes; split it", limits_.bytes));
  supported_format(file);
  const auto job = std::make_shared<Job>();
  job->id = secret_name();
  job->bytes = std::ssize(file.bytes);
  job->file = std::move(file);
  job->size = std::move(size);
  job->done = std::move(done);
  job->expires = serve_seconds() + limits_.seconds;
  const std::lock_guard lock(mutex_);
  if (stopped_ || give_up_ < std::numeric_limits<double>::infinity()) throw stopping();
  if (jobs_.size() >= kMostJobs || held_bytes() + job->bytes > kFilesTogether * limits_.bytes) {
    ApiError busy(429, "the server already holds too many files; try again later");
    busy.retry_seconds = 10;
    throw busy;
  }
  if (threads_.size() < kThreads) threads_.push_back(start_thread("translating files", [this] { work(); }));
  jobs_.emplace(job->id, job);
  waiting_.push_back(job);
  more_.notify_one();
  return job->id;
}

void FileJobs::work() {
  for (;;) {
    std::shared_ptr<Job> job;
    {
      std::unique_lock lock(mutex_);
      more_.wait(lock, [&] { return stopped_ || !waiting_.empty(); });
      if (stopped_) return;
      job = std::move(waiting_.front());
      waiting_.pop_front();
      if (job->cancelled) continue;
      job->state = State::translating;
      job->begun = serve_seconds();
    }
    translate(*job);
  }
}

void FileJobs::translate(Job& job) {
  const FileWatch watch{[&] { return job.cancelled || stopped_ || serve_seconds() > give_up_; },
                        [&](double share) {
                          const std::lock_guard lock(mutex_);
                          job.share = share;
                        }};
  std::optional<std::string> result;
  std::optional<ApiError> error;
  try {
    const double deadline = job.begun + limits_.seconds;
    FileQuery file = std::exchange(job.file, FileQuery{job.file.name, {}, job.file.source, job.file.target});
    result = translate_file(models_, std::move(file), options_, kUnpackedFactor * static_cast<uint64_t>(limits_.bytes), deadline, *job.size,
                            watch);
    if (!result && !job.cancelled && !stopped_) throw stopping();
  } catch (const ApiError& e) {
    error = e;
  } catch (const std::exception& e) {
    error = ApiError(500, e.what());
  }
  {
    const std::lock_guard lock(mutex_);
    if (result) job.result = std::move(*result);
    job.bytes = std::ssize(job.result);
    job.state = error ? State::failed : State::done;
    job.error = error ? error->what() : "";
    job.expires = serve_seconds() + limits_.seconds;
  }
  if (!job.cancelled && (result || error)) job.done(job.id, error);
  job.done = nullptr;  // it may hold the request
}

std::optional<FileJobs::Status> FileJobs::status(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  const auto found = jobs_.find(id);
  if (found == jobs_.end()) return std::nullopt;
  const Job& job = *found->second;
  Status status{job.state, job.key, std::nullopt, job.size->characters, job.error};
  if (job.state == State::translating && job.share > 0) status.seconds_left = (serve_seconds() - job.begun) * (1 / job.share - 1);
  return status;
}

std::optional<FileJobs::File> FileJobs::file(const std::string& id, bool once) {
  const std::lock_guard lock(mutex_);
  const auto found = jobs_.find(id);
  if (found == jobs_.end() || found->second->state != State::done) return std::nullopt;
  Job& job = *found->second;
  File file{job.file.name, job.file.target, once ? std::move(job.result) : job.result};
  if (once) jobs_.erase(found);
  return file;
}

void FileJobs::cancel(const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto found = jobs_.find(id);
  if (found == jobs_.end()) return;
  found->second->cancelled = true;
  std::erase(waiting_, found->second);
  jobs_.erase(found);
}

void FileJobs::expire(double now) {
  const std::lock_guard lock(mutex_);
  std::erase_if(jobs_, [&](const auto& entry) {
    const Job& job = *entry.second;
    return job.expires < now && (job.state == State::done || job.state == State::failed);
  });
}

void FileJobs::drain(double seconds) {
  std::deque<std::shared_ptr<Job>> waiting;
  {
    const std::lock_guard lock(mutex_);
    give_up_ = serve_seconds() + seconds;
    waiting.swap(waiting_);
    for (const auto& job : waiting) job->state = State::failed, job->error = stopping().what(), job->file.bytes = {}, job->bytes = 0;
  }
  for (const auto& job : waiting)
    if (const Done done = std::exchange(job->done, nullptr); done && !job->cancelled) done(job->id, stopping());
}

void FileJobs::stop() {
  std::vector<std::thread> threads;
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    threads.swap(threads_);
    more_.notify_all();
  }
  for (std::thread& t : threads) t.join();
  const std::lock_guard lock(mutex_);
  jobs_.clear();
  waiting_.clear();
}

}  // namespace starling
