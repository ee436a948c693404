#include "comm/nccl/wire.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace starling::STARLING_CUDA {
namespace {

using namespace std::chrono_literals;

// Pauses between checks of a call in progress. Most calls take some microseconds, so the first checks come without a pause.
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

Wire::Wire(std::shared_ptr<CardWatch> watch, std::shared_ptr<const CardGroup> group, const std::string& name, double deadline_s)
    : watch_(std::move(watch)), group_(std::move(group)) {
  ncclUniqueId id{};
  CHECK(name.size() == sizeof id.internal, "a name of {} bytes", name.size());
  std::memcpy(id.internal, name.data(), name.size());
  const std::vector<int>& members = group_->members;
  const auto rank = static_cast<int>(std::find(members.begin(), members.end(), watch_->rank()) - members.begin());
  watch_->device().stream();  // the card, for this thread
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "a stream");
  try {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclResult_t result = ncclSuccess;
    {
      const std::lock_guard lock(watch_->nccl());
      watch_->require_sound();
      result = ncclCommInitRankConfig(&nccl_, static_cast<int>(members.size()), id, rank, &config);
      if (nccl_) watch_->add(nccl_, group_);
      nccl_check(result, "ncclCommInitRankConfig");
    }
    result = settled(result, seconds_from_now(deadline_s));
    if (result == ncclInProgress) fail(fmt::format("not connected within {:g} s; look at the links between the hosts", deadline_s));
    nccl_check(result, "ncclCommInitRankConfig");
  } catch (const NcclError& e) {
    close(true);
    fail(e.what());
  } catch (...) {
    close(true);
    throw;
  }
}

Wire::~Wire() { close(std::uncaught_exceptions() > exceptions_); }

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

void Wire::fail(const std::string& why) const {
  std::vector<std::string> others;
  for (const int r : group_->members)
    if (r != watch_->rank()) others.push_back(watch_->name(r));
  throw PeerError(fmt::format("the cards of {} and {} ({}): {}; look at those ranks' logs, and at NCCL's messages with NCCL_DEBUG=WARN",
                              watch_->name(), fmt::join(others, ", "), group_->purpose, why));
}

void Wire::connect(const std::set<int>& to, const std::set<int>& from, double deadline_s) {
  const Tensor x({std::max<int64_t>(static_cast<int64_t>(to.size() + from.size()), 1)}, DType::i8, watch_->device().memory());
  const auto operation = begin("the first message", x, nullptr, deadline_s);
  if (!to.empty() || !from.empty())
    group([&](ncclComm_t nccl) {
      std::byte* at = x.raw();
      for (const int r : to) NCCL_CALL(Send, at++, 1, ncclUint8, r, nccl, stream_);
      for (const int r : from) NCCL_CALL(Recv, at++, 1, ncclUint8, r, nccl, stream_);
    });
  end(*operation);
  watch_->wait_for(*operation, deadline_s);
}

// Peers may still read what has been sent, so NCCL is first told that no more will follow, and then asked until all ranks are through.
// Meanwhile the watch may end everything.
void Wire::finish() {
  const Time until = std::chrono::steady_clock::now() + kClosing;
  for (bool told = false;; std::this_thread::sleep_for(kPoll)) {
    const std::lock_guard lock(watch_->nccl());
    if (!nccl_ || !watch_->open(nccl_)) return;
    ncclResult_t result = ncclSuccess;
    if (!std::exchange(told, true))
      result = ncclCommFinalize(nccl_);
    else if (ncclCommGetAsyncError(nccl_, &result) != ncclSuccess)
      return;
    if (result == ncclSuccess) {
      ncclCommDestroy(nccl_);
      return watch_->remove(nccl_);
    }
    if (result != ncclInProgress || std::chrono::steady_clock::now() > until) return;
  }
}

void Wire::close(bool failed) {
  watch_->device().stream();
  if (!failed) finish();
  bool open = false;
  {
    const std::lock_guard lock(watch_->nccl());
    open = nccl_ && watch_->open(nccl_);
  }
  if (open || failed)
    watch_->fail(std::make_exception_ptr(PeerError(fmt::format(
        "{} ends the work of its card, since {} ({}); its log says more", watch_->name(),
        failed ? "it has failed" : fmt::format("its connection was not closed within {} s", kClosing.count()), group_->purpose))));
  cudaStreamSynchronize(stream_);
  if (!watch_->ended()) cudaStreamDestroy(stream_);  // else left to the end of the process, since NCCL may still use it
  watch_->give_back(*group_);
}

std::shared_ptr<CardOperation> Wire::begin(const char* what, const Tensor& x, std::shared_ptr<Storage> scratch, double deadline_s) {
  watch_->require_sound();
  const auto operation = std::make_shared<CardOperation>(watch_, CardOperation::About{what, group_, x, std::move(scratch)});
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
