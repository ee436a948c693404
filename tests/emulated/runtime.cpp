// Streams, events and memory of the emulated runtime, of several cards. What is enqueued is done when somebody waits for it, or when there
// is much of it, and streams that do not wait for each other get on in a random order: what needs an event or a wait, and has none, shows.
// Whoever waits does the work of all cards, as far as it can go on. Copies from memory that is not pinned are taken at once, as CUDA does;
// others as late as allowed.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "base/error.h"
#include "tests/emulated/emulator.h"

namespace emulated_cuda {

// How often an event was recorded, and which of these the stream has come to.
struct Mark {
  uint64_t recorded = 0, reached = 0;
  Stream* stream = nullptr;
};
struct Event {
  std::shared_ptr<Mark> mark = std::make_shared<Mark>();  // outlives an event that is destroyed before the stream comes to it
};
struct Stream {
  struct Item {
    std::function<void()> body;
    std::function<bool()> ready;  // empty: always
    bool by_others = false;       // what it waits for may still be enqueued by another thread
  };
  int card;
  std::deque<Item> items;
  bool held = false;  // a library may still use it
};

namespace {

constexpr size_t kMany = 256;
constexpr size_t kHuge = size_t{1} << 30;  // blocks of so many bytes are pages that exist when they are touched
// Behind every block, where AddressSanitizer does not watch: what is written there shows when the block is freed. As numbers they are huge,
// not NaN, of which a sum with anything would have the same bits.
constexpr int kGuardByte = 0x7e;
#if defined(__SANITIZE_ADDRESS__)
constexpr size_t kGuard = 0;
#else
constexpr size_t kGuard = 256;
#endif
constexpr size_t kSharedBytes = 227 << 10, kSharedWithoutAsking = 48 << 10;
constexpr int kHost = -1;  // as a card: pinned memory of the host

struct Allocation {
  size_t bytes;
  int card;
};
struct CardPool {
  size_t allocated = 0, reserved = 0;  // reserved: what the pool has had at once
};
struct Machine {
  std::recursive_mutex mutex;
  std::condition_variable_any changed;
  int cards = 1;
  std::set<int> hanging;
  std::vector<Stream*> streams;
  std::map<const std::byte*, Allocation> blocks;
  size_t total = size_t{8} << 30;  // bytes of each card
  std::map<int, CardPool> pools;   // by card
  std::map<const void*, int> shared_limits;
  std::map<int, std::string> failures;  // by card
  uint64_t random = 1;
  bool called = false;
  std::string connections;
};
Machine& machine() {
  static auto* const one = new Machine;  // streams may end after everything else
  return *one;
}
thread_local int card_here = -1;  // none: the thread has not chosen one
thread_local std::string last_text;

using Lock = std::unique_lock<std::recursive_mutex>;

// The card that a place lies on, or kHost for pinned memory; -2 elsewhere.
int lies_on(const void* at, size_t bytes) {
  const auto* p = static_cast<const std::byte*>(at);
  auto after = machine().blocks.upper_bound(p);
  if (after == machine().blocks.begin()) return -2;
  --after;
  return p + bytes <= after->first + after->second.bytes ? after->second.card : -2;
}

// A block, as floats not a number.
bool take(void** at, size_t bytes) {
  if (bytes >= kHuge) {
    *at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return *at != MAP_FAILED;
  }
  if (posix_memalign(at, 256, bytes + std::max<size_t>(kGuard, 1)) != 0) return false;
  std::memset(*at, 0xff, bytes);
  std::memset(static_cast<std::byte*>(*at) + bytes, kGuardByte, kGuard);
  return true;
}
void give_back(void* at, size_t bytes) {
  if (bytes >= kHuge)
    munmap(at, bytes);
  else
    std::free(at);
}

// Does what comes first on the stream, if it can be done.
bool advance(Stream& s) {
  Machine& m = machine();
  if (s.items.empty() || m.hanging.contains(s.card)) return false;
  bool taken = false;
  try {
    if (s.items.front().ready && !s.items.front().ready()) return false;
    const Stream::Item item = std::move(s.items.front());
    s.items.pop_front(), taken = true;
    if (item.body) item.body();
  } catch (const std::exception& e) {
    if (!taken) s.items.pop_front();
    m.failures.try_emplace(s.card, e.what());
  }
  m.changed.notify_all();
  return true;
}

// One after the other, from a random one on, until something was done.
bool advance_any() {
  Machine& m = machine();
  m.random = m.random * 6364136223846793005ull + 1442695040888963407ull;
  const size_t n = m.streams.size(), first = n == 0 ? 0 : (m.random >> 33) % n;
  for (size_t i = 0; i < n; ++i)
    if (advance(*m.streams[(first + i) % n])) return true;
  return false;
}

// Does what comes first on the stream, and now and then something of others, until `reached`.
template <class Reached>
void run(Lock& lock, Stream& s, const Reached& reached) {
  Machine& m = machine();
  while (!reached()) {
    m.random = m.random * 6364136223846793005ull + 1442695040888963407ull;
    if (m.streams.size() > 1 && m.random >> 62 == 0 && advance_any()) continue;
    if (advance(s) || advance_any()) continue;
    CHECK(std::any_of(m.streams.begin(), m.streams.end(),
                      [&](const Stream* other) {
                        return !other->items.empty() && (m.hanging.contains(other->card) || other->items.front().by_others);
                      }),
          "streams wait for each other in a circle");
    m.changed.wait(lock);
  }
}

cudaError_t enqueue(Stream* s, Stream::Item item) {
  if (s == nullptr || card_here != s->card) return cudaErrorInvalidDevice;
  s->items.push_back(std::move(item));
  if (s->items.size() > kMany)
    while (s->items.size() > kMany / 2 && advance(*s)) {
    }
  machine().changed.notify_all();
  return cudaSuccess;
}
cudaError_t enqueue(Stream* s, std::function<void()> body) { return enqueue(s, Stream::Item{std::move(body)}); }

// What has failed on this thread's card is told once.
cudaError_t outcome() {
  const auto failure = machine().failures.find(card_here);
  if (failure == machine().failures.end()) return cudaSuccess;
  last_text = std::move(failure->second), machine().failures.erase(failure);
  return cudaErrorLaunchFailure;
}

}  // namespace

const char* cudaGetErrorName(cudaError_t e) {
  return e == cudaSuccess ? "cudaSuccess" : e == cudaErrorMemoryAllocation ? "cudaErrorMemoryAllocation" : "cudaError";
}
const char* cudaGetErrorString(cudaError_t e) {
  switch (e) {
    case cudaSuccess:
      return "no error";
    case cudaErrorLaunchFailure:
      return last_text.c_str();
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInvalidConfiguration:
      return "invalid configuration of a launch";
    case cudaErrorInvalidDevice:
      return "no stream, or a thread that has not called cudaSetDevice";
    default:
      return "invalid value";
  }
}
cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaGetDeviceCount(int* count) {
  const Lock lock(machine().mutex);
  const char* const connections = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");
  if (!std::exchange(machine().called, true)) machine().connections = connections ? connections : "";
  return *count = machine().cards, cudaSuccess;
}
std::string max_connections() {
  const Lock lock(machine().mutex);
  return machine().connections;
}
cudaError_t cudaSetDevice(int d) {
  if (d < 0 || d >= machine().cards) return cudaErrorInvalidDevice;
  card_here = d;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* d) { return *d = card_here, cudaSuccess; }
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) { return *value = static_cast<int>(kSharedBytes), cudaSuccess; }
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int card) {
  *p = {"emulated on the CPU", {}, 9, 0, 4, machine().total, kSharedBytes};
  p->uuid.bytes[0] = static_cast<char>(card + 1);
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) { return *version = 0, cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int* version) { return *version = 0, cudaSuccess; }
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  const Lock lock(machine().mutex);
  *total = machine().total, *free = machine().total - machine().pools[card_here].reserved;
  return cudaSuccess;
}
void set_card_memory(size_t bytes) {
  const Lock lock(machine().mutex);
  machine().total = bytes;
  for (auto& [card, pool] : machine().pools) pool.reserved = pool.allocated;
}
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int) { return *pool = nullptr, cudaSuccess; }
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) { return cudaSuccess; }
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t, cudaMemPoolAttr attribute, void* value) {
  const Lock lock(machine().mutex);
  const CardPool& pool = machine().pools[card_here];
  *static_cast<uint64_t*>(value) = attribute == cudaMemPoolAttrReservedMemCurrent ? pool.reserved : pool.allocated;
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* s, unsigned) {
  const Lock lock(machine().mutex);
  if (card_here < 0) return cudaErrorInvalidDevice;
  machine().streams.push_back(*s = new Stream{card_here, {}});
  return cudaSuccess;
}
void hold_stream(cudaStream_t s) {
  const Lock lock(machine().mutex);
  s->held = true;
  ++counted().held_streams;
}
cudaError_t cudaStreamDestroy(cudaStream_t s) {
  Lock lock(machine().mutex);
  counted().held_streams_destroyed += s->held;
  run(lock, *s, [s] { return s->items.empty(); });
  std::erase(machine().streams, s);
  delete s;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t s) {
  Lock lock(machine().mutex);
  if (s == nullptr || card_here != s->card) return cudaErrorInvalidDevice;
  run(lock, *s, [s] { return s->items.empty(); });
  return outcome();
}
cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned) {
  const Lock lock(machine().mutex);
  return enqueue(s, Stream::Item{{}, [mark = e->mark, until = e->mark->recorded] { return mark->reached >= until; }});
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* e, unsigned) { return *e = new Event, cudaSuccess; }
cudaError_t cudaEventDestroy(cudaEvent_t e) {
  const Lock lock(machine().mutex);
  delete e;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s) {
  const Lock lock(machine().mutex);
  e->mark->stream = s;
  return enqueue(s, [mark = e->mark, number = ++e->mark->recorded] { mark->reached = number; });
}
cudaError_t cudaEventSynchronize(cudaEvent_t e) {
  Lock lock(machine().mutex);
  const std::shared_ptr<Mark> mark = e->mark;
  if (mark->reached < mark->recorded) {
    ++counted().event_waits;
    run(lock, *mark->stream, [&, until = mark->recorded] { return mark->reached >= until; });
  }
  return outcome();
}
// Whoever looks again and again sees the card get on.
cudaError_t cudaEventQuery(cudaEvent_t e) {
  const Lock lock(machine().mutex);
  if (e->mark->reached < e->mark->recorded) advance_any();
  return e->mark->reached < e->mark->recorded ? cudaErrorNotReady : outcome();
}

