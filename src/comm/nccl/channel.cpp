#include "comm/nccl/channel.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "backend/cuda/kernels/collective.h"
#include "backend/cuda/kernels/rows.h"

namespace starling::STARLING_CUDA {
namespace {

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

// Collectives to which any rank may come late because of its own work; the hosts of the others must not wait for it when they call them. So
// they are connected here, with this algorithm, on as many elements as ranks. Everything else (servers, bf16 on the wire, parts of given
// sizes) sends to every rank and is connected when it is first used, in an update.
std::vector<Schedule> usual_schedules(const CollectiveShape& shape, Algorithm algorithm) {
  std::vector<Schedule> all;
  for (int root = 0; root < shape.size; ++root) all.push_back(tree_broadcast(shape, root));
  const bool chosen = algorithm == Algorithm::automatic || algorithm == Algorithm::library;
  if (chosen || algorithm == Algorithm::tree) all.push_back(tree_all_reduce(shape, Reduce::sum));
  if (algorithm == Algorithm::halving_doubling) all.push_back(halving_doubling_all_reduce(shape, Reduce::sum));
  if (chosen || algorithm == Algorithm::ring) all.push_back(ring_all_reduce(shape, Reduce::sum));
  if (!chosen && algorithm != Algorithm::ring) all.push_back(direct_all_gather(shape));
  return all;
}

}  // namespace

NcclChannel::NcclChannel(std::shared_ptr<CardWatch> watch, Communicator& comm, const char* purpose)
    : watch_(std::move(watch)), rank_(comm.rank()), size_(comm.size()) {
  const auto group = group_of(*watch_, comm, purpose);
  // The others have arrived once they have received the name, so a late rank is named there.
  wire_ = std::make_unique<Wire>(watch_, group, broadcast_text(comm, rank_ == 0 ? new_name() : ""), comm.deadline());
  std::set<int> to, from;
  for (const Schedule& schedule : usual_schedules({rank_, size_, size_, DType::f32}, comm.algorithm()))
    for (const Schedule::Round& round : schedule.rounds) {
      for (const auto& s : round.sends) to.insert(s.to);
      for (const auto& r : round.receives) from.insert(r.from);
    }
  wire_->connect(to, from, comm.deadline());
}

NcclChannel::~NcclChannel() {
  for (auto& link : links_) link.reset();
}

// In the order of the ranks, so that no two ranks wait for each other.
void NcclChannel::link_neighbours(Communicator& comm) {
  for (const NeighbourGroup& pair : groups_of_neighbours(*watch_, comm))
    links_.push_back(std::make_unique<Link>(watch_, comm, pair.from, pair.to, pair.group));
}

bool NcclChannel::send(const Tensor& x, int to, Tag tag, double deadline_s, Pending& pending) {
  for (const auto& link : links_)
    if (link->from() == rank_ && link->to() == to) return pending = link->send(x, tag, deadline_s), true;
  return false;
}

bool NcclChannel::receive(const Tensor& x, int from, Tag tag, double deadline_s, Pending& pending) {
  for (const auto& link : links_)
    if (link->from() == from && link->to() == rank_) return pending = link->receive(x, tag, deadline_s), true;
  return false;
}

Pending NcclChannel::run(Schedule schedule, const Tensor& x, const char* what, double deadline_s) {
  if (const int64_t bytes = schedule.scratch_bytes; bytes > 0 && (!scratch_ || scratch_->bytes() < bytes))
    scratch_ = std::make_shared<Storage>(bytes, watch_->device().memory());
  const auto operation = wire_->begin(what, x, scratch_, deadline_s);
  std::byte* const scratch = scratch_ ? scratch_->data() : nullptr;
  for (const Schedule::Round& round : schedule.rounds) {
    calculate(round.before, x.dtype(), x.raw(), scratch);
    exchange(round, x.raw(), scratch);
    calculate(round.after, x.dtype(), x.raw(), scratch);
  }
  count(schedule);
  wire_->end(*operation);
  return {operation, deadline_s};
}

void NcclChannel::exchange(const Schedule::Round& round, std::byte* data, std::byte* scratch) {
  const auto some = [](const auto& messages) {
    return std::any_of(messages.begin(), messages.end(), [](const auto& m) { return m.bytes > 0; });
  };
  if (!some(round.sends) && !some(round.receives)) return;
  const auto place = [&](const auto& m) { return (m.area == Area::data ? data : scratch) + m.offset; };
  wire_->group([&](ncclComm_t nccl) {
    for (const auto& s : round.sends)
      if (s.bytes > 0) NCCL_CALL(Send, place(s), static_cast<size_t>(s.bytes), ncclUint8, s.to, nccl, wire_->stream());
    for (const auto& r : round.receives)
      if (r.bytes > 0) NCCL_CALL(Recv, place(r), static_cast<size_t>(r.bytes), ncclUint8, r.from, nccl, wire_->stream());
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
        kernels::add_elements(element_of(type), {from, to, n}, wire_->stream());
        break;
      case Step::maximum:
        kernels::maximum_elements(element_of(type), {from, to, n}, wire_->stream());
        break;
      case Step::copy:
        if (n > 0)
          check(cudaMemcpyAsync(to, from, static_cast<size_t>(n * size_of(type)), cudaMemcpyDeviceToDevice, wire_->stream()), "a copy");
        break;
      case Step::narrow:
        kernels::convert(kWide, kNarrow, {from, to, n}, wire_->stream());
        break;
      case Step::widen:
        kernels::convert(kNarrow, kWide, {from, to, n}, wire_->stream());
        break;
      case Step::add_widened:
        kernels::add_widened({from, to, n}, wire_->stream());
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

// NCCL's reduce-scatter and all-gather need equal parts; unequal ones become one reduction or broadcast per part, in one group. What NCCL
// sends is unknown, so this counts what our own algorithm for large tensors would send.
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
    const auto operation = wire_->begin(what, x, nullptr, deadline_s);
    if (all > 0) wire_->group(calls);
    count(counted);
    wire_->end(*operation);
    pending = {operation, deadline_s};
  };
  switch (kind) {
    case Collective::all_reduce_sum:
    case Collective::all_reduce_maximum:
      start("all-reduce (library)", ring_all_reduce(shape, Reduce::sum), [&](ncclComm_t nccl) {
        NCCL_CALL(AllReduce, x.raw(), x.raw(), all, type, kind == Collective::all_reduce_sum ? ncclSum : ncclMax, nccl, wire_->stream());
      });
      return true;
    case Collective::reduce_scatter:
      start("reduce-scatter (library)", ring_reduce_scatter(shape, Reduce::sum), [&](ncclComm_t nccl) {
        parts([&](std::byte* at, size_t n, int r) { NCCL_CALL(Reduce, at, at, n, type, ncclSum, r, nccl, wire_->stream()); });
      });
      return true;
    case Collective::all_gather:
      start("all-gather (library)", ring_all_gather(shape), [&](ncclComm_t nccl) {
        parts([&](std::byte* at, size_t n, int r) { NCCL_CALL(Broadcast, at, at, n, type, r, nccl, wire_->stream()); });
      });
      return true;
    case Collective::broadcast:
      start("broadcast (library)", tree_broadcast(shape, root),
            [&](ncclComm_t nccl) { NCCL_CALL(Broadcast, x.raw(), x.raw(), all, type, root, nccl, wire_->stream()); });
      return true;
    case Collective::barrier:
      return false;
  }
  return false;
}

}  // namespace starling::STARLING_CUDA
