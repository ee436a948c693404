#include "comm/nccl/channel.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "backend/cuda/kernels/collective.h"
#include "backend/cuda/kernels/rows.h"

namespace starling::STARLING_CUDA {
namespace {

using namespace std::chrono_literals;

// Between looks at a call in progress, which mostly takes some microseconds: so many without a pause first.
constexpr int kLooks = 1000;
constexpr auto kPoll = 50us;
constexpr double kClosing_s = 60;  // for the other ranks to be through, too

kernels::Element element_of(DType type) {
  switch (type) {
    case DType::f32:
      return kernels::Element::f32;
    case DType::f64:
      return kernels::Element::f64;
    case DType::i32:
      return kernels::Element::i32;
    case DType::bf16:
      return kernels::Element::bf16;
    default:
      CHECK(false, "no arithmetic on tensors of {}", name_of(type));
  }
}

// Of a communicator until nothing of its is in progress: its result. InProgress when `go_on` says no.
template <class GoOn>
ncclResult_t settled(CardWatch& watch, ncclComm_t comm, ncclResult_t result, const GoOn& go_on) {
  for (int looks = 0; result == ncclInProgress && go_on(); ++looks) {
    if (looks < kLooks)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(kPoll);
    const std::lock_guard lock(watch.nccl());
    watch.require_sound();
    NCCL_CALL(CommGetAsyncError, comm, &result);
  }
  return result;
}

auto seconds_from_now(double seconds) {
  return [until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds)] {
    return std::chrono::steady_clock::now() < until;
  };
}

}  // namespace

NcclChannel::NcclChannel(std::shared_ptr<CardWatch> watch, Communicator& comm)
    : watch_(std::move(watch)), rank_(comm.rank()), size_(comm.size()) {
  std::vector<int> members;
  for (const std::string& rank : gather_texts(comm, std::to_string(watch_->rank()))) members.push_back(std::stoi(rank));
  members_ = std::make_shared<const std::vector<int>>(std::move(members));
  watch_->device().stream();  // the card, for this thread
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "a stream");
  try {
    connect(comm);
  } catch (...) {
    close();
    throw;
  }
}

NcclChannel::~NcclChannel() { close(); }

// The others have come when they have heard of the name: who is late is named there.
void NcclChannel::connect(Communicator& comm) {
  ncclUniqueId id{};
  if (rank_ == 0) NCCL_CALL(GetUniqueId, &id);
  const std::string text = broadcast_text(comm, {id.internal, sizeof id.internal});
  std::memcpy(id.internal, text.data(), sizeof id.internal);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclResult_t result = ncclSuccess;
  {
    const std::lock_guard lock(watch_->nccl());
    watch_->require_sound();
    result = ncclCommInitRankConfig(&nccl_, size_, id, rank_, &config);
    nccl_check(result, "ncclCommInitRankConfig");
    watch_->add(nccl_);
  }
  result = settled(*watch_, nccl_, result, seconds_from_now(comm.deadline()));
  if (result == ncclInProgress)
    throw PeerError(
        fmt::format("the cards of {} ranks could not be connected within {:g} s; look at the links between the hosts, and at "
                    "NCCL's messages with NCCL_DEBUG=INFO",
                    size_, comm.deadline()));
  nccl_check(result, "ncclCommInitRankConfig");
}

// Peers may still read what has been sent, so NCCL is told first that there is no more.
void NcclChannel::close() {
  watch_->device().stream();
  const auto still_open = [&] {
    const std::lock_guard lock(watch_->nccl());
    return nccl_ != nullptr && watch_->remove(nccl_);
  };
  if (still_open()) {
    ncclResult_t result = std::uncaught_exceptions() > 0 ? ncclInternalError : ncclCommFinalize(nccl_);
    for (const auto waits = seconds_from_now(kClosing_s); result == ncclInProgress && waits();) {
      std::this_thread::sleep_for(kPoll);
      if (ncclCommGetAsyncError(nccl_, &result) != ncclSuccess) break;
    }
    result == ncclSuccess ? ncclCommDestroy(nccl_) : ncclCommAbort(nccl_);
  }
  cudaStreamSynchronize(stream_);
  cudaStreamDestroy(stream_);
}

std::shared_ptr<CardOperation> NcclChannel::begin(const char* what, const Tensor& x, int64_t scratch_bytes, double deadline_s) {
  watch_->require_sound();
  CudaDevice& device = watch_->device();
  if (scratch_bytes > 0 && (!scratch_ || scratch_->bytes() < scratch_bytes))
    scratch_ = std::make_shared<Storage>(scratch_bytes, device.memory());
  const auto operation = std::make_shared<CardOperation>(watch_, what, members_, x, scratch_);
  check(cudaEventRecord(operation->ready(), device.stream()), "an event");
  check(cudaStreamWaitEvent(stream_, operation->ready(), 0), "an event");
  watch_->begin(operation);
  watch_->wait_for(*operation, deadline_s);  // the first calls of a pair of cards wait for each other
  return operation;
}

Pending NcclChannel::started(const std::shared_ptr<CardOperation>& operation, double deadline_s) {
  check(cudaEventRecord(operation->over(), stream_), "an event");
  watch_->started(*operation);
  return {operation, deadline_s};
}

Pending NcclChannel::run(Schedule schedule, const Tensor& x, const char* what, double deadline_s) {
  const auto operation = begin(what, x, schedule.scratch_bytes, deadline_s);
  std::byte* const scratch = scratch_ ? scratch_->data() : nullptr;
  for (const Schedule::Round& round : schedule.rounds) {
    calculate(round.before, x.dtype(), x.raw(), scratch);
    exchange(round, x.raw(), scratch);
    calculate(round.after, x.dtype(), x.raw(), scratch);
  }
  count(schedule);
  return started(operation, deadline_s);
}

