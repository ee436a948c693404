#include "comm/mpi/heartbeat.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "comm/mpi/mpi_call.h"

namespace starling {
namespace {

int bytes_of(const std::vector<Heartbeat>& beats) { return static_cast<int>(beats.size() * sizeof(Heartbeat)); }

bool finished(MPI_Request& request) {
  int flag = 0;
  MPI_CALL(Test, &request, &flag, MPI_STATUS_IGNORE);
  return flag != 0;
}

}  // namespace

void Heartbeats::start(MPI_Comm comm) {
  comm_ = comm;
  MPI_CALL(Comm_rank, comm, &rank_);
  MPI_CALL(Comm_size, comm, &size_);
  incoming_.resize(static_cast<size_t>(size_));
  next_.resize(static_cast<size_t>(size_));
  for (int distance = 1; distance < size_; distance *= 2)
    for (const int to : {(rank_ + distance) % size_, (rank_ - distance + size_) % size_})
      if (std::none_of(outgoing_.begin(), outgoing_.end(), [&](const Outgoing& o) { return o.to == to; }))
        outgoing_.push_back({to, std::vector<Heartbeat>(static_cast<size_t>(size_)), MPI_REQUEST_NULL});
  if (size_ > 1) post();
}

void Heartbeats::post() { MPI_CALL(Irecv, next_.data(), bytes_of(next_), MPI_BYTE, MPI_ANY_SOURCE, 0, comm_, &receiving_); }

bool Heartbeats::receive() {
  if (size_ == 1 || !finished(receiving_)) return false;
  std::swap(incoming_, next_);
  post();
  return true;
}

void Heartbeats::send(const std::vector<Known>& known) {
  if (size_ == 1 || stopping_) return;
  for (size_t side = 0; side < std::min<size_t>(2, outgoing_.size()); ++side) {
    Outgoing& o = outgoing_[turn_];
    turn_ = (turn_ + 1) % outgoing_.size();
    if (!finished(o.request)) continue;
    for (size_t r = 0; r < known.size(); ++r) o.beats[r] = known[r].beat;
    MPI_CALL(Isend, o.beats.data(), bytes_of(o.beats), MPI_BYTE, o.to, 0, comm_, &o.request);
  }
}

bool Heartbeats::all_sent() {
  return std::all_of(outgoing_.begin(), outgoing_.end(), [](Outgoing& o) { return finished(o.request); });
}

bool Heartbeats::everybody_leaves() {
  if (!std::exchange(asked_, true)) MPI_CALL(Ibarrier, comm_, &leaving_);
  return finished(leaving_);
}

bool Heartbeats::stop() {
  if (stopped_) return true;
  receive();
  if (!stopping_) {
    if (!all_sent()) return false;  // the barrier says: whatever I sent has arrived
    stopping_ = true;
    MPI_CALL(Ibarrier, comm_, &barrier_);
  }
  if (!finished(barrier_)) return false;
  if (receiving_ != MPI_REQUEST_NULL) {
    MPI_CALL(Cancel, &receiving_);
    MPI_CALL(Wait, &receiving_, MPI_STATUS_IGNORE);
  }
  return stopped_ = true;
}

void merge(std::vector<Heartbeats::Known>& known, const std::vector<Heartbeat>& news, int64_t now_ns) {
  for (size_t r = 0; r < known.size(); ++r)
    if (news[r].count > known[r].beat.count) known[r] = {news[r], now_ns};
}

std::string describe_lateness(const Lateness& l, const std::vector<Heartbeats::Known>& known, const std::vector<std::string>& hosts,
                              int64_t now_ns) {
  const auto of = [&](int r) -> const Heartbeats::Known& { return known[static_cast<size_t>(r)]; };
  const auto name = [&](int r) { return fmt::format("rank {} on {}", r, hosts[static_cast<size_t>(r)]); };
  const auto age = [&](int r) { return 1e-9 * static_cast<double>(now_ns - of(r).heard_ns); };
  const auto doing = [&](int r) {
    const Heartbeat& beat = of(r).beat;
    return beat.phase[0] ? fmt::format("it is in '{}' at update {}", beat.phase, beat.step)
                         : std::string("it has not reported what it is doing");
  };
  // How far a rank has come. For the communicator of all ranks it is known whether the rank has started this very operation.
  const auto progress = [&](int r) {
    const Heartbeat& beat = of(r).beat;
    if (l.collective < 0) return std::tuple(int64_t{0}, beat.step, beat.operations);
    return beat.collectives > l.collective ? std::tuple(INT64_MAX, int64_t{0}, int64_t{0})
                                           : std::tuple(beat.collectives, beat.step, beat.operations);
  };
  std::vector<int> others = l.members;
  if (l.peer >= 0) others = {l.peer};
  std::erase(others, l.self);

  const auto silence = [&](int oldest) {
    std::string text = fmt::format("{} has not been heard of for {:.1f} s, {}: its process or its machine may have died", name(oldest),
                                   age(oldest), doing(oldest));
    std::vector<std::string> more;
    for (const int r : others)
      if (r != oldest && age(r) > l.silent_s) more.push_back(name(r));
    return more.empty() ? text : text + fmt::format(" (nor has {})", fmt::join(more, ", "));
  };

  std::string text = fmt::format("{} waited {:.1f} s; ", l.operation, l.waited_s);
  if (others.empty()) return text + "no other rank takes part in it";
  const int oldest = *std::max_element(others.begin(), others.end(), [&](int a, int b) { return age(a) < age(b); });
  const int slowest = *std::min_element(others.begin(), others.end(), [&](int a, int b) { return progress(a) < progress(b); });
  if (age(oldest) > l.silent_s)
    text += silence(oldest);
  else if (l.peer >= 0)
    text += fmt::format("{} did not do its part: {} and was last heard of {:.1f} s ago", name(l.peer), doing(l.peer), age(l.peer));
  else if (l.any)
    text += fmt::format("none of rank{} {} did its part; furthest behind is {}: {} and was last heard of {:.1f} s ago",
                        others.size() > 1 ? "s" : "", fmt::join(others, ", "), name(slowest), doing(slowest), age(slowest));
  else if (progress(slowest) < progress(l.self))
    text += fmt::format("{} is behind: {} and was last heard of {:.1f} s ago", name(slowest), doing(slowest), age(slowest));
  else
    text += fmt::format("no rank is behind this one, so the network is slow, or {} differs among the ranks", l.operation);
  return text + "; raise strategy.deadline-seconds, or look at that rank's log";
}

}  // namespace starling
