// Streams, events and memory of the emulated runtime. What is enqueued is done when somebody waits for it, or when there is much of it, and
// streams that do not wait for each other get on in a random order: what needs an event or a wait, and has none, shows. Copies from memory
// that is not pinned are taken at once, as CUDA does; others as late as allowed.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <string>

#include "base/error.h"
#include "tests/emulated/emulator.h"

namespace emulated_cuda {

struct Event {
  uint64_t recorded = 0, reached = 0;
  Stream* stream = nullptr;
};
struct Stream {
  struct Item {
    std::function<void()> body;
    Event* wait_for = nullptr;
    uint64_t until = 0;
  };
  std::deque<Item> items;
  bool running = false;
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

struct Device {
  std::recursive_mutex mutex;
  std::set<Stream*> streams;
  std::map<const std::byte*, size_t> device, pinned;
  size_t total = size_t{8} << 30, allocated = 0, reserved = 0;  // reserved: what the pool has had at once
  std::map<const void*, int> shared_limits;
  std::string failure;
  uint64_t random = 1;
};
Device& device() {
  static auto* const one = new Device;  // streams may end after everything else
  return *one;
}
thread_local bool device_set = false;
thread_local std::string last_text;

using Lock = std::lock_guard<std::recursive_mutex>;

bool within(const std::map<const std::byte*, size_t>& blocks, const void* at, size_t bytes) {
  const auto* p = static_cast<const std::byte*>(at);
  auto after = blocks.upper_bound(p);
  if (after == blocks.begin()) return false;
  --after;
  return p + bytes <= after->first + after->second;
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

void run_until(Stream& s, size_t left);
void reach(Event& e, uint64_t until) {
  while (e.reached < until && e.stream != nullptr && !e.stream->items.empty()) run_until(*e.stream, e.stream->items.size() - 1);
}

// Does what comes first on the stream until `left` items remain; now and then something of another stream.
void run_until(Stream& s, size_t left) {
  Device& d = device();
  CHECK(!s.running, "streams wait for each other in a circle");
  while (s.items.size() > left) {
    s.running = true;
    if (d.streams.size() > 1 && (d.random = d.random * 6364136223846793005ull + 1442695040888963407ull) >> 62 == 0)
      for (Stream* other : d.streams)
        if (!other->running && !other->items.empty() && !other->items.front().wait_for) {
          run_until(*other, other->items.size() - 1);
          break;
        }
    Stream::Item item = std::move(s.items.front());
    s.items.pop_front();
    if (item.wait_for) reach(*item.wait_for, item.until);
    try {
      if (item.body) item.body();
    } catch (const std::exception& e) {
      if (d.failure.empty()) d.failure = e.what();
    }
    s.running = false;
  }
}

cudaError_t enqueue(Stream* s, Stream::Item item) {
  if (s == nullptr || !device_set) return cudaErrorInvalidDevice;
  s->items.push_back(std::move(item));
  if (s->items.size() > kMany) run_until(*s, kMany / 2);
  return cudaSuccess;
}
cudaError_t enqueue(Stream* s, std::function<void()> body) { return enqueue(s, Stream::Item{std::move(body)}); }

// What has failed is told once.
cudaError_t outcome() {
  Device& d = device();
  if (d.failure.empty()) return cudaSuccess;
  last_text = std::move(d.failure), d.failure.clear();
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
cudaError_t cudaGetDeviceCount(int* count) { return *count = 1, cudaSuccess; }
cudaError_t cudaSetDevice(int d) {
  if (d != 0) return cudaErrorInvalidDevice;
  device_set = true;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* d) { return *d = 0, cudaSuccess; }
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int) {
  *p = {"emulated on the CPU", 9, 0, 4, device().total, kSharedBytes};
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) { return *version = 0, cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int* version) { return *version = 0, cudaSuccess; }
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  const Lock lock(device().mutex);
  *total = device().total, *free = device().total - device().reserved;
  return cudaSuccess;
}
void set_card_memory(size_t bytes) {
  const Lock lock(device().mutex);
  device().total = bytes, device().reserved = device().allocated;
}
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int) { return *pool = nullptr, cudaSuccess; }
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) { return cudaSuccess; }
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t, cudaMemPoolAttr attribute, void* value) {
  const Lock lock(device().mutex);
  *static_cast<uint64_t*>(value) = attribute == cudaMemPoolAttrReservedMemCurrent ? device().reserved : device().allocated;
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* s, unsigned) {
  const Lock lock(device().mutex);
  if (!device_set) return cudaErrorInvalidDevice;
  device().streams.insert(*s = new Stream);
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t s) {
  const Lock lock(device().mutex);
  run_until(*s, 0);
  device().streams.erase(s);
  delete s;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t s) {
  const Lock lock(device().mutex);
  if (s == nullptr || !device_set) return cudaErrorInvalidDevice;
  run_until(*s, 0);
  return outcome();
}
cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned) {
  const Lock lock(device().mutex);
  return enqueue(s, Stream::Item{{}, e, e->recorded});
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* e, unsigned) { return *e = new Event, cudaSuccess; }
cudaError_t cudaEventDestroy(cudaEvent_t e) {
  const Lock lock(device().mutex);
  reach(*e, e->recorded);
  delete e;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s) {
  const Lock lock(device().mutex);
  e->stream = s;
  const uint64_t number = ++e->recorded;
  return enqueue(s, [e, number] { e->reached = number; });
}
cudaError_t cudaEventSynchronize(cudaEvent_t e) {
  const Lock lock(device().mutex);
  reach(*e, e->recorded);
  return outcome();
}