template <class Calls>
void NcclChannel::group(const Calls& calls) {
  ncclResult_t result = ncclSuccess;
  {
    const std::lock_guard lock(watch_->nccl());
    watch_->require_sound();
    NCCL_CALL(GroupStart);
    calls();
    result = ncclGroupEnd();
  }
  nccl_check(settled(*watch_, nccl_, result, [] { return true; }), "ncclGroupEnd");
}

void NcclChannel::exchange(const Schedule::Round& round, std::byte* data, std::byte* scratch) {
  const auto some = [](const auto& messages) {
    return std::any_of(messages.begin(), messages.end(), [](const auto& m) { return m.bytes > 0; });
  };
  if (!some(round.sends) && !some(round.receives)) return;
  const auto place = [&](const auto& m) { return (m.area == Area::data ? data : scratch) + m.offset; };
  group([&] {
    for (const auto& s : round.sends)
      if (s.bytes > 0) NCCL_CALL(Send, place(s), static_cast<size_t>(s.bytes), ncclUint8, s.to, nccl_, stream_);
    for (const auto& r : round.receives)
      if (r.bytes > 0) NCCL_CALL(Recv, place(r), static_cast<size_t>(r.bytes), ncclUint8, r.from, nccl_, stream_);
  });
}

void NcclChannel::calculate(const std::vector<Schedule::Local>& steps, DType type, std::byte* data, std::byte* scratch) const {
  using Step = Schedule::Local;
  constexpr auto kWide = kernels::Type::f32, kNarrow = kernels::Type::bf16;
  for (const Step& step : steps) {
    std::byte* const to = (step.to_area == Area::data ? data : scratch) + step.to;
    const std::byte* const from = (step.from_area == Area::data ? data : scratch) + step.from;
    const int64_t n = step.count;
    switch (step.op) {
      case Step::add:
        kernels::add_elements(element_of(type), {from, to, n}, stream_);
        break;
      case Step::maximum:
        kernels::maximum_elements(element_of(type), {from, to, n}, stream_);
        break;
      case Step::copy:
        if (n > 0) check(cudaMemcpyAsync(to, from, static_cast<size_t>(n * size_of(type)), cudaMemcpyDeviceToDevice, stream_), "a copy");
        break;
      case Step::narrow:
        kernels::convert(kWide, kNarrow, {from, to, n}, stream_);
        break;
      case Step::widen:
        kernels::convert(kNarrow, kWide, {from, to, n}, stream_);
        break;
      case Step::add_widened:
        kernels::add_widened({from, to, n}, stream_);
        break;
    }
  }
}

void NcclChannel::count(const Schedule& schedule) {
  int64_t messages = 0;
  for (const auto& round : schedule.rounds)
    messages += std::count_if(round.sends.begin(), round.sends.end(), [](const auto& s) { return s.bytes > 0; });
  watch_->count(schedule.bytes_sent(), schedule.bytes_received(), messages);
}

// NCCL's reduce-scatter and all-gather want equal parts, so unequal ones go as a reduction or a broadcast each, in one group. What NCCL
// sends is not known: counted is what our own algorithm for large tensors would send.
bool NcclChannel::library(Collective kind, const Tensor& x, int root, double deadline_s, Pending& pending) {
  ncclDataType_t type = ncclFloat32;
  switch (x.dtype()) {
    case DType::f32:
      break;
    case DType::f64:
      type = ncclFloat64;
      break;
    case DType::i32:
      type = ncclInt32;
      break;
    case DType::bf16:
      type = ncclBfloat16;
      break;
    default:
      return false;
  }
  const CollectiveShape shape{rank_, size_, x.count(), x.dtype()};
  const auto parts = [&](const auto& call) {
    for (int r = 0; r < size_; ++r)
      if (const Range range = part(x.count(), r, size_); range.count() > 0)
        call(x.raw() + range.begin * size_of(x.dtype()), static_cast<size_t>(range.count()), r);
  };
  const auto all = static_cast<size_t>(x.count());
  const auto start = [&](const char* what, const Schedule& counted, const auto& calls) {
    const auto operation = begin(what, x, 0, deadline_s);
    if (all > 0) group(calls);
    count(counted);
    pending = started(operation, deadline_s);
  };
  switch (kind) {
    case Collective::all_reduce_sum:
    case Collective::all_reduce_maximum:
      start("all-reduce (library)", ring_all_reduce(shape, Reduce::sum), [&] {
        NCCL_CALL(AllReduce, x.raw(), x.raw(), all, type, kind == Collective::all_reduce_sum ? ncclSum : ncclMax, nccl_, stream_);
      });
      return true;
    case Collective::reduce_scatter:
      start("reduce-scatter (library)", ring_reduce_scatter(shape, Reduce::sum),
            [&] { parts([&](std::byte* at, size_t n, int r) { NCCL_CALL(Reduce, at, at, n, type, ncclSum, r, nccl_, stream_); }); });
      return true;
    case Collective::all_gather:
      start("all-gather (library)", ring_all_gather(shape),
            [&] { parts([&](std::byte* at, size_t n, int r) { NCCL_CALL(Broadcast, at, at, n, type, r, nccl_, stream_); }); });
      return true;
    case Collective::broadcast:
      start("broadcast (library)", tree_broadcast(shape, root),
            [&] { NCCL_CALL(Broadcast, x.raw(), x.raw(), all, type, root, nccl_, stream_); });
      return true;
    case Collective::barrier:
      return false;
  }
  return false;
}

}  // namespace starling::STARLING_CUDA
