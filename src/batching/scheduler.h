// Decides which sentences are translated next, by which worker and in which batch. Nothing waits for a batch to fill: a worker takes the
// sentences that are due, up to its share. Requests take turns, a sentence each, so that large and small requests advance side by side and
// none starves. Very long sentences have a lane of their own: their steps are slow and they end late, so a few of them would otherwise
// occupy all rows and block everybody else. Time is an argument, so tests need no clock.
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
#include "batching/cache.h"
#include "batching/events.h"
#include "decode/search.h"

namespace starling {

struct SchedulerLimits {
  int64_t queue_sentences = 10000;  // limit on waiting sentences; a request that would exceed it is refused
  double wait_seconds = 5;          // limit on the wait for a turn; a request that would wait longer is refused
  int64_t rows = 32;                // hypotheses that a worker extends in one step
  int64_t join_bytes = 4096;        // bytes of sentences that join in one step, since sentences in progress wait while these are encoded
  bool whole_batches = false;       // disables joining sentences in progress, to measure what it gains
  int64_t cache_bytes = 64 << 20;
};

// Thrown when the queue is full.
struct QueueFull : Error {
  QueueFull(const std::string& message, int seconds) : Error(message), retry_seconds(seconds) {}
  int retry_seconds;  // seconds after which to try again
};

// How a sentence is given: as text, or as pieces of the source vocabulary with spaces between them.
enum class SentenceForm : uint8_t { text, pieces };

// A sentence, its best translation, and the prefix with which it was translated.
struct TranslationSample {
  std::string source, translation, source_prefix;
};

// Reports to a request before its end, from workers' threads, never with a lock held; `sentence` is the index in the request.
struct SentenceListeners {
  // For a beam of 1: the tokens of what is not cached, as they come. Returns whether to go on.
  std::function<bool(size_t sentence, const StepToken&)> token{};
  // Each sentence as it ends, perhaps after `done`; the sentences are then begun in their order, except in whole batches.
  std::function<void(size_t sentence, const Candidates& translations)> sentence{};
};

class Scheduler {
 public:
  enum class End { done, expired, failed };
  struct Outcome {
    End end = End::done;
    std::vector<Candidates> translations;  // by sentence, if done
    std::string error;                     // if failed
    std::exception_ptr cause = {};         // likewise
  };
  using Done = std::function<void(Outcome)>;
  enum Lane : uint8_t { ordinary, lengthy };
  static constexpr size_t kLanes = 2;
  // Sentences of at least this many bytes are lengthy.
  static constexpr size_t kLengthy = 600;
  // Hypotheses in progress in each lane.
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
    SentenceForm form = SentenceForm::text;
    OnToken on_token{};
  };
  // What a worker must do before its next step.
  struct Work {
    std::vector<Sentence> join;
    std::vector<int64_t> drop;  // sentences that nobody waits for any more
    bool stop = false;          // nothing is left and nothing will come
  };

  Scheduler(const SchedulerLimits& limits, BatchingEvents& events) : limits_(limits), events_(events), cache_(limits.cache_bytes) {}

  // Submits a request. `done` is called once with all its translations, never with a lock held, and within this call only if nothing needs
  // translating. Returns the number for cancel(). Throws QueueFull if the request does not fit.
  int64_t submit(std::vector<std::string> sentences, const SearchOptions& options, double now, double deadline, Done done,
                 SentenceForm form = SentenceForm::text, SentenceListeners listeners = {});
  // Drops the request without calling `done`. Unknown numbers are ignored.
  void cancel(int64_t request);
  // Ends the requests whose deadline has passed.
  void expire(double now);

  // Returns what worker `worker`, which has `rows` hypotheses in progress, does next. If it has none and `wait` is set, waits for work;
  // `now` is called after that.
  Work take(int worker, Rows rows, const std::function<double()>& now, bool wait);
  // Reports a translated sentence; sentences dropped in the meantime are ignored.
  void finish(int64_t key, Candidates translations);
  // Ends the requests of all sentences that the worker had in progress, which are lost.
  void fail(int worker, const std::string& error, std::exception_ptr cause = {});

  // From now on workers stop as soon as nothing is left.
  void close();

  int64_t queued() const;    // waiting sentences
  int64_t requests() const;  // unanswered requests
  bool idle() const;         // no sentence waits, and workers have dropped what was cancelled
  int64_t cache_bytes() const;
  // Returns some recently translated sentences, to check whether another model translates alike.
  std::vector<TranslationSample> samples() const;

 private:
  struct Request {
    double submitted, deadline;
    SearchOptions options;
    std::vector<std::string> sentences;  // waiting sentences; the others have been moved out
    std::vector<Candidates> translations;
    std::vector<std::string> keys;  // cache keys
    size_t missing = 0;             // translations still missing
    struct InLane {
      // Bytes and index of waiting sentences; where they are begun in their order, how many stand behind and the index.
      std::set<std::pair<size_t, size_t>> waiting;
      bool newcomer = false;  // has sentences, none of which has begun
    };
    std::array<InLane, kLanes> lanes{};
    int64_t under_way = 0;  // sentences
    Done done;
    SentenceForm form = SentenceForm::text;
    SentenceListeners listeners;
  };
  struct LaneState {
    std::list<int64_t> turns;  // requests with waiting sentences, the next one first
    int64_t waiting_rows = 0;  // sum of the beams of waiting sentences
    int64_t newcomers = 0;     // requests of which no sentence has begun
    double begin_seconds = 0;  // running mean of the time between two requests that begin
    double last_begin = -1;    // since when newcomers have waited for the next turn; -1: there are none
  };
  struct Running {
    int64_t request;
    size_t index;
    int worker;
    std::string text;
  };
  Request forget(int64_t request);  // removes the request and its waiting and running sentences
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
  BatchingEvents& events_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  TranslationCache cache_;
  std::unordered_map<int64_t, Request> requests_;
  std::array<LaneState, kLanes> lanes_;
  std::unordered_map<int64_t, Running> running_;           // by key
  std::unordered_map<int, std::vector<int64_t>> dropped_;  // by worker
  std::map<int, Rows> rows_;                               // by worker, as of its last call
  std::vector<TranslationSample> samples_;                 // ring buffer
  size_t next_sample_ = 0;
  int64_t waiting_ = 0;        // sentences
  double ordinary_at_ = -1e9;  // when the last ordinary sentence arrived
  int64_t next_request_ = 1, next_key_ = 1;
  int idle_ = 0;  // waiting workers
  bool closed_ = false;
};

}  // namespace starling
