#include "comm/nccl/card_watch.h"

#include <algorithm>
#include <chrono>

#include "base/start_threads.h"
#include "comm/nccl/card_lateness.h"

namespace starling::STARLING_CUDA {
namespace {

using namespace std::chrono_literals;

constexpr auto kLook = 20ms;  // between looks at what is under way
std::atomic<bool> any_ended = false;

int64_t now_ns() { return std::chrono::steady_clock::now().time_since_epoch() / 1ns; }

cudaEvent_t make_event() {
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "an event");
  return event;
}

bool passed(cudaEvent_t event) {
  const cudaError_t result = cudaEventQuery(event);
  if (result != cudaErrorNotReady) check(result, "the work so far");
  return result == cudaSuccess;
}

}  // namespace

bool nccl_was_ended() { return any_ended; }

CardOperation::CardOperation(std::shared_ptr<CardWatch> watch, About about) : watch_(std::move(watch)), about_(std::move(about)) {
  ready_ = make_event();
  over_ = make_event();
}

CardOperation::~CardOperation() { cudaEventDestroy(ready_), cudaEventDestroy(over_); }

bool CardOperation::done() {
  watch_->require_sound();
  return passed(over_);
}

void CardOperation::wait(double deadline_s) {
  watch_->require_sound();
  check(cudaStreamWaitEvent(watch_->device().stream(), over_, 0), "an event");
  watch_->wait_for(*this, deadline_s);
}

std::string CardOperation::late(double waited_s) { return watch_->trouble(*this, waited_s); }

size_t CardWait::wait_any(std::span<Operation* const> operations, double deadline_s) {
  for (const int64_t begin = now_ns();; std::this_thread::sleep_for(100us)) {
    for (size_t i = 0; i < operations.size(); ++i)
      if (operations[i]->done()) return i;
    const double waited_s = 1e-9 * static_cast<double>(now_ns() - begin);
    if (waited_s <= deadline_s) continue;
    std::string text = static_cast<CardWait*>(operations.front())->late(waited_s);
    if (operations.size() > 1) text += fmt::format("; nor has any of {} other operations of cards ended", operations.size() - 1);
    throw PeerError(text);
  }
}

CardWatch::CardWatch(std::shared_ptr<CudaDevice> device, Communicator& all) : device_(std::move(device)), all_(all), rank_(all.rank()) {
  for (int r = 0; r < all.size(); ++r) hosts_.push_back(all.host(r));
  thread_ = start_thread("card watch", [this] { main(); });
}

CardWatch::~CardWatch() { stop(); }

void CardWatch::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
  device_->stream();
  for (const auto& operation : under_way_) cudaEventSynchronize(operation->over());
  under_way_.clear();
}

CardPlaces CardWatch::places() const {
  const std::lock_guard lock(mutex_);
  CardPlaces p{rank_};
  for (size_t i = 0; i < counts_.size(); ++i) {
    if (!purposes_[i].empty()) p.taken |= uint32_t{1} << i;
    p.counted = std::max(p.counted, counts_[i].enqueued);
  }
  return p;
}

void CardWatch::take(const CardGroup& group, int64_t counted) {
  const std::lock_guard lock(mutex_);
  const auto others = std::count_if(purposes_.begin(), purposes_.end(), [](const std::string& purpose) { return !purpose.empty(); });
  int version = 0;
  if (ncclGetVersion(&version) == ncclSuccess)
    if (const std::string why = why_too_old(version, others + 1); !why.empty()) throw ConfigError(why);
  counts_[group.place] = {counted, counted, counted};
  purposes_[group.place] = group.purpose;
}

void CardWatch::give_back(const CardGroup& group) {
  std::vector<std::shared_ptr<CardOperation>> over;  // let go of without the mutex
  const std::lock_guard lock(mutex_);
  for (const auto& operation : under_way_)
    if (operation->about_.group->place == group.place) over.push_back(operation);
  for (const auto& operation : over) std::erase(under_way_, operation);
  purposes_[group.place].clear();
}

void CardWatch::begin(const std::shared_ptr<CardOperation>& operation) {
  const std::lock_guard lock(mutex_);
  operation->number_ = ++counts_[operation->about_.group->place].enqueued;
  under_way_.push_back(operation);
  changed_.notify_all();
}

