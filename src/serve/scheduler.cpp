#include "serve/scheduler.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

namespace starling {
namespace {

constexpr size_t kSamples = 16, kSampleBytes = 400;
constexpr size_t kLook = 256;         // requests that are looked at for one that may have more
constexpr double kMeanOfBegins = 64;  // requests whose waits the mean forgets slowly

using Lengths = std::set<std::pair<size_t, size_t>>;  // bytes and index

// The longest sentence, since what begins last should not take longest; or, if a length is given, one that is not far from it.
Lengths::iterator choose(const Lengths& waiting, std::optional<size_t> length) {
  if (!length) return std::prev(waiting.end());
  auto near = waiting.lower_bound({*length, 0});
  if (near == waiting.end() || (near != waiting.begin() && near->first > *length)) {
    const auto shorter = near == waiting.begin() ? near : std::prev(near);
    if (near == waiting.end() || *length - shorter->first < near->first - *length) near = shorter;
  }
  const size_t a = 16 + *length, b = 16 + near->first;
  return 2 * b <= 3 * a && 2 * a <= 3 * b ? near : waiting.end();
}

}  // namespace

int64_t Scheduler::submit(std::vector<std::string> sentences, const SearchOptions& options, double now, double deadline, Done done) {
  const size_t count = sentences.size();
  Request request{.submitted = now,
                  .deadline = deadline,
                  .options = options,
                  .sentences = std::move(sentences),
                  .translations = std::vector<Candidates>(count),
                  .done = std::move(done)};
  for (const std::string& sentence : request.sentences) request.keys.push_back(TranslationCache::key(sentence, options));
  std::unique_lock lock(mutex_);
  for (size_t i = 0; i < count; ++i) {
    if (const Candidates* known = cache_.find(request.keys[i]))
      request.translations[i] = *known;
    else
      request.waiting.emplace(request.sentences[i].size(), i);
  }
  request.missing = request.waiting.size();
  const auto missing = static_cast<int64_t>(request.missing);
  if (request.missing < count) metrics_.count("starling_cache_hits_total", "", static_cast<double>(count - request.missing));
  if (missing == 0) {
    lock.unlock();
    request.done({End::done, std::move(request.translations), ""});
    return 0;
  }
  const double wait = expected_wait();
  const auto retry = static_cast<int>(std::clamp(std::ceil(wait), 1.0, 60.0));
  if (waiting_ + missing > limits_.queue_sentences)
    throw QueueFull(fmt::format("{} sentences are waiting already; try again later", waiting_), retry);
  if (wait > limits_.wait_seconds && idle_ == 0) throw QueueFull(fmt::format("the wait would be {:.1f} s; try again later", wait), retry);
  const int64_t number = next_request_++;
  waiting_ += missing, waiting_rows_ += missing * options.beam, ++newcomers_;
  requests_.emplace(number, std::move(request));
  turns_.push_back(number);
  lock.unlock();
  if (missing == 1)
    changed_.notify_one();
  else
    changed_.notify_all();
  return number;
}

Scheduler::Request Scheduler::forget(int64_t number) {
  const auto found = requests_.find(number);
  Request request = std::move(found->second);
  requests_.erase(found);
  const auto waiting = static_cast<int64_t>(request.waiting.size());
  waiting_ -= waiting, waiting_rows_ -= waiting * request.options.beam;
  if (!request.begun && --newcomers_ == 0) last_begin_ = -1;
  if (waiting > 0) turns_.remove(number);
  std::erase_if(running_, [&](const auto& entry) {
    if (entry.second.request != number) return false;
    dropped_[entry.second.worker].push_back(entry.first);
    return true;
  });
  return request;
}

void Scheduler::cancel(int64_t request) {
  std::optional<Request> forgotten;  // may be large: freed without the lock
  const std::lock_guard lock(mutex_);
  if (requests_.contains(request)) forgotten = forget(request);
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

// A request with many sentences has a quarter of all rows at the most while there are others: newcomers join at once, and their steps are
// not as long as with all rows.
bool Scheduler::has_its_share(const Request& request) const {
  if (!request.begun || requests_.size() == 1 || limits_.whole_batches) return false;
  const int64_t beam = request.options.beam, share = limits_.rows * static_cast<int64_t>(rows_.size()) / 4;
  return (request.under_way + 1) * beam > std::max(beam, share);
}

// How fast turns come, whatever else is under way: what newcomers will wait is told by that. Those that need not wait count as no time.
void Scheduler::note_begins(int64_t count, double time) {
  if (count > 0) {
    const double weight = std::min(1.0, static_cast<double>(count) / kMeanOfBegins);
    const double each = last_begin_ < 0 ? 0 : (time - last_begin_) / static_cast<double>(count);
    begin_seconds_ += weight * (std::min(each, limits_.wait_seconds) - begin_seconds_);
  }
  if (newcomers_ == 0)
    last_begin_ = -1;
  else if (count > 0 || last_begin_ < 0)
    last_begin_ = time;
}

// The sentence is under way from now on; its request goes to the end of the row if it has more.
Scheduler::Sentence Scheduler::start(std::list<int64_t>::iterator turn, size_t index, int worker, double time) {
  const int64_t number = *turn, key = next_key_++;
  Request& request = requests_.at(number);
  if (!request.begun) {
    request.begun = true, --newcomers_;
    metrics_.observe("starling_queue_wait_seconds", "", time - request.submitted);
  }
  ++request.under_way;
  --waiting_, waiting_rows_ -= request.options.beam;
  if (request.waiting.empty())
    turns_.erase(turn);
  else
    turns_.splice(turns_.end(), turns_, turn);
  std::string& text = request.sentences[index];
  running_[key] = {number, index, worker, text};
  return {key, std::move(text), request.options};
}

Scheduler::Work Scheduler::take(int worker, int64_t rows, const std::function<double()>& now, bool wait) {
  std::unique_lock lock(mutex_);
  rows_[worker] = rows;
  const auto dropped = [&] { return dropped_.contains(worker); };
  if (rows == 0 && wait) {
    ++idle_;
    changed_.wait(lock, [&] { return !turns_.empty() || closed_ || dropped(); });
    --idle_;
  }
  Work work;
  if (dropped()) work.drop = std::move(dropped_[worker]), dropped_.erase(worker);
  if (limits_.whole_batches && rows > 0) return work;
  work.stop = closed_ && turns_.empty() && rows == 0;
  // Its share of all that is under way or waits: what is more than that is for the others, who have less.
  double share = static_cast<double>(waiting_rows_);
  for (const auto& [other, others] : rows_) share += static_cast<double>(others);
  share /= static_cast<double>(rows_.size());
  const double time = now();
  const int64_t newcomers = newcomers_;
  int64_t bytes = 0;
  std::optional<size_t> length;  // of the first, which a whole batch's others are near: it ends when its longest sentence does
  for (bool more = true; more && static_cast<double>(rows) < share;) {
    more = false;
    size_t looked = 0;
    for (auto turn = turns_.begin(); turn != turns_.end() && looked < kLook; ++turn, ++looked) {
      Request& request = requests_.at(*turn);
      const bool first = rows == 0;  // must go on, however large it is
      const auto sentence = !first && has_its_share(request) ? request.waiting.end() : choose(request.waiting, length);
      if (sentence == request.waiting.end()) continue;
      const auto [size, index] = *sentence;
      if (!first && (rows + request.options.beam > limits_.rows || (bytes > 0 && bytes + static_cast<int64_t>(size) > limits_.join_bytes)))
        break;
      rows += request.options.beam, bytes += static_cast<int64_t>(size);
      if (limits_.whole_batches && !length) length = size;
      request.waiting.erase(sentence);
      work.join.push_back(start(turn, index, worker, time));
      more = true;
      break;
    }
  }
  rows_[worker] = rows;
  note_begins(newcomers - newcomers_, time);
  const bool others = !turns_.empty() && idle_ > 0;
  lock.unlock();
  if (others) changed_.notify_one();
  return work;
}

void Scheduler::finish(int64_t key, Candidates translations) {
  std::unique_lock lock(mutex_);
  const auto found = running_.find(key);
  if (found == running_.end()) return;
  const Running sentence = std::move(found->second);
  running_.erase(found);
  Request& request = requests_.at(sentence.request);
  --request.under_way;
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
  return waiting_;
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