cudaError_t cudaMallocAsync(void** at, size_t bytes, cudaStream_t s) {
  Machine& m = machine();
  Lock lock(m.mutex);
  ++counted().allocations;
  if (s == nullptr || card_here != s->card) return cudaErrorInvalidDevice;
  CardPool& pool = m.pools[card_here];
  const auto fits = [&] { return pool.allocated <= m.total && bytes <= m.total - pool.allocated; };
  if (!fits()) run(lock, *s, [s] { return s->items.empty(); });  // what is to be released until here can be had
  if (!fits() || !take(at, bytes)) return cudaErrorMemoryAllocation;
  m.blocks[static_cast<std::byte*>(*at)] = {bytes, card_here};
  pool.allocated += bytes, pool.reserved = std::max(pool.reserved, pool.allocated);
  return cudaSuccess;
}
cudaError_t cudaFreeAsync(void* at, cudaStream_t s) {
  const Lock lock(machine().mutex);
  if (lies_on(at, 0) != card_here) return cudaErrorInvalidValue;
  return enqueue(s, [at] {
    Machine& m = machine();
    const auto block = m.blocks.find(static_cast<std::byte*>(at));
    CHECK(block != m.blocks.end(), "memory is freed twice");
    const std::byte* const end = block->first + block->second.bytes;
    const size_t bytes = block->second.bytes;
    const bool intact = bytes >= kHuge || std::all_of(end, end + kGuard, [](std::byte b) { return b == std::byte{kGuardByte}; });
    m.pools[block->second.card].allocated -= bytes, m.blocks.erase(block);
    give_back(at, bytes);
    CHECK(intact, "a kernel has written behind the end of a block");
  });
}
cudaError_t cudaMallocHost(void** at, size_t bytes) {
  const Lock lock(machine().mutex);
  if (posix_memalign(at, 256, bytes > 0 ? bytes : 1) != 0) return cudaErrorMemoryAllocation;
  machine().blocks[static_cast<std::byte*>(*at)] = {bytes, kHost};
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* at) {
  const Lock lock(machine().mutex);
  machine().blocks.erase(static_cast<std::byte*>(at));
  std::free(at);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t s) {
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  {
    const Lock lock(machine().mutex);
    const int source = lies_on(from, bytes), target = lies_on(to, bytes);
    if (kind == cudaMemcpyHostToDevice) ++counted().uploads;
    if (kind == cudaMemcpyDeviceToHost) ++counted().downloads;
    if (from_device ? source != card_here : source >= 0) return cudaErrorInvalidValue;
    if (to_device ? target != card_here : target >= 0) return cudaErrorInvalidValue;
    if (!from_device && source != kHost) {
      const auto* p = static_cast<const std::byte*>(from);
      return enqueue(s, [to, taken = std::vector<std::byte>(p, p + bytes)] { std::memcpy(to, taken.data(), taken.size()); });
    }
    const cudaError_t queued = enqueue(s, [=] { std::memcpy(to, from, bytes); });
    if (queued != cudaSuccess || to_device || target == kHost) return queued;
  }
  return cudaStreamSynchronize(s);
}
cudaError_t cudaMemsetAsync(void* at, int value, size_t bytes, cudaStream_t s) {
  const Lock lock(machine().mutex);
  ++counted().fills;
  if (lies_on(at, bytes) != card_here) return cudaErrorInvalidValue;
  return enqueue(s, [=] {
    if (value == 0 && bytes >= kHuge && reinterpret_cast<uintptr_t>(at) % 4096 == 0)
      madvise(at, bytes, MADV_DONTNEED);  // zeros, of which only those exist that somebody touches
    else
      std::memset(at, value, bytes);
  });
}

