// NCCL between the emulated cards of this process. A group is one piece of work on a stream: it is under way when the stream has come to
// it, and over when everything in it has met its other side. Where it is the first between two ranks in a direction, or the first
// collective of its kind, it comes to the stream when the hosts of all of them have called it, and is in progress until then. What NCCL
// leaves undefined is an error here: other numbers or types on the two sides, collectives in another order, buffers elsewhere than on the
// card, a communicator used by two threads or before it is ready. A call that is refused ends its group and its communicator. Abort and
// Finalize wait for what is on streams: aborted work ends as soon as its stream comes to it, not earlier. With slow_aborts() a thread of
// NCCL's waits for that, which uses the streams until then.
#include "tests/emulated/include/nccl.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "tensor/tensor.h"
#include "tests/emulated/emulator.h"

namespace emulated_cuda {

namespace {

struct Clique;
struct Work;

}  // namespace

struct NcclComm {
  std::shared_ptr<Clique> clique;
  int rank, card;
  std::thread::id thread;
  ncclResult_t state = ncclSuccess;
  bool finalized = false, aborted = false;
  int hesitates = 0;                 // so often the calls so far are still in progress
  std::shared_ptr<Work> unlaunched;  // until then they are not on the stream
  size_t collectives = 0;
  size_t queued = 0;  // groups on streams that are not over
  std::set<cudaStream_t> streams;
};

namespace {

enum class Kind { send, receive, all_reduce, reduce, broadcast };

struct Call {
  Kind kind;
  const std::byte* from;
  std::byte* to;
  size_t count;
  ncclDataType_t type;
  ncclRedOp_t op;
  int other;  // peer or root
  bool over = false;
  size_t bytes() const { return count * (type == ncclUint8 ? 1 : type == ncclBfloat16 ? 2 : type == ncclFloat64 ? 8 : 4); }
};
struct Work {
  std::shared_ptr<NcclComm> comm;
  cudaStream_t stream = nullptr;
  std::vector<Call> calls;
  bool arrived = false;
};
// What has to be connected before it is used, and the ranks whose hosts have come to its first use: a pair of sender and receiver, or, with
// -1 and its number, a kind of collective.
using Connection = std::pair<int, int>;
struct Clique {
  int size = 0;
  bool lazy = true;  // collectives are connected by their first call
  std::map<Connection, std::set<int>> connections;
  std::vector<std::shared_ptr<NcclComm>> ranks;                      // null: not joined
  std::map<std::pair<int, int>, std::deque<Call*>> sends, receives;  // from, to
  std::vector<std::vector<Call*>> collectives;                       // in their order; by rank
  bool broken = false;  // by calls that do not fit: NCCL would wait for ever then, or write where it must not
  bool joined() const {
    return std::all_of(ranks.begin(), ranks.end(), [](const auto& r) { return r != nullptr; });
  }
};
struct Library {
  std::map<std::string, std::shared_ptr<Clique>> cliques;  // by name
  std::map<ncclComm_t, std::shared_ptr<NcclComm>> comms;   // that are open
  uint64_t names = 0;
  bool cut = false;
  std::atomic<bool> slow_aborts = false;
  int unconnectable = -1;  // card
};
Library& library() {
  static auto* const one = new Library;
  return *one;
}
thread_local std::string last_error;
thread_local int group_depth = 0;
thread_local std::vector<Work> group;
thread_local std::vector<std::shared_ptr<NcclComm>> group_aborts;
thread_local ncclResult_t group_error = ncclSuccess;

using Lock = std::lock_guard<std::recursive_mutex>;

ncclResult_t refuse(ncclResult_t result, const std::string& why) {
  last_error = why;
  return result;
}

template <class T>
double widened(const std::byte* at, size_t i) {
  if constexpr (std::is_same_v<T, starling::bf16>)
    return starling::widen(reinterpret_cast<const T*>(at)[i]);
  else
    return static_cast<double>(reinterpret_cast<const T*>(at)[i]);
}
// In double, by rank: NCCL's own order is another one.
template <class T>
void reduce(const std::vector<Call*>& calls, std::vector<std::byte>& result) {
  for (size_t i = 0; i < calls[0]->count; ++i) {
    double sum = widened<T>(calls[0]->from, i);
    for (size_t r = 1; r < calls.size(); ++r) {
      const double x = widened<T>(calls[r]->from, i);
      sum = calls[0]->op == ncclSum ? sum + x : std::max(sum, x);
    }
    T& to = reinterpret_cast<T*>(result.data())[i];
    if constexpr (std::is_same_v<T, starling::bf16>)
      to = starling::round_to_bf16(static_cast<float>(sum));
    else
      to = static_cast<T>(sum);
  }
}

void perform(const std::vector<Call*>& calls) {
  const Call& first = *calls[0];
  for (const Call* c : calls)
    CHECK(c->kind == first.kind && c->count == first.count && c->type == first.type && c->op == first.op && c->other == first.other,
          "ranks call other collectives of NCCL: {} elements of type {} and {} of type {}", first.count, static_cast<int>(first.type),
          c->count, static_cast<int>(c->type));
  std::vector<std::byte> result(first.bytes());
  if (first.kind == Kind::broadcast)
    std::memcpy(result.data(), calls[static_cast<size_t>(first.other)]->from, result.size());
  else if (first.type == ncclFloat32)
    reduce<float>(calls, result);
  else if (first.type == ncclFloat64)
    reduce<double>(calls, result);
  else if (first.type == ncclInt32)
    reduce<int32_t>(calls, result);
  else
    reduce<starling::bf16>(calls, result);
  for (size_t r = 0; r < calls.size(); ++r) {
    if (first.kind != Kind::reduce || static_cast<int>(r) == first.other) std::memcpy(calls[r]->to, result.data(), result.size());
    calls[r]->over = true;
  }
}

// Whatever has met its other side is done.
void meet(Clique& clique) {
  for (auto& [pair, sends] : clique.sends) {
    auto& receives = clique.receives[pair];
    for (; !sends.empty() && !receives.empty(); sends.pop_front(), receives.pop_front()) {
      Call &s = *sends.front(), &r = *receives.front();
      CHECK(s.count == r.count && s.type == r.type, "rank {} sends {} elements of type {}, but rank {} receives {} of type {}", pair.first,
            s.count, static_cast<int>(s.type), pair.second, r.count, static_cast<int>(r.type));
      std::memcpy(r.to, s.from, s.bytes());
      s.over = r.over = true;
    }
  }
  for (auto& calls : clique.collectives)
    if (!calls.empty() && std::all_of(calls.begin(), calls.end(), [](const Call* c) { return c != nullptr; }))
      perform(calls), calls.clear();
}

// The stream has come to this work: whether all of it has met its other side.
bool over(const std::shared_ptr<Work>& work) {
  NcclComm& comm = *work->comm;
  Clique& clique = *comm.clique;
  if (comm.aborted || clique.broken) return true;
  if (!work->arrived) {
    work->arrived = true;
    for (Call& call : work->calls) {
      if (call.kind == Kind::send) {
        clique.sends[{comm.rank, call.other}].push_back(&call);
      } else if (call.kind == Kind::receive) {
        clique.receives[{call.other, comm.rank}].push_back(&call);
      } else {
        if (clique.collectives.size() <= comm.collectives) clique.collectives.emplace_back(clique.ranks.size());
        clique.collectives[comm.collectives++][static_cast<size_t>(comm.rank)] = &call;
      }
    }
  }
  if (library().cut) return false;
  try {
    meet(clique);
  } catch (...) {
    clique.broken = true;
    throw;
  }
  return std::all_of(work->calls.begin(), work->calls.end(), [](const Call& c) { return c.over; });
}

void launch(const std::shared_ptr<Work>& work) {
  ++work->comm->queued;
  const auto meet = [work] {
    bool ended = true;
    try {
      ended = over(work);
    } catch (...) {
      --work->comm->queued;
      throw;
    }
    work->comm->queued -= ended;
    return ended;
  };
  CHECK(enqueue_meeting(work->stream, meet) == cudaSuccess, "NCCL's stream is another card's");
}

// Who has to come to the first use of what a call needs.
std::pair<Connection, std::set<int>> connection_of(const Call& call, const NcclComm& comm) {
  if (call.kind == Kind::send) return {{comm.rank, call.other}, {comm.rank, call.other}};
  if (call.kind == Kind::receive) return {{call.other, comm.rank}, {comm.rank, call.other}};
  std::set<int> all;
  for (int r = 0; comm.clique->lazy && r < comm.clique->size; ++r) all.insert(r);
  return {{-1, static_cast<int>(call.kind)}, all};
}
// This rank's host has come to the work; false: one of its connections cannot be made.
bool come(const Work& work) {
  for (const Call& call : work.calls) {
    const auto [connection, needed] = connection_of(call, *work.comm);
    auto& hosts = work.comm->clique->connections[connection];
    if (hosts.size() < needed.size() && work.comm->card == library().unconnectable) return false;
    if (!needed.empty()) hosts.insert(work.comm->rank);
  }
  return true;
}
bool connected(const Work& work) {
  return std::all_of(work.calls.begin(), work.calls.end(), [&](const Call& call) {
    const auto [connection, needed] = connection_of(call, *work.comm);
    return work.comm->clique->connections[connection].size() >= needed.size();
  });
}

ncclResult_t why_not(const Call& call, ncclComm_t comm, cudaStream_t stream) {
  if (group_depth == 0) return refuse(ncclInvalidUsage, "a call outside of a group");
  if (comm->thread != std::this_thread::get_id()) return refuse(ncclInvalidUsage, "a communicator is used by two threads");
  if (comm->state != ncclSuccess || !comm->clique->joined() || comm->unlaunched)
    return refuse(ncclInvalidUsage, "the communicator is still in progress, or has failed");
  if (call.other < 0 || call.other >= comm->clique->size) return refuse(ncclInvalidArgument, "no such rank");
  if ((call.kind == Kind::send || call.kind == Kind::receive) && call.other == comm->rank)
    return refuse(ncclInvalidUsage, "a message to oneself");
  if (card_of(stream) != comm->card) return refuse(ncclInvalidArgument, "the stream is another card's");
  if ((call.kind != Kind::receive && card_of(call.from, call.bytes()) != comm->card) ||
      (call.kind != Kind::send && card_of(call.to, call.bytes()) != comm->card))
    return refuse(ncclInvalidArgument, "a buffer is not on the communicator's card");
  return ncclSuccess;
}

ncclResult_t put(const Call& call, ncclComm_t comm, cudaStream_t stream) {
  const Lock lock(runtime_mutex());
  const auto known = library().comms.find(comm);
  if (known == library().comms.end()) return refuse(ncclInvalidArgument, "the communicator has been closed");
  if (const ncclResult_t result = why_not(call, comm, stream); result != ncclSuccess) {
    if (group_depth > 0) group_error = result;
    return comm->state = result;
  }
  if (group.empty() || group.back().comm != known->second || group.back().stream != stream)
    group.push_back({known->second, stream, {}, false});
  group.back().calls.push_back(call);
  comm->streams.insert(stream);
  return ncclSuccess;
}

// Kernels that run see that they are to end; those that have not begun end when their turn comes. All of them are waited for, those of one
// group of calls together, unless a thread of NCCL's does that.
ncclResult_t end_aborted() {
  const std::vector<std::shared_ptr<NcclComm>> aborted = std::exchange(group_aborts, {});
  if (!aborted.empty() && library().slow_aborts) {
    for (const auto& comm : aborted)
      for (const cudaStream_t stream : comm->streams) hold_stream(stream);
    return ncclInProgress;
  }
  if (aborted.empty()) return ncclSuccess;
  work_until([&] { return std::all_of(aborted.begin(), aborted.end(), [](const auto& comm) { return comm->queued == 0; }); });
  return ncclSuccess;
}
}  // namespace

void cut_links(bool cut) {
  const Lock lock(runtime_mutex());
  library().cut = cut;
  runtime_changed();
}

void refuse_connections(int card) {
  const Lock lock(runtime_mutex());
  library().unconnectable = card;
}

void slow_aborts(bool slow) { library().slow_aborts = slow; }

void report_network_error() {
  const Lock lock(runtime_mutex());
  for (const auto& [comm, held] : library().comms) comm->state = ncclRemoteError;
}

ncclResult_t ncclGetVersion(int* version) { return *version = 22809, ncclSuccess; }
const char* ncclGetErrorString(ncclResult_t r) {
  return r == ncclRemoteError ? "remote error" : r == ncclSystemError ? "system error" : r == ncclInvalidUsage ? "invalid usage" : "error";
}
const char* ncclGetLastError(ncclComm_t) { return last_error.c_str(); }

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  const Lock lock(runtime_mutex());
  *id = {};
  const std::string name = "clique " + std::to_string(++library().names);
  name.copy(id->internal, sizeof id->internal - 1);
  library().cliques[name] = std::make_shared<Clique>();
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int size, ncclUniqueId id, int rank, ncclConfig_t* config) {
  const Lock lock(runtime_mutex());
  const auto clique = library().cliques.find(id.internal);
  int card = -1;
  cudaGetDevice(&card);
  if (clique == library().cliques.end() || config->size != sizeof *config || rank < 0 || rank >= size || card < 0)
    return refuse(ncclInvalidArgument, "an unknown name, or no such rank");
  if (config->blocking != 0) return refuse(ncclInvalidUsage, "these tests are for communicators that do not block");
  Clique& c = *clique->second;
  if (c.size == 0) c.size = size, c.ranks.resize(static_cast<size_t>(size));
  const char* const lazy = std::getenv("NCCL_RUNTIME_CONNECT");
  c.lazy = lazy == nullptr || std::string_view(lazy) != "0";
  if (c.size != size || c.ranks[static_cast<size_t>(rank)]) return refuse(ncclInvalidUsage, "ranks disagree on how many they are");
  for (const auto& other : c.ranks)
    if (other && other->card == card) return refuse(ncclInvalidUsage, "two ranks on one card");
  const auto made = std::make_shared<NcclComm>(clique->second, rank, card, std::this_thread::get_id());
  made->hesitates = static_cast<int>(runtime_random() % 3);
  *comm = (library().comms[made.get()] = c.ranks[static_cast<size_t>(rank)] = made).get();
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  const Lock lock(runtime_mutex());
  if (!library().comms.contains(comm)) return refuse(ncclInvalidArgument, "the communicator has been closed");
  *state = comm->state;
  if (comm->state != ncclSuccess) return ncclSuccess;
  const auto left = [](const auto& rank) { return rank && (rank->finalized || rank->aborted); };
  const auto& ranks = comm->clique->ranks;
  if (!comm->clique->joined() || (comm->finalized && (comm->queued > 0 || !std::all_of(ranks.begin(), ranks.end(), left))))
    *state = ncclInProgress;
  if (comm->finalized && comm->queued > 0) advance_cards();  // whoever looks again and again sees the card get on
  // Only its own thread may put work on streams.
  if (comm->thread != std::this_thread::get_id()) return ncclSuccess;
  if (comm->hesitates > 0) *state = ncclInProgress, --comm->hesitates;
  if (comm->unlaunched && !connected(*comm->unlaunched)) *state = ncclInProgress;
  if (*state == ncclSuccess && comm->unlaunched) launch(std::exchange(comm->unlaunched, nullptr));
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  const Lock lock(runtime_mutex());
  if (!library().comms.contains(comm)) return refuse(ncclInvalidArgument, "the communicator has been closed");
  if (comm->state != ncclSuccess) return refuse(comm->state, "the communicator has failed");
  if (!comm->clique->joined() || comm->unlaunched || comm->finalized)
    return refuse(ncclInvalidArgument, "the communicator is still in progress, or finalized");
  comm->finalized = true;
  return ncclInProgress;
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  const Lock lock(runtime_mutex());
  if (!library().comms.contains(comm) || !comm->finalized || comm->queued > 0)
    return refuse(ncclInvalidArgument, "the communicator is not finalized");
  library().comms.erase(comm);
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  {
    const Lock lock(runtime_mutex());
    const auto known = library().comms.find(comm);
    if (known == library().comms.end()) return refuse(ncclInvalidArgument, "the communicator has been closed");
    comm->aborted = true, comm->unlaunched = nullptr;
    for (auto& [pair, calls] : comm->clique->sends)
      if (pair.first == comm->rank) calls.clear();
    for (auto& [pair, calls] : comm->clique->receives)
      if (pair.second == comm->rank) calls.clear();
    for (auto& calls : comm->clique->collectives)
      if (!calls.empty()) calls[static_cast<size_t>(comm->rank)] = nullptr;
    group_aborts.push_back(known->second);
    library().comms.erase(known);
    runtime_changed();
  }
  return group_depth == 0 ? end_aborted() : ncclSuccess;
}

