// Which sentence is translated next, by whom, and together with which. Nothing waits for company: a worker takes the sentences whose turn
// it is, as many as are its share. Requests take turns, a sentence each, so that one with a thousand sentences and those with one advance
// side by side, and none waits for ever. Very long sentences have a lane of their own: their steps take long, and they end late, so that a
// few would otherwise have all rows and everybody else would wait until they end. Time is an argument: tests need no clock.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "decode/search.h"
#include "serve/cache.h"
#include "serve/metrics.h"

namespace starling {

struct SchedulerLimits {
  int64_t queue_sentences = 10000;  // that wait; a request that would make more is refused
  double wait_seconds = 5;          // until its turn; a request that would wait longer is refused
  int64_t rows = 32;                // hypotheses that a worker extends at the same time
  int64_t join_bytes = 4096;        // of sentences that join at once, since those under way wait while they are read
  bool whole_batches = false;       // nothing joins what is under way: to see what joining is worth
  int64_t cache_bytes = 64 << 20;
};

// The queue is full.
struct QueueFull : Error {
  QueueFull(const std::string& message, int seconds) : Error(message), retry_seconds(seconds) {}
  int retry_seconds;  // after which it is worth trying again
};

class Scheduler {
 public:
  enum class End { done, expired, failed };
  struct Outcome {
    End end = End::done;
    std::vector<Candidates> translations;  // of each sentence, when done
    std::string error;                     // when failed
  };
  using Done = std::function<void(Outcome)>;

  enum Lane : uint8_t { ordinary, lengthy };
  static constexpr size_t kLanes = 2;
  // Bytes of a sentence from which on it is lengthy.
  static constexpr size_t kLengthy = 600;
  // Hypotheses under way in each lane.
  struct Rows {
    Rows(int64_t of_ordinary = 0, int64_t of_lengthy = 0) : lanes{of_ordinary, of_lengthy} {}
    int64_t all() const { return lanes[ordinary] + lanes[lengthy]; }
    std::array<int64_t, kLanes> lanes;
  };

  struct Sentence {
    int64_t key;
    std::string text;
    SearchOptions options;
    Lane lane = ordinary;
  };
  // What a worker does before its next step.
  struct Work {
    std::vector<Sentence> join;
    std::vector<int64_t> drop;  // nobody waits for these any more
    bool stop = false;          // there is nothing and will be nothing
  };

  Scheduler(const SchedulerLimits& limits, Metrics& metrics) : limits_(limits), metrics_(metrics), cache_(limits.cache_bytes) {}

  // A request: its sentences, and what to call once with all their translations (not within this call unless nothing must be translated;
  // never while a lock is held). Gives its number for cancel. QueueFull when it does not fit.
  int64_t submit(std::vector<std::string> sentences, const SearchOptions& options, double now, double deadline, Done done);
  // Nobody waits for the request any more: it is forgotten without a call. One that is not there any more is fine.
  void cancel(int64_t request);
  // Ends the requests whose deadline has come.
  void expire(double now);

  // What worker `worker`, which has `rows` hypotheses under way, does next. Waits for work if it has none and `wait`; `now` is asked
  // after that.
  Work take(int worker, Rows rows, const std::function<double()>& now, bool wait);
  // A sentence was translated; those that were dropped meanwhile are ignored.
  void finish(int64_t key, Candidates translations);
  // What the worker had under way is lost: its requests end.
  void fail(int worker, const std::string& error);

  // From now on workers stop when nothing is left.
  void close();

  int64_t queued() const;    // sentences that wait
  int64_t requests() const;  // that are not answered yet
  int64_t cache_bytes() const;
  // Some of the sentences translated last, with their best translations: to see whether another model translates alike.
  std::vector<std::pair<std::string, std::string>> samples() const;

 private:
  struct Request {
    double submitted, deadline;
    SearchOptions options;
    std::vector<std::string> sentences;  // those that wait; the others have been moved away
    std::vector<Candidates> translations;
    std::vector<std::string> keys;  // in the cache
    size_t missing = 0;             // translations
    struct InLane {
      std::set<std::pair<size_t, size_t>> waiting;  // bytes and index of the sentences that wait
      bool newcomer = false;                        // has sentences, and none of them has begun
    };
    std::array<InLane, kLanes> lanes{};
    int64_t under_way = 0;  // sentences
    Done done;
  };
  struct LaneState {
    std::list<int64_t> turns;  // requests with sentences that wait; the first is the next
    int64_t waiting_rows = 0;  // beams of the sentences that wait
    int64_t newcomers = 0;     // requests of which none has begun
    double begin_seconds = 0;  // between two that begin: a running mean
    double last_begin = -1;    // since when newcomers have waited for the next turn; -1: none does
  };
  struct Running {
    int64_t request;
    size_t index;
    int worker;
    std::string text;
  };
  Request forget(int64_t request);  // with its sentences, some of which wait or are under way
  bool has_its_share(const Request& request) const;
  Lane lane_of(size_t bytes) const { return bytes >= kLengthy && !limits_.whole_batches ? lengthy : ordinary; }
  bool others_come(double now) const;
  bool may_take(Lane lane, int worker, double now) const;
  double expected_wait(const LaneState& lane, double now) const;
  void note_begins(LaneState& lane, int64_t count, double time) const;
  int64_t most_rows(Lane lane, int64_t beam, double now) const;
  void join(Lane lane, int worker, Rows& rows, double time, Work& work);
  Sentence start(Lane lane, std::list<int64_t>::iterator turn, size_t index, int worker, double time);

  const SchedulerLimits limits_;
  Metrics& metrics_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  TranslationCache cache_;
  std::unordered_map<int64_t, Request> requests_;
  std::array<LaneState, kLanes> lanes_;
  std::unordered_map<int64_t, Running> running_;              // by key
  std::unordered_map<int, std::vector<int64_t>> dropped_;     // by worker
  std::map<int, Rows> rows_;                                  // by worker, when it asked last
  std::vector<std::pair<std::string, std::string>> samples_;  // a ring
  size_t next_sample_ = 0;
  int64_t waiting_ = 0;        // sentences
  double ordinary_at_ = -1e9;  // when an ordinary sentence came last
  int64_t next_request_ = 1, next_key_ = 1;
  int idle_ = 0;  // workers that wait
  bool closed_ = false;
};

}  // namespace starling