// What a card could not follow: a word of the task that is an address of memory which is mapped here, but not the card's. (Numbers are
// seldom addresses: these are above 2^40, and few of them are mapped.)
cudaError_t check_task(const void* task, size_t bytes) {
  const Lock lock(machine().mutex);
  for (size_t at = 0; at + 8 <= bytes; at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, static_cast<const std::byte*>(task) + at, 8);
    if (word < uint64_t{1} << 40 || word >= uint64_t{1} << 47 || lies_on(reinterpret_cast<const void*>(word), 0) == card_here) continue;
    const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    unsigned char resident = 0;
    if (mincore(reinterpret_cast<void*>(word / page * page), page, &resident) == 0) return cudaErrorInvalidValue;
  }
  return cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void*) { return *attributes = {}, cudaSuccess; }
cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute, int bytes) {
  const Lock lock(machine().mutex);
  if (bytes < 0 || static_cast<size_t>(bytes) > kSharedBytes) return cudaErrorInvalidValue;
  machine().shared_limits[kernel] = bytes;
  return cudaSuccess;
}
cudaError_t enqueue_kernel(const void* kernel, std::function<void()> thread, dim3 grid, dim3 block, size_t shared, cudaStream_t s) {
  const Lock lock(machine().mutex);
  const auto limit = machine().shared_limits.find(kernel);
  const size_t most = limit == machine().shared_limits.end() ? kSharedWithoutAsking : static_cast<size_t>(limit->second);
  if (!can_launch(grid, block)) return cudaErrorInvalidConfiguration;
  ++counted().kernels;
  if (shared > most) return cudaErrorInvalidValue;
  return enqueue(s, [thread = std::move(thread), grid, block, shared] { run_grid(thread, grid, block, shared); });
}