void CardWatch::started(CardOperation& operation) {
  const std::lock_guard lock(mutex_);
  operation.started_ = true;
  operation.waited_for_since_ns_ = 0;
}

void CardWatch::wait_for(CardOperation& operation, double deadline_s) {
  const std::lock_guard lock(mutex_);
  operation.waited_for_since_ns_ = now_ns();
  operation.deadline_s_ = deadline_s;
}

void CardWatch::fail(const std::exception_ptr& error) {
  device_->fail(error);
  const std::lock_guard lock(nccl_);
  if (comms_.empty()) return;
  ended_ = any_ended = true;
  // All at once, since the communicator to be ended may wait for another.
  ncclGroupStart();
  for (const auto& [comm, group] : comms_) ncclCommAbort(comm);
  ncclGroupEnd();
  comms_.clear();
}

void CardWatch::main() {
  try {
    watch();
  } catch (...) {  // there is nothing to be watched any more
    fail(std::current_exception());
  }
}

void CardWatch::watch() {
  for (;; look()) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return stopped_ || !under_way_.empty(); });
    if (!stopped_) changed_.wait_for(lock, kLook, [&] { return stopped_; });
    if (stopped_) return;
  }
}

void CardWatch::look() {
  device_->stream();                                 // this thread's card
  std::vector<std::shared_ptr<CardOperation>> over;  // let go of without the mutex
  std::shared_ptr<CardOperation> late;
  double waited_s = 0;
  CardCounts counts;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& operation : under_way_) {
      CardProgress& group = counts_[operation->about_.group->place];
      if (!operation->reached_ && (operation->reached_ = passed(operation->ready_))) ++group.reached;
      if (operation->started_ && passed(operation->over_)) {
        over.push_back(operation);
        ++group.completed;
      }
    }
    for (const auto& operation : over) std::erase(under_way_, operation);
    for (const auto& operation : under_way_) {
      const double s = 1e-9 * static_cast<double>(now_ns() - operation->waited_for_since_ns_);
      if (!late && operation->waited_for_since_ns_ > 0 && s > operation->deadline_s_) {
        late = operation;
        waited_s = s;
      }
    }
    counts = counts_;
  }
  all_.note(counts);
  if (late) throw PeerError(trouble(*late, waited_s));
  const std::lock_guard lock(nccl_);
  for (const auto& [comm, group] : comms_) {
    ncclResult_t state = ncclSuccess;
    NCCL_CALL(CommGetAsyncError, comm, &state);
    if (state != ncclSuccess && state != ncclInProgress) throw PeerError(failure(state, *group));
  }
}

std::string CardWatch::trouble(const CardOperation& operation, double waited_s) const {
  CardLateness l;
  const CardGroup& group = *operation.about_.group;
  l.operation = operation.about_.what;
  l.number = operation.number_;
  l.group = group;
  l.self = rank_;
  l.hosts = hosts_;
  l.waited_s = waited_s;
  l.news = all_.news();
  const std::lock_guard lock(mutex_);
  l.purposes = purposes_;
  if (!l.news.empty()) l.news[static_cast<size_t>(rank_)].card = counts_;
  return describe(l);
}

// NCCL reports that a communicator has failed but not in which operation: that is the oldest one that is not over.
std::string CardWatch::failure(ncclResult_t state, const CardGroup& group) const {
  const char* what = "no operation under way";
  {
    const std::lock_guard lock(mutex_);
    const auto oldest = std::find_if(under_way_.begin(), under_way_.end(),
                                     [&](const auto& operation) { return operation->about_.group->place == group.place; });
    if (oldest != under_way_.end()) what = (*oldest)->about_.what;
  }
  std::vector<std::string> others;
  const std::vector<RankNews> news = all_.news();
  for (const int r : group.members)
    if (r != rank_)
      others.push_back(news.empty() ? name(r) : fmt::format("{} (heard of {:.1f} s ago)", name(r), news[static_cast<size_t>(r)].age_s));
  return fmt::format(
      "NCCL has failed in {} of cards ({}) on {}: {} ({}); a rank or a link has gone: look first at the logs of {}, then at "
      "NCCL's messages with NCCL_DEBUG=WARN",
      what, group.purpose, name(), ncclGetErrorString(state), ncclGetLastError(nullptr), fmt::join(others, ", "));
}

}  // namespace starling::STARLING_CUDA
