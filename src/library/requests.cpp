#include "library/requests.h"

#include <limits>
#include <utility>

#include "batching/workers.h"
#include "library/stopping.h"

namespace starling {

int64_t Requests::submit(std::vector<std::string> sentences, const SearchOptions& search, SentenceForm form, Scheduler::Done done,
                         SentenceListeners listeners) {
  const auto asked = std::make_shared<Asked>();
  asked->done = std::move(done);
  const int64_t number = ++last_;
  const auto answer = [this, asked, number](Scheduler::Outcome outcome) {
    if (asked->answered.exchange(true)) return;
    {
      const std::lock_guard lock(mutex_);
      asked_.erase(number);
    }
    asked->done(std::move(outcome));
  };
  const int64_t in_scheduler = scheduler_.submit(std::move(sentences), search, serve_seconds(), std::numeric_limits<double>::infinity(),
                                                 answer, form, std::move(listeners));
  const std::lock_guard lock(mutex_);
  asked->in_scheduler = in_scheduler;
  if (!asked->answered) asked_.emplace(number, asked);
  return number;
}

void Requests::give_up(Asked& asked) {
  scheduler_.cancel(asked.in_scheduler);
  if (!asked.answered.exchange(true)) asked.done({Scheduler::End::failed, {}, "cancelled", std::make_exception_ptr(cancelled())});
}

void Requests::cancel(int64_t number) {
  std::shared_ptr<Asked> asked;
  {
    const std::lock_guard lock(mutex_);
    const auto found = asked_.find(number);
    if (found == asked_.end()) return;
    asked = std::move(found->second);
    asked_.erase(found);
  }
  give_up(*asked);
}

void Requests::cancel_all() {
  std::map<int64_t, std::shared_ptr<Asked>> all;
  {
    const std::lock_guard lock(mutex_);
    all.swap(asked_);
  }
  for (const auto& [number, asked] : all) give_up(*asked);
}

int64_t Requests::count() const {
  const std::lock_guard lock(mutex_);
  return std::ssize(asked_);
}

}  // namespace starling
