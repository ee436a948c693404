// Chooses the schedule of each collective.
#include "comm/communicator.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "comm/card_channel.h"

namespace starling {
namespace {

constexpr int64_t kSmall = 64 << 10;  // bytes: below, latency decides (tree); above, bandwidth (ring)

CollectiveShape at(CollectiveShape shape, int rank) {
  shape.rank = rank;
  return shape;
}

// Calls begin(x), or, if x lies outside host memory, begin() with a host tensor in its place: that one starts with x's elements if `read`,
// and x gets its elements at the end if `written`.
template <class Begin>
Pending through_host(const Tensor& x, bool read, bool written, const Begin& begin) {
  if (!x || !x.has_elements() || x.memory().host()) return begin(x);
  const Tensor here = read ? x.on_host() : Tensor(x.shape(), x.dtype());
  Pending pending = begin(here);
  if (written) pending.then_copy(here, x);
  return pending;
}

}  // namespace

bool Pending::done() const {
  if (operation_ && !operation_->done()) return false;
  if (arrival_) arrival_->copy();
  return true;
}

void Pending::wait(double deadline_s) const {
  if (operation_) operation_->wait(deadline_s);
  if (arrival_) arrival_->copy();
}

void Pending::then_copy(const Tensor& from, const Tensor& to) { arrival_ = std::make_shared<Arrival>(Arrival{from, to}); }

void Pending::Arrival::copy() {
  if (from) to.copy_from(from);
  from = to = {};
}

size_t wait_any(std::span<const Pending> pending, double deadline_s) {
  CHECK(!pending.empty(), "waiting for any of no operations");
  std::vector<Operation*> operations;
  for (const Pending& p : pending) {
    if (!p.operation_) {
      p.wait();
      return operations.size();
    }
    operations.push_back(p.operation_.get());
  }
  const size_t first = operations.front()->wait_any(operations, deadline_s);
  if (pending[first].arrival_) pending[first].arrival_->copy();
  return first;
}

size_t wait_any(std::span<const Pending> pending) {
  double deadline_s = INFINITY;
  for (const Pending& p : pending)
    if (p.operation_) deadline_s = std::min(deadline_s, p.deadline_s_);
  return wait_any(pending, deadline_s);
}

Pending Communicator::send(const Tensor& x, int to, Tag tag) {
  Pending pending;
  if (carried(x) && cards_->send(x, to, tag, deadline_s_, pending)) return pending;
  return through_host(x, true, false, [&](const Tensor& here) { return start_send(here, to, tag); });
}

Pending Communicator::receive(const Tensor& x, int from, Tag tag) {
  Pending pending;
  if (carried(x) && cards_->receive(x, from, tag, deadline_s_, pending)) return pending;
  return through_host(x, false, true, [&](const Tensor& here) { return start_receive(here, from, tag); });
}

bool Communicator::carried(const Tensor& x) const { return cards_ && x && cards_->carries(x); }

std::unique_ptr<Communicator> Communicator::split(const Colors& color, const char* purpose) {
  std::unique_ptr<Communicator> part = split_off(color);
  if (cards_ && part->size() > 1) part->connect(cards_->split_off(*part, purpose));
  return part;
}

void Communicator::link_neighbours() {
  if (cards_) cards_->link_neighbours(*this);
}

Traffic Communicator::traffic() const {
  Traffic all = own_traffic();
  if (!cards_) return all;
  const Traffic cards = cards_->traffic();
  all.bytes_sent += cards.bytes_sent;
  all.bytes_received += cards.bytes_received;
  all.messages_sent += cards.messages_sent;
  return all;
}

Pending Communicator::run(Schedule schedule, const Tensor& x, const char* what) {
  if (carried(x)) return cards_->run(std::move(schedule), x, what, deadline_s_);
  return through_host(x, true, true, [&](const Tensor& here) { return start(std::move(schedule), here, what); });
}

Pending Communicator::collective(Collective kind, int root, const Tensor& x, const ScheduleMaker& make, const char* what) {
  Pending pending;
  if (carried(x)) {
    if (algorithm_ == Algorithm::library && cards_->library(kind, x, root, deadline_s_, pending)) return pending;
    return cards_->run(make(rank()), x, what, deadline_s_);
  }
  return through_host(x, true, true, [&](const Tensor& here) {
    if (algorithm_ == Algorithm::library && library_collective(kind, here, root, pending)) return pending;
    return run_made(make, root, here, what);
  });
}

Pending Communicator::all_reduce(const Tensor& x, Reduce reduce) {
  if (size() == 1) return {};
  const CollectiveShape s = shape(x);
  const Collective kind = reduce == Reduce::sum ? Collective::all_reduce_sum : Collective::all_reduce_maximum;
  const bool small = x.bytes() <= kSmall;
  if (algorithm_ == Algorithm::tree || ((algorithm_ == Algorithm::automatic || algorithm_ == Algorithm::library) && small))
    return collective(
        kind, 0, x, [=](int r) { return tree_all_reduce(at(s, r), reduce); }, "all-reduce (tree)");
  if (algorithm_ == Algorithm::halving_doubling)
    return collective(
        kind, 0, x, [=](int r) { return halving_doubling_all_reduce(at(s, r), reduce); }, "all-reduce (halving-doubling)");
  return collective(
      kind, 0, x, [=](int r) { return ring_all_reduce(at(s, r), reduce); }, "all-reduce (ring)");
}

Pending Communicator::all_reduce_bf16(const Tensor& x) {
  if (size() == 1) return {};
  if (x.dtype() != DType::f32) return all_reduce(x);
  const ScheduleMaker make = [s = shape(x)](int r) { return bf16_all_reduce(at(s, r)); };
  constexpr const char* kWhat = "all-reduce (bf16)";
  if (carried(x)) return cards_->run(make(rank()), x, kWhat, deadline_s_);
  return through_host(x, true, true, [&](const Tensor& here) { return run_made(make, 0, here, kWhat); });
}

Pending Communicator::reduce_scatter(const Tensor& x) {
  if (size() == 1) return {};
  const CollectiveShape s = shape(x);
  if (algorithm_ == Algorithm::tree || algorithm_ == Algorithm::halving_doubling)
    return collective(
        Collective::reduce_scatter, 0, x, [=](int r) { return direct_reduce_scatter(at(s, r), Reduce::sum); }, "reduce-scatter (direct)");
  return collective(
      Collective::reduce_scatter, 0, x, [=](int r) { return ring_reduce_scatter(at(s, r), Reduce::sum); }, "reduce-scatter (ring)");
}

Pending Communicator::all_gather(const Tensor& x) {
  if (size() == 1) return {};
  const CollectiveShape s = shape(x);
  if (algorithm_ == Algorithm::tree || algorithm_ == Algorithm::halving_doubling)
    return collective(
        Collective::all_gather, 0, x, [=](int r) { return direct_all_gather(at(s, r)); }, "all-gather (direct)");
  return collective(
      Collective::all_gather, 0, x, [=](int r) { return ring_all_gather(at(s, r)); }, "all-gather (ring)");
}

Pending Communicator::all_gather_varying(const Tensor& x, std::span<const int64_t> offsets) {
  if (size() == 1) return {};
  return run(gather_varying(shape(x), offsets), x, "all-gather (varying)");
}

Pending Communicator::broadcast(const Tensor& x, int root) {
  CHECK(root >= 0 && root < size(), "root {} of {} ranks", root, size());
  if (size() == 1) return {};
  const CollectiveShape s = shape(x);
  return collective(
      Collective::broadcast, root, x, [=](int r) { return tree_broadcast(at(s, r), root); }, "broadcast");
}

Pending Communicator::barrier() {
  if (size() == 1) return {};
  return run_made([N = size()](int r) { return dissemination_barrier(r, N); }, 0, Tensor(), "barrier");
}

std::string broadcast_text(Communicator& comm, const std::string& text, int root) {
  if (comm.size() == 1) return text;
  // i32 elements, so that any type of world can carry them.
  const Tensor size({2}, DType::i32);
  const auto length = static_cast<int64_t>(text.size());
  if (comm.rank() == root) {
    size.data<int32_t>()[0] = static_cast<int32_t>(length & 0x7fffffff);
    size.data<int32_t>()[1] = static_cast<int32_t>(length >> 31);
  }
  comm.broadcast(size, root).wait();
  const int64_t bytes = size.data<int32_t>()[0] + (int64_t{size.data<int32_t>()[1]} << 31);
  const Tensor body({(bytes + 3) / 4}, DType::i32);
  if (comm.rank() == root) std::memcpy(body.raw(), text.data(), text.size());
  if (bytes > 0) comm.broadcast(body, root).wait();
  return std::string(reinterpret_cast<const char*>(body.raw()), static_cast<size_t>(bytes));
}

std::vector<std::string> gather_texts(Communicator& comm, const std::string& text) {
  const int n = comm.size();
  const Tensor sizes({n}, DType::i32);
  sizes.data<int32_t>()[comm.rank()] = static_cast<int32_t>(text.size());
  comm.all_reduce(sizes).wait();
  std::vector<int64_t> offsets{0};
  for (int r = 0; r < n; ++r) offsets.push_back(offsets.back() + (sizes.data<int32_t>()[r] + 3) / 4);
  const Tensor all({offsets.back()}, DType::i32);
  const auto place = [&](int r) { return reinterpret_cast<char*>(all.raw()) + 4 * offsets[static_cast<size_t>(r)]; };
  if (!text.empty()) std::memcpy(place(comm.rank()), text.data(), text.size());
  if (offsets.back() > 0) comm.all_gather_varying(all, offsets).wait();
  std::vector<std::string> texts;
  for (int r = 0; r < n; ++r) texts.emplace_back(place(r), static_cast<size_t>(sizes.data<int32_t>()[r]));
  return texts;
}

}  // namespace starling