cudaError_t cudaMallocAsync(void** at, size_t bytes, cudaStream_t s) {
  Device& d = device();
  const Lock lock(d.mutex);
  if (s == nullptr || !device_set) return cudaErrorInvalidDevice;
  if (d.allocated > d.total || bytes > d.total - d.allocated) run_until(*s, 0);  // what is to be released until here can be had
  if (d.allocated > d.total || bytes > d.total - d.allocated || !take(at, bytes)) return cudaErrorMemoryAllocation;
  d.device[static_cast<std::byte*>(*at)] = bytes, d.allocated += bytes, d.reserved = std::max(d.reserved, d.allocated);
  return cudaSuccess;
}
cudaError_t cudaFreeAsync(void* at, cudaStream_t s) {
  const Lock lock(device().mutex);
  if (!within(device().device, at, 0)) return cudaErrorInvalidValue;
  return enqueue(s, [at] {
    Device& d = device();
    const auto block = d.device.find(static_cast<std::byte*>(at));
    CHECK(block != d.device.end(), "memory is freed twice");
    const std::byte* const end = block->first + block->second;
    const bool intact = block->second >= kHuge || std::all_of(end, end + kGuard, [](std::byte b) { return b == std::byte{kGuardByte}; });
    const size_t bytes = block->second;
    d.allocated -= bytes, d.device.erase(block);
    give_back(at, bytes);
    CHECK(intact, "a kernel has written behind the end of a block");
  });
}
cudaError_t cudaMallocHost(void** at, size_t bytes) {
  const Lock lock(device().mutex);
  if (posix_memalign(at, 256, bytes > 0 ? bytes : 1) != 0) return cudaErrorMemoryAllocation;
  device().pinned[static_cast<std::byte*>(*at)] = bytes;
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* at) {
  const Lock lock(device().mutex);
  device().pinned.erase(static_cast<std::byte*>(at));
  std::free(at);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t s) {
  Device& d = device();
  const Lock lock(d.mutex);
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  if (within(d.device, from, bytes) != from_device || within(d.device, to, bytes) != to_device) return cudaErrorInvalidValue;
  if (!from_device && !within(d.pinned, from, bytes)) {
    const auto* p = static_cast<const std::byte*>(from);
    return enqueue(s, [to, taken = std::vector<std::byte>(p, p + bytes)] { std::memcpy(to, taken.data(), taken.size()); });
  }
  const cudaError_t queued = enqueue(s, [=] { std::memcpy(to, from, bytes); });
  if (queued != cudaSuccess || to_device || within(d.pinned, to, bytes)) return queued;
  return cudaStreamSynchronize(s);
}
cudaError_t cudaMemsetAsync(void* at, int value, size_t bytes, cudaStream_t s) {
  const Lock lock(device().mutex);
  if (!within(device().device, at, bytes)) return cudaErrorInvalidValue;
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
  const Lock lock(device().mutex);
  for (size_t at = 0; at + 8 <= bytes; at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, static_cast<const std::byte*>(task) + at, 8);
    if (word < uint64_t{1} << 40 || word >= uint64_t{1} << 47 || within(device().device, reinterpret_cast<const void*>(word), 0)) continue;
    const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    unsigned char resident = 0;
    if (mincore(reinterpret_cast<void*>(word / page * page), page, &resident) == 0) return cudaErrorInvalidValue;
  }
  return cudaSuccess;
}

cudaError_t set_shared_limit(const void* kernel, int bytes) {
  const Lock lock(device().mutex);
  if (bytes < 0 || static_cast<size_t>(bytes) > kSharedBytes) return cudaErrorInvalidValue;
  device().shared_limits[kernel] = bytes;
  return cudaSuccess;
}
cudaError_t enqueue_kernel(const void* kernel, std::function<void()> thread, dim3 grid, dim3 block, size_t shared, cudaStream_t s) {
  const Lock lock(device().mutex);
  const auto limit = device().shared_limits.find(kernel);
  const size_t most = limit == device().shared_limits.end() ? kSharedWithoutAsking : static_cast<size_t>(limit->second);
  if (!can_launch(grid, block)) return cudaErrorInvalidConfiguration;
  if (shared > most) return cudaErrorInvalidValue;
  return enqueue(s, [thread = std::move(thread), grid, block, shared] { run_grid(thread, grid, block, shared); });
}

cudaError_t enqueue_host_work(cudaStream_t s, std::function<void()> body) {
  const Lock lock(device().mutex);
  return enqueue(s, std::move(body));
}
bool on_device(const void* at, size_t bytes) {
  const Lock lock(device().mutex);
  return within(device().device, at, bytes);
}

}  // namespace emulated_cuda