cudaError_t enqueue_host_work(cudaStream_t s, std::function<void()> body) {
  const Lock lock(machine().mutex);
  return enqueue(s, std::move(body));
}
cudaError_t enqueue_meeting(cudaStream_t s, std::function<bool()> over) {
  const Lock lock(machine().mutex);
  return enqueue(s, Stream::Item{{}, std::move(over), true});
}
bool on_device(const void* at, size_t bytes) { return card_of(at, bytes) >= 0; }
int card_of(const void* at, size_t bytes) {
  const Lock lock(machine().mutex);
  return lies_on(at, bytes);
}
int card_of(cudaStream_t s) { return s->card; }
std::recursive_mutex& runtime_mutex() { return machine().mutex; }
void runtime_changed() { machine().changed.notify_all(); }
void advance_cards() {
  const Lock lock(machine().mutex);
  advance_any();
}
void work_until(const std::function<bool()>& reached) {
  Lock lock(machine().mutex);
  while (!reached())
    if (!advance_any()) machine().changed.wait(lock);
}
uint64_t runtime_random() { return (machine().random = machine().random * 6364136223846793005ull + 1442695040888963407ull) >> 33; }

void set_cards(int cards) {
  const Lock lock(machine().mutex);
  machine().cards = cards, machine().called = false;
}
void hang_card(int card, bool hangs) {
  const Lock lock(machine().mutex);
  if (hangs)
    machine().hanging.insert(card);
  else
    machine().hanging.erase(card);
  machine().changed.notify_all();
}
int& card_of_thread() {
  thread_local int card = 0;
  return card;
}

}  // namespace emulated_cuda
