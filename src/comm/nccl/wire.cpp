#include "comm/nccl/wire.h"

#include <algorithm>
#include <cstring>
#include <exception>

namespace starling::STARLING_CUDA {
namespace {

using namespace std::chrono_literals;

// Between looks at a call in progress, which mostly takes some microseconds: so many without a pause first.
constexpr int kLooks = 1000;
constexpr auto kPoll = 50us;
constexpr auto kClosing = 60s;  // for the other ranks to be through, too

std::chrono::steady_clock::time_point seconds_from_now(double s) {
  return std::chrono::steady_clock::now() +
         std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(std::min(s, 1e9)));
}

}  // namespace

std::string new_name() {
  ncclUniqueId id{};
  NCCL_CALL(GetUniqueId, &id);
  return {id.internal, sizeof id.internal};
}

Wire::Wire(std::shared_ptr<CardWatch> watch, int rank, int size, const std::string& name, double deadline_s) : watch_(std::move(watch)) {
  ncclUniqueId id{};
  CHECK(name.size() == sizeof id.internal, "a name of {} bytes", name.size());
  std::memcpy(id.internal, name.data(), name.size());
  watch_->device().stream();  // the card, for this thread
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "a stream");
  try {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclResult_t result = ncclSuccess;
    {
      const std::lock_guard lock(watch_->nccl());
      watch_->require_sound();
      result = ncclCommInitRankConfig(&nccl_, size, id, rank, &config);
      if (nccl_) watch_->add(nccl_);
      nccl_check(result, "ncclCommInitRankConfig");
    }
    result = settled(result, seconds_from_now(deadline_s));
    if (result == ncclInProgress)
      throw PeerError(
          fmt::format("the cards of {} ranks could not be connected within {:g} s; look at the links between them, and at NCCL's "
                      "messages with NCCL_DEBUG=INFO",
                      size, deadline_s));
    nccl_check(result, "ncclCommInitRankConfig");
  } catch (...) {
    close(true);
    throw;
  }
}

Wire::~Wire() { close(std::uncaught_exceptions() > 0); }

ncclResult_t Wire::settled(ncclResult_t result, Time until) {
  for (int looks = 0; result == ncclInProgress && (until == Time{} || std::chrono::steady_clock::now() < until); ++looks) {
    if (looks < kLooks)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(kPoll);
    const std::lock_guard lock(watch_->nccl());
    watch_->require_sound();
    NCCL_CALL(CommGetAsyncError, nccl_, &result);
  }
  return result;
}

// Peers may still read what has been sent, so NCCL is told first that there is no more.
void Wire::close(bool failed) {
  watch_->device().stream();
  const auto still_open = [&] {
    const std::lock_guard lock(watch_->nccl());
    return nccl_ != nullptr && watch_->remove(nccl_);
  };
  if (still_open()) {
    ncclResult_t result = failed ? ncclInternalError : ncclCommFinalize(nccl_);
    for (const Time until = std::chrono::steady_clock::now() + kClosing;
         result == ncclInProgress && std::chrono::steady_clock::now() < until;) {
      std::this_thread::sleep_for(kPoll);
      if (ncclCommGetAsyncError(nccl_, &result) != ncclSuccess) break;
    }
    result == ncclSuccess ? ncclCommDestroy(nccl_) : ncclCommAbort(nccl_);
  }
  cudaStreamSynchronize(stream_);
  cudaStreamDestroy(stream_);
}

std::shared_ptr<CardOperation> Wire::begin(CardOperation::About about, double deadline_s) {
  watch_->require_sound();
  const auto operation = std::make_shared<CardOperation>(watch_, std::move(about));
  check(cudaEventRecord(operation->ready(), watch_->device().stream()), "an event");
  check(cudaStreamWaitEvent(stream_, operation->ready(), 0), "an event");
  watch_->begin(operation);
  watch_->wait_for(*operation, deadline_s);
  return operation;
}

void Wire::end(CardOperation& operation) {
  check(cudaEventRecord(operation.over(), stream_), "an event");
  watch_->started(operation);
}

}  // namespace starling::STARLING_CUDA
