#include "comm/nccl/card_watch.h"

#include <chrono>

#include "base/start_threads.h"
#include "comm/nccl/card_lateness.h"

namespace starling::STARLING_CUDA {
namespace {

using namespace std::chrono_literals;

constexpr auto kLook = 20ms;  // between looks at what is under way

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

CardOperation::CardOperation(std::shared_ptr<CardWatch> watch, About about) : watch_(std::move(watch)), about_(std::move(about)) {
  ready_ = make_event(), over_ = make_event();
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

size_t CardOperation::wait_any(std::span<Operation* const> operations, double deadline_s) { return first_done(operations, deadline_s); }

size_t first_done(std::span<Operation* const> operations, double deadline_s) {
  for (const int64_t begin = now_ns();; std::this_thread::sleep_for(100us)) {
    for (size_t i = 0; i < operations.size(); ++i)
      if (operations[i]->done()) return i;
    if (1e-9 * static_cast<double>(now_ns() - begin) > deadline_s)
      throw PeerError(
          fmt::format("none of {} operations of cards has ended within {:g} s; raise strategy.deadline-seconds, or look at the "
                      "other ranks' logs",
                      operations.size(), deadline_s));
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

void CardWatch::begin(const std::shared_ptr<CardOperation>& operation) {
  const std::lock_guard lock(mutex_);
  if (operation->about_.counted) operation->number_ = ++progress_.enqueued;
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
  operation.waited_for_since_ns_ = now_ns(), operation.deadline_s_ = deadline_s;
}

void CardWatch::add(ncclComm_t comm) { comms_.insert(comm); }

bool CardWatch::remove(ncclComm_t comm) { return comms_.erase(comm) > 0; }

void CardWatch::fail(const std::exception_ptr& error) {
  device_->fail(error);
  const std::lock_guard lock(nccl_);
  // All at once: what one of them is to end may wait for another.
  ncclGroupStart();
  for (ncclComm_t comm : comms_) ncclCommAbort(comm);
  ncclGroupEnd();
  comms_.clear();
}

void CardWatch::main() {
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopped_ || !under_way_.empty(); });
      if (!stopped_) changed_.wait_for(lock, kLook, [&] { return stopped_; });
      if (stopped_) return;
    }
    try {
      device_->stream();  // this thread's card
      look();
    } catch (...) {  // there is nothing to be watched any more
      return fail(std::current_exception());
    }
  }
}

void CardWatch::look() {
  std::vector<std::shared_ptr<CardOperation>> over;  // let go of without the mutex
  std::shared_ptr<CardOperation> late;
  CardProgress progress;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& operation : under_way_) {
      if (!operation->reached_ && (operation->reached_ = passed(operation->ready_))) progress_.reached += operation->about_.counted;
      if (operation->started_ && passed(operation->over_)) over.push_back(operation), progress_.completed += operation->about_.counted;
    }
    for (const auto& operation : over) std::erase(under_way_, operation);
    for (const auto& operation : under_way_)
      if (!late && operation->waited_for_since_ns_ > 0 &&
          now_ns() - operation->waited_for_since_ns_ > static_cast<int64_t>(1e9 * operation->deadline_s_))
        late = operation;
    progress = progress_;
  }
  all_.note(progress);
  if (late) throw PeerError(trouble(*late, progress));
  const std::lock_guard lock(nccl_);
  for (ncclComm_t comm : comms_) {
    ncclResult_t state = ncclSuccess;
    NCCL_CALL(CommGetAsyncError, comm, &state);
    nccl_check(state, "a collective of cards");
  }
}

std::string CardWatch::trouble(const CardOperation& operation, const CardProgress& own) {
  CardLateness l;
  l.operation = operation.about_.what, l.number = operation.number_, l.members = *operation.about_.members, l.self = rank_,
  l.hosts = hosts_;
  {
    const std::lock_guard lock(mutex_);
    l.waited_s = 1e-9 * static_cast<double>(now_ns() - operation.waited_for_since_ns_);
  }
  l.news = all_.news();
  if (!l.news.empty()) l.news[static_cast<size_t>(rank_)].card = own;
  return describe(l);
}

}  // namespace starling::STARLING_CUDA
