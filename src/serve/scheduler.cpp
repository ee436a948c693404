#include "serve/scheduler.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace starling {
namespace {

constexpr size_t kSamples = 16, kSampleBytes = 400;
constexpr size_t kLook = 1024;  // waiting sentences that are looked at for near ones

// How much of a worker's time a sentence takes, in any unit.
double cost_of(const std::string& text, const SearchOptions& options) {
  return (16.0 + static_cast<double>(text.size())) * static_cast<double>(options.beam);
}

}  // namespace

int64_t Scheduler::submit(std::vector<std::string> sentences, const SearchOptions& options, double now, double deadline, Done done) {
  std::unique_lock lock(mutex_);
  Request request{now, deadline, options, std::vector<Candidates>(sentences.size()), {}, 0, 0, std::move(done)};
  std::vector<size_t> missing;
  for (size_t i = 0; i < sentences.size(); ++i) {
    request.keys.push_back(TranslationCache::key(sentences[i], options));
    if (const Candidates* known = cache_.find(request.keys[i]))
      request.translations[i] = *known;
    else
      missing.push_back(i);
  }
  if (missing.size() < sentences.size())
    metrics_.count("starling_cache_hits_total", "", static_cast<double>(sentences.size() - missing.size()));
  if (missing.empty()) {
    lock.unlock();
    request.done({End::done, std::move(request.translations), ""});
    return 0;
  }
  const int64_t waiting = static_cast<int64_t>(queue_.size());
  if (waiting + static_cast<int64_t>(missing.size()) > limits_.queue_sentences) {
    const auto oldest = queue_.empty() ? requests_.end() : requests_.find(queue_.begin()->second.request);
    const double waits = oldest == requests_.end() ? 0 : now - oldest->second.submitted;
    throw QueueFull(fmt::format("{} sentences are waiting already; try again later", waiting),
                    static_cast<int>(std::clamp(std::ceil(waits), 1.0, 60.0)));
  }
  request.missing = request.waiting = missing.size();
  ++waiting_requests_;
  const int64_t number = next_request_++;
  double turn = turn_;
  for (const size_t i : missing) {
    const double cost = cost_of(sentences[i], options);
    queue_.emplace(Place{turn, next_key_++}, Waiting{number, i, std::move(sentences[i]), cost});
    turn += cost;
  }
  requests_.emplace(number, std::move(request));
  lock.unlock();
  if (missing.size() == 1)
    changed_.notify_one();
  else
    changed_.notify_all();
  return number;
}

Scheduler::Request Scheduler::forget(int64_t number) {
  const auto found = requests_.find(number);
  Request request = std::move(found->second);
  requests_.erase(found);
  if (request.waiting > 0) --waiting_requests_;
  std::erase_if(queue_, [&](const auto& entry) { return entry.second.request == number; });
  std::erase_if(running_, [&](const auto& entry) {
    if (entry.second.request != number) return false;
    dropped_[entry.second.worker].push_back(entry.first);
    return true;
  });
  return request;
}

void Scheduler::cancel(int64_t request) {
  const std::lock_guard lock(mutex_);
  if (requests_.contains(request)) forget(request);
}

void Scheduler::expire(double now) {
  std::vector<Request> late;
  {
    const std::lock_guard lock(mutex_);
    std::vector<int64_t> numbers;
    for (const auto& [number, request] : requests_)
      if (request.deadline <= now) numbers.push_back(number);
    for (const int64_t number : numbers) late.push_back(forget(number));
  }
  for (Request& request : late) request.done({End::expired, {}, ""});
}

bool Scheduler::near(const Waiting& first, const Waiting& other) const {
  const double a = 16.0 + static_cast<double>(first.text.size()), b = 16.0 + static_cast<double>(other.text.size());
  return b <= 1.5 * a && a <= 1.5 * b;
}

// How many of the waiting sentences a worker may take: the workers that wait get as many each. One that is under way leaves them the rest.
size_t Scheduler::share(bool free) const {
  const size_t workers = static_cast<size_t>(idle_) + 1;
  return free ? (queue_.size() + workers - 1) / workers : queue_.size() / workers;
}