ncclResult_t ncclGroupStart() { return ++group_depth, ncclSuccess; }

// Nothing of a group comes to its stream when a call in it was refused.
ncclResult_t ncclGroupEnd() {
  if (group_depth == 0) return refuse(ncclInvalidUsage, "the end of no group");
  if (--group_depth > 0) return ncclSuccess;
  const ncclResult_t aborts = end_aborted();
  const Lock lock(runtime_mutex());
  ncclResult_t result = std::exchange(group_error, ncclSuccess);
  if (result == ncclSuccess && group.empty()) return aborts;
  count_group();
  for (Work& of : std::exchange(group, {})) {
    const auto work = std::make_shared<Work>(std::move(of));
    if (result != ncclSuccess && result != ncclInProgress) {
      work->comm->state = result;
    } else if (work->comm->unlaunched) {
      result = work->comm->state = refuse(ncclInvalidUsage, "a communicator on two streams in one group");
    } else if (!come(*work)) {
      result = work->comm->state = refuse(ncclSystemError, "a card cannot be connected");
    } else if (connected(*work) && runtime_random() % 2 == 0) {
      launch(work);
    } else {
      result = ncclInProgress, work->comm->unlaunched = work, work->comm->hesitates = static_cast<int>(runtime_random() % 3);
    }
  }
  return result;
}

ncclResult_t ncclSend(const void* from, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
  return put({Kind::send, static_cast<const std::byte*>(from), nullptr, count, type, ncclSum, peer}, comm, stream);
}
ncclResult_t ncclRecv(void* to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
  return put({Kind::receive, nullptr, static_cast<std::byte*>(to), count, type, ncclSum, peer}, comm, stream);
}
ncclResult_t ncclAllReduce(const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                           cudaStream_t stream) {
  return put({Kind::all_reduce, static_cast<const std::byte*>(from), static_cast<std::byte*>(to), count, type, op, 0}, comm, stream);
}
ncclResult_t ncclReduce(const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t op, int root, ncclComm_t comm,
                        cudaStream_t stream) {
  return put({Kind::reduce, static_cast<const std::byte*>(from), static_cast<std::byte*>(to), count, type, op, root}, comm, stream);
}
ncclResult_t ncclBroadcast(const void* from, void* to, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream) {
  return put({Kind::broadcast, static_cast<const std::byte*>(from), static_cast<std::byte*>(to), count, type, ncclSum, root}, comm, stream);
}

}  // namespace emulated_cuda

namespace starling::STARLING_CUDA {

std::string nccl_problem() { return ""; }

}  // namespace starling::STARLING_CUDA
