#include "batching/scheduler.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <set>

namespace starling {
namespace {

constexpr size_t kSamples = 16, kSampleBytes = 400;
constexpr size_t kLook = 256;                  // requests examined to find one that may start another sentence
constexpr double kMeanOfBegins = 64;           // number of requests over which the mean wait is averaged
constexpr double kQuietSeconds = 10;           // after this long without an ordinary sentence, lengthy ones may use most rows
constexpr std::chrono::seconds kQuietLook{1};  // interval at which an idle worker checks for that

using Lengths = std::set<std::pair<size_t, size_t>>;  // bytes and index of sentences

// Returns the longest sentence, because the last ones to begin should not take longest; or, if a length is given, one of similar length.
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

int64_t Scheduler::submit(std::vector<std::string> sentences, const SearchOptions& options, double now, double deadline, Done done,
                          SentenceForm form, SentenceListeners listeners) {
  const size_t count = sentences.size();
  Request request{.submitted = now,
                  .deadline = deadline,
                  .options = options,
                  .sentences = std::move(sentences),
                  .translations = std::vector<Candidates>(count),
                  .done = std::move(done),
                  .form = form,
                  .listeners = std::move(listeners)};
  const std::string key = (form == SentenceForm::pieces ? "pieces " : "") + TranslationCache::key(options);
  for (const std::string& sentence : request.sentences) request.keys.push_back(key + sentence);
  const auto on_sentence = request.listeners.sentence;
  std::vector<std::pair<size_t, Candidates>> told;
  std::unique_lock lock(mutex_);
  for (size_t i = 0; i < count; ++i) {
    const size_t bytes = request.sentences[i].size();
    if (const Candidates* known = cache_.find(request.keys[i])) {
      request.translations[i] = *known;
      if (on_sentence) told.emplace_back(i, *known);
    } else {
      request.lanes[lane_of(bytes)].waiting.emplace(on_sentence && !limits_.whole_batches ? count - i : bytes, i), ++request.missing;
    }
  }
  const auto missing = static_cast<int64_t>(request.missing);
  if (request.missing < count) events_.count("starling_cache_hits_total", "", static_cast<double>(count - request.missing));
  if (missing == 0) {
    lock.unlock();
    for (const auto& [i, translations] : told) on_sentence(i, translations);
    request.done({End::done, std::move(request.translations), ""});
    return 0;
  }
  const bool has_lengthy = !request.lanes[lengthy].waiting.empty();
  double wait = 0;  // until the last of its lanes has begun; an idle worker begins at once with what it may take
  if (!request.lanes[ordinary].waiting.empty() && idle_ == 0) wait = expected_wait(lanes_[ordinary], now);
  if (has_lengthy && (idle_ == 0 || others_come(now))) wait = std::max(wait, expected_wait(lanes_[lengthy], now));
  const auto retry = static_cast<int>(std::clamp(std::ceil(wait), 1.0, 60.0));
  if (waiting_ + missing > limits_.queue_sentences)
    throw QueueFull(fmt::format("{} sentences are waiting already; try again later", waiting_), retry);
  if (wait > limits_.wait_seconds) throw QueueFull(fmt::format("the wait would be {:.1f} s; try again later", wait), retry);
  const int64_t number = next_request_++;
  waiting_ += missing;
  for (size_t lane = 0; lane < kLanes; ++lane) {
    Request::InLane& in = request.lanes[lane];
    if (in.waiting.empty()) continue;
    in.newcomer = true;
    lanes_[lane].waiting_rows += static_cast<int64_t>(in.waiting.size()) * options.widest_beam();
    ++lanes_[lane].newcomers;
    lanes_[lane].turns.push_back(number);
    if (lane == ordinary) ordinary_at_ = now;
  }
  requests_.emplace(number, std::move(request));
  lock.unlock();
  if (missing == 1 && !has_lengthy)  // a lengthy sentence is not for every worker
    changed_.notify_one();
  else
    changed_.notify_all();
  for (const auto& [i, translations] : told) on_sentence(i, translations);
  return number;
}

Scheduler::Request Scheduler::forget(int64_t number) {
  const auto found = requests_.find(number);
  Request request = std::move(found->second);
  requests_.erase(found);
  for (size_t lane = 0; lane < kLanes; ++lane) {
    LaneState& state = lanes_[lane];
    const auto waiting = static_cast<int64_t>(request.lanes[lane].waiting.size());
    waiting_ -= waiting;
    state.waiting_rows -= waiting * request.options.widest_beam();
    if (request.lanes[lane].newcomer && --state.newcomers == 0) state.last_begin = -1;
    if (waiting > 0) state.turns.remove(number);
  }
  std::erase_if(running_, [&](const auto& entry) {
    if (entry.second.request != number) return false;
    dropped_[entry.second.worker].push_back(entry.first);
    return true;
  });
  return request;
}

void Scheduler::cancel(int64_t request) {
  std::optional<Request> forgotten;  // may be large, so it is freed after the lock
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

// While there are other requests, limits a request to a quarter of all rows, so that newcomers can join immediately and their steps are
// shorter than with all rows.
bool Scheduler::has_its_share(const Request& request) const {
  if (request.under_way == 0 || requests_.size() == 1 || limits_.whole_batches) return false;
  const int64_t beam = request.options.widest_beam(), share = limits_.rows * static_cast<int64_t>(rows_.size()) / 4;
  return (request.under_way + 1) * beam > std::max(beam, share);
}

// Estimates how long newcomers wait: from the rate at which turns come, or from how long the present newcomers have already waited for the
// next turn.
double Scheduler::expected_wait(const LaneState& lane, double now) const {
  const double since = lane.newcomers > 0 && lane.last_begin >= 0 ? now - lane.last_begin : 0;
  return std::max(static_cast<double>(lane.newcomers) * lane.begin_seconds, since);
}

// Requests that need not wait count as zero.
void Scheduler::note_begins(LaneState& lane, int64_t count, double time) const {
  if (count > 0) {
    const double weight = std::min(1.0, static_cast<double>(count) / kMeanOfBegins);
    const double each = lane.last_begin < 0 ? 0 : (time - lane.last_begin) / static_cast<double>(count);
    lane.begin_seconds += weight * (std::min(each, limits_.wait_seconds) - lane.begin_seconds);
  }
  if (lane.newcomers == 0)
    lane.last_begin = -1;
  else if (count > 0 || lane.last_begin < 0)
    lane.last_begin = time;
}

// Whether ordinary sentences have arrived recently, so that more are expected.
bool Scheduler::others_come(double now) const { return now - ordinary_at_ < kQuietSeconds; }

// Returns how many of a worker's rows a lane may use. Lengthy sentences always leave room for others, and most of the rows while others are
// expected.
int64_t Scheduler::most_rows(Lane lane, int64_t beam, double now) const {
  if (lane == ordinary) return limits_.rows;
  const int64_t quarter = limits_.rows / 4;
  return std::max(beam, others_come(now) ? quarter : limits_.rows - quarter);
}

// Whether the lane has work for the worker. Encoding a lengthy sentence takes as long as many steps of others. So while others are
// expected, half of the workers, if there are several, leave lengthy sentences alone.
bool Scheduler::may_take(Lane lane, int worker, double now) const {
  if (lanes_[lane].turns.empty()) return false;
  return lane == ordinary || worker < std::max<int>(1, static_cast<int>(rows_.size()) / 2) || !others_come(now);
}

// Starts a sentence; its request goes to the end of the queue if it has more.
Scheduler::Sentence Scheduler::start(Lane lane, std::list<int64_t>::iterator turn, size_t index, int worker, double time) {
  const int64_t number = *turn, key = next_key_++;
  Request& request = requests_.at(number);
  Request::InLane& in = request.lanes[lane];
  LaneState& state = lanes_[lane];
  if (in.newcomer) {
    in.newcomer = false;
    --state.newcomers;
    events_.observe("starling_queue_wait_seconds", "", time - request.submitted);
  }
  ++request.under_way;
  --waiting_;
  state.waiting_rows -= request.options.widest_beam();
  if (in.waiting.empty())
    state.turns.erase(turn);
  else
    state.turns.splice(state.turns.end(), state.turns, turn);
  std::string& text = request.sentences[index];
  running_[key] = {number, index, worker, text};
  OnToken on_token;
  if (request.listeners.token) on_token = [told = request.listeners.token, index](const StepToken& token) { return told(index, token); };
  return {key, std::move(text), request.options, lane, request.form, std::move(on_token)};
}

// Adds to `work` the sentences of a lane that the worker takes. `rows` are the worker's rows, and are updated.
void Scheduler::join(Lane lane, int worker, Rows& rows, double time, Work& work) {
  LaneState& state = lanes_[lane];
  // The worker's share of all rows in progress and waiting; the rest is left to workers that have less.
  double share = static_cast<double>(state.waiting_rows + rows.lanes[lane]);
  for (const auto& [other, others] : rows_)
    if (other != worker) share += static_cast<double>(others.lanes[lane]);
  share /= static_cast<double>(rows_.size());
  const int64_t newcomers = state.newcomers;
  int64_t bytes = 0;
  std::optional<size_t> length;  // of the first sentence; others in a whole batch must be similar: it ends with its longest
  for (bool more = true; more && static_cast<double>(rows.lanes[lane]) < share;) {
    more = false;
    size_t looked = 0;
    for (auto turn = state.turns.begin(); turn != state.turns.end() && looked < kLook; ++turn, ++looked) {
      Request& request = requests_.at(*turn);
      auto& waiting = request.lanes[lane].waiting;
      const bool first = rows.all() == 0;  // must be accepted, however large it is
      const auto sentence = !first && has_its_share(request) ? waiting.end() : choose(waiting, length);
      if (sentence == waiting.end()) continue;
      const size_t index = sentence->second, size = request.sentences[index].size();
      const int64_t beam = request.options.widest_beam();
      if (!first && (rows.all() + beam > limits_.rows || rows.lanes[lane] + beam > most_rows(lane, beam, time) ||
                     (bytes > 0 && bytes + static_cast<int64_t>(size) > limits_.join_bytes)))
        break;
      rows.lanes[lane] += beam;
      bytes += static_cast<int64_t>(size);
      if (limits_.whole_batches && !length) length = size;
      waiting.erase(sentence);
      work.join.push_back(start(lane, turn, index, worker, time));
      more = lane == ordinary;  // encoding a single lengthy sentence takes long enough
      break;
    }
  }
  note_begins(state, newcomers - state.newcomers, time);
}

Scheduler::Work Scheduler::take(int worker, Rows rows, const std::function<double()>& now, bool wait) {
  std::unique_lock lock(mutex_);
  rows_[worker] = rows;
  const auto dropped = [&] { return dropped_.contains(worker); };
  if (rows.all() == 0 && wait) {
    ++idle_;
    const auto something = [&] { return closed_ || dropped() || may_take(ordinary, worker, now()) || may_take(lengthy, worker, now()); };
    while (!changed_.wait_for(lock, kQuietLook, something)) {
    }
    --idle_;
  }
  Work work;
  if (dropped()) {
    work.drop = std::move(dropped_[worker]);
    dropped_.erase(worker);
  }
  if (limits_.whole_batches && rows.all() > 0) return work;
  work.stop = closed_ && waiting_ == 0 && rows.all() == 0;
  const double time = now();
  for (const Lane lane : {ordinary, lengthy})
    if (may_take(lane, worker, time)) join(lane, worker, rows, time, work);
  rows_[worker] = rows;
  const bool one = !lanes_[ordinary].turns.empty() && idle_ > 0, all = !lanes_[lengthy].turns.empty() && idle_ > 0 && !others_come(time);
  lock.unlock();
  if (all)
    changed_.notify_all();
  else if (one)
    changed_.notify_one();
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
  if (!translations.empty() && sentence.text.size() <= kSampleBytes && request.form == SentenceForm::text) {
    if (samples_.size() < kSamples) samples_.emplace_back();
    samples_[next_sample_++ % kSamples] = {sentence.text, translations.front().text, request.options.source_prefix};
  }
  const auto on_sentence = request.listeners.sentence;
  Candidates told;
  if (on_sentence) told = translations;
  request.translations[sentence.index] = std::move(translations);
  events_.count("starling_sentences_total");
  std::optional<Request> ended;
  if (--request.missing == 0) {
    ended = std::move(request);
    requests_.erase(sentence.request);
  }
  lock.unlock();
  if (on_sentence) on_sentence(sentence.index, told);
  if (ended) ended->done({End::done, std::move(ended->translations), ""});
}

void Scheduler::fail(int worker, const std::string& error, std::exception_ptr cause) {
  std::vector<Request> lost;
  {
    const std::lock_guard lock(mutex_);
    std::set<int64_t> numbers;
    for (const auto& [key, sentence] : running_)
      if (sentence.worker == worker) numbers.insert(sentence.request);
    for (const int64_t number : numbers) lost.push_back(forget(number));
    dropped_.erase(worker);
  }
  for (Request& request : lost) request.done({End::failed, {}, error, cause});
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

bool Scheduler::idle() const {
  const std::lock_guard lock(mutex_);
  return waiting_ == 0 && running_.empty() && dropped_.empty();
}

std::vector<TranslationSample> Scheduler::samples() const {
  const std::lock_guard lock(mutex_);
  return samples_;
}

}  // namespace starling