Scheduler::Work Scheduler::take(int worker, int64_t rows, const std::function<double()>& now, bool wait) {
  std::unique_lock lock(mutex_);
  const auto dropped = [&] { return dropped_.contains(worker); };
  if (rows == 0 && wait) {
    ++idle_;
    changed_.wait(lock, [&] { return !queue_.empty() || closed_ || dropped(); });
    --idle_;
  }
  Work work;
  if (dropped()) work.drop = std::move(dropped_[worker]), dropped_.erase(worker);
  work.stop = closed_ && queue_.empty() && rows == 0;
  const size_t most = share(rows == 0);
  const double time = now();
  int64_t bytes = 0;
  std::vector<std::map<Place, Waiting>::iterator> taken;
  size_t looked = 0;
  for (auto i = queue_.begin(); i != queue_.end() && taken.size() < most && looked < kLook; ++i, ++looked) {
    if (!taken.empty() && !near(taken.front()->second, i->second)) continue;
    const int64_t beam = requests_.at(i->second.request).options.beam, size = static_cast<int64_t>(i->second.text.size());
    const bool first = rows == 0 && taken.empty();  // must go on, however large it is
    if (!first && (rows + beam > limits_.rows || bytes + size > limits_.join_bytes)) break;
    rows += beam, bytes += size;
    taken.push_back(i);
  }
  if (!taken.empty()) turn_ = std::max(turn_, taken.front()->first.first);
  for (const auto i : taken) {
    Waiting& w = i->second;
    Request& request = requests_.at(w.request);
    // The work that all requests that wait have done, divided among them: whoever comes later gets a later turn.
    turn_ += w.cost / static_cast<double>(waiting_requests_);
    if (--request.waiting == 0) --waiting_requests_;
    metrics_.observe("starling_queue_wait_seconds", "", time - request.submitted);
    running_[i->first.second] = {w.request, w.index, worker, w.text};
    work.join.push_back({i->first.second, std::move(w.text), request.options});
    queue_.erase(i);
  }
  const bool more = !queue_.empty() && idle_ > 0;
  lock.unlock();
  if (more) changed_.notify_one();
  return work;
}

void Scheduler::finish(int64_t key, Candidates translations) {
  std::unique_lock lock(mutex_);
  const auto found = running_.find(key);
  if (found == running_.end()) return;
  const Running sentence = std::move(found->second);
  running_.erase(found);
  Request& request = requests_.at(sentence.request);
  cache_.add(request.keys[sentence.index], translations);
  if (!translations.empty() && sentence.text.size() <= kSampleBytes) {
    if (samples_.size() < kSamples) samples_.emplace_back();
    samples_[next_sample_++ % kSamples] = {sentence.text, translations.front().text};
  }
  request.translations[sentence.index] = std::move(translations);
  metrics_.count("starling_sentences_total");
  if (--request.missing > 0) return;
  Request done = std::move(request);
  requests_.erase(sentence.request);
  lock.unlock();
  done.done({End::done, std::move(done.translations), ""});
}

void Scheduler::fail(int worker, const std::string& error) {
  std::vector<Request> lost;
  {
    const std::lock_guard lock(mutex_);
    std::set<int64_t> numbers;
    for (const auto& [key, sentence] : running_)
      if (sentence.worker == worker) numbers.insert(sentence.request);
    for (const int64_t number : numbers) lost.push_back(forget(number));
    dropped_.erase(worker);
  }
  for (Request& request : lost) request.done({End::failed, {}, error});
}

void Scheduler::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  changed_.notify_all();
}

int64_t Scheduler::queued() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int64_t>(queue_.size());
}

int64_t Scheduler::cache_bytes() const {
  const std::lock_guard lock(mutex_);
  return cache_.bytes();
}

int64_t Scheduler::requests() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int64_t>(requests_.size());
}

std::vector<std::pair<std::string, std::string>> Scheduler::samples() const {
  const std::lock_guard lock(mutex_);
  return samples_;
}

}  // namespace starling
