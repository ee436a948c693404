// What callers of a translator have asked for and not been given yet, so that it can be given up.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "batching/scheduler.h"

namespace starling {

class Requests {
 public:
  // The scheduler must outlive it.
  explicit Requests(Scheduler& scheduler) : scheduler_(scheduler) {}

  // Submits sentences. `done` is called once, from a worker's thread, from that of cancel(), or from this one if there is nothing to
  // translate. Returns a number for cancel().
  int64_t submit(std::vector<std::string> sentences, const SearchOptions& search, SentenceForm form, Scheduler::Done done,
                 SentenceListeners listeners = {});
  // Gives up one or all requests: they end as failed, with v0::Error as the cause. Unknown numbers are ignored.
  void cancel(int64_t number);
  void cancel_all();
  int64_t count() const;  // not answered

 private:
  struct Asked {
    Scheduler::Done done;
    int64_t in_scheduler = 0;
    std::atomic<bool> answered = false;
  };
  void give_up(Asked& asked);

  Scheduler& scheduler_;
  mutable std::mutex mutex_;
  std::map<int64_t, std::shared_ptr<Asked>> asked_;  // by number
  std::atomic<int64_t> last_ = 0;
};

}  // namespace starling
