#include "tests/emulated/emulator.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <exception>
#include <memory>
#include <numeric>
#include <vector>

#include "base/error.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#if !defined(__x86_64__)
#error "fibers are switched by x86-64 instructions"
#endif

// Saves what a call must keep, and the stack pointer at *save; goes on where the stack `to` was left.
extern "C" void starling_switch_fiber(void** save, void* to);
asm(R"(
.text
.globl starling_switch_fiber
.type starling_switch_fiber, @function
starling_switch_fiber:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size starling_switch_fiber, . - starling_switch_fiber
)");

namespace emulated_cuda {

constinit thread_local uint3 threadIdx, blockIdx;
constinit thread_local dim3 blockDim, gridDim;

namespace {

constexpr size_t kStack = 256 << 10;
constexpr unsigned kMostThreads = 1024;

thread_local uint64_t seed = 1;
thread_local size_t last_blocks = 0;

uint64_t random_bits() {  // SplitMix64
  uint64_t x = seed += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}
size_t random_below(size_t n) { return static_cast<size_t>(random_bits() % n); }
template <class T>
void shuffle(std::vector<T>& v) {
  for (size_t i = v.size(); i > 1; --i) std::swap(v[i - 1], v[random_below(i)]);
}

struct Fiber {
  Fiber()
      : stack(static_cast<std::byte*>(mmap(nullptr, kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))) {
    CHECK(stack != MAP_FAILED, "no memory for the stack of an emulated thread");
  }
  ~Fiber() { munmap(stack, kStack); }
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  std::byte* stack;
  void* at = nullptr;          // its stack pointer while it is not running
  void* fake_stack = nullptr;  // AddressSanitizer's
  unsigned warp = 0;           // of the thread that waits on it
};

// Lanes of a warp that meet.
struct Meeting {
  unsigned mask = 0, come = 0;
  const char* kind = "";
  std::array<std::array<uint64_t, 32>, 2> values{};  // those of this time and of the time before, which lanes may still read
  int turn = 0;
  std::vector<Fiber*> waiting;
};

class Block {
 public:
  Block(const std::function<void()>& thread, dim3 size, size_t shared)
      : thread_(thread), size_(size), shared_bytes_(shared), total_(size.x * size.y * size.z), warps_((total_ + 31) / 32) {}

  void run() {
    // Exactly so long: what is behind its end is somebody else's.
    shared_ = std::make_unique<unsigned char[]>(shared_bytes_);
    std::fill_n(shared_.get(), shared_bytes_, 0xff);
    order_.resize(total_);
    std::iota(order_.begin(), order_.end(), 0u);
    shuffle(order_);
    started_ = done_ = at_barrier_ = 0;
    by_warps_ = (random_bits() & 1) != 0;
    for (;;) {
      const size_t choices = ready_.size() + (started_ < total_ ? 1 : 0);
      if (choices == 0 || failure_) break;
      const size_t pick = next_of(choices);
      Fiber* fiber = nullptr;
      if (pick < ready_.size()) {
        fiber = ready_[pick];
        ready_[pick] = ready_.back(), ready_.pop_back();
      } else {
        fiber = fresh();
      }
      go_to(fiber);
    }
    if (!failure_ && done_ != total_) failure_ = std::make_exception_ptr(starling::Error(stuck()));
    if (!failure_) return;
    idle_.clear();  // what waits is given up
    for (const auto& fiber : fibers_) idle_.push_back(fiber.get());
    std::rethrow_exception(failure_);
  }

  // -- called by threads -------------------------------------------------------------------------------------------------------------
  void* shared() const { return shared_.get(); }

  void barrier() {
    if (++at_barrier_ < total_) return wait(barrier_waits_);
    at_barrier_ = 0;
    wake(barrier_waits_);
  }

  const uint64_t* meet(unsigned mask, uint64_t value, const char* kind) {
    const unsigned lane = linear() % 32;
    auto& meetings = warps_[linear() / 32];
    if ((mask >> lane & 1) == 0) fail(fmt::format("lane {} calls {} with a mask {:#x} that leaves it out", lane, kind, mask));
    Meeting* m = nullptr;
    for (auto& other : meetings) {
      if (other->mask == mask)
        m = other.get();
      else if (other->come != 0 && (other->mask & mask) != 0)
        fail(fmt::format("{} with mask {:#x} while lanes wait for {} with mask {:#x}", kind, mask, other->kind, other->mask));
    }
    if (m == nullptr) m = meetings.emplace_back(std::make_unique<Meeting>()).get(), m->mask = mask;
    if (m->come != 0 && std::strcmp(m->kind, kind) != 0) fail(fmt::format("lanes of a warp meet at {} and at {}", m->kind, kind));
    m->kind = kind;
    auto& values = m->values[m->turn];
    values[lane] = value;
    m->come |= 1u << lane;
    if (m->come != mask) {
      wait(m->waiting);
    } else {
      m->come = 0, m->turn ^= 1;
      wake(m->waiting);
    }
    return values.data();
  }

  static thread_local Block* here;

 private:
  unsigned linear() const { return threadIdx.x + size_.x * (threadIdx.y + size_.y * threadIdx.z); }
  [[noreturn]] static void fail(const std::string& what) { throw starling::Error("emulated kernel: " + what); }

  std::string stuck() const {
    std::string at = at_barrier_ > 0 ? fmt::format("{} of {} threads came to __syncthreads", at_barrier_, total_) : "";
    for (const auto& meetings : warps_)
      for (const auto& m : meetings)
        if (m->come != 0) at += fmt::format("{}lanes {:#x} of {:#x} came to {}", at.empty() ? "" : "; ", m->come, m->mask, m->kind);
    return fmt::format("emulated kernel: block ({}, {}, {}) waits for ever: {}; {} threads have ended", blockIdx.x, blockIdx.y, blockIdx.z,
                       at, done_);
  }

  // Who goes on, of those that are ready and, as the last choice, a thread that has not begun. In half of the blocks any of them; in the
  // others one warp as long as it can, so that what it does before others have done their part shows, though its lanes wait for each other.
  size_t next_of(size_t choices) {
    const size_t any = random_below(choices);
    if (!by_warps_ || ready_.empty()) return any;
    for (size_t i = 0; i < ready_.size(); ++i)
      if (const size_t at = (any + i) % ready_.size(); ready_[at]->warp == warp_) return at;
    if (any < ready_.size()) warp_ = ready_[any]->warp;
    return any;
  }

  // A fiber that takes threads which have not begun.
  Fiber* fresh() {
    if (idle_.empty()) idle_.push_back(fibers_.emplace_back(std::make_unique<Fiber>()).get());
    Fiber* fiber = idle_.back();
    idle_.pop_back();
#if defined(__SANITIZE_ADDRESS__)
    __asan_unpoison_memory_region(fiber->stack, kStack);
#endif
    auto* top = reinterpret_cast<void**>(fiber->stack + kStack) - 1;  // as a call leaves it: 8 bytes below a multiple of 16
    *top = nullptr;
    *--top = reinterpret_cast<void*>(&entry);
    for (int i = 0; i < 6; ++i) *--top = nullptr;
    fiber->at = top, fiber->fake_stack = nullptr;
    return fiber;
  }

  static void entry() { here->threads(); }
  void threads() {
    arrived(running_);
    try {
      while (started_ < total_ && !failure_) {
        begin(order_[started_++]);
        thread_();
        ++done_;
        if (!ready_.empty() && (random_bits() & 1) != 0) break;
      }
    } catch (...) {
      failure_ = std::current_exception();
    }
    idle_.push_back(running_);
    leave(running_, true);
  }
  void begin(unsigned t) { threadIdx = {t % size_.x, t / size_.x % size_.y, t / size_.x / size_.y}; }

  void wait(std::vector<Fiber*>& list) {
    running_->warp = linear() / 32;
    list.push_back(running_);
    Fiber* const self = running_;
    const uint3 mine = threadIdx;
    leave(self, false);
    arrived(self);
    threadIdx = mine;
  }
  void wake(std::vector<Fiber*>& list) {
    ready_.insert(ready_.end(), list.begin(), list.end());
    list.clear();
  }

  // From run() to a fiber, and back. AddressSanitizer is told of both.
  void go_to(Fiber* fiber) {
    running_ = fiber;
#if defined(__SANITIZE_ADDRESS__)
    void* fake = nullptr;
    __sanitizer_start_switch_fiber(&fake, fiber->stack, kStack);
    starling_switch_fiber(&caller_, fiber->at);
    __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#else
    starling_switch_fiber(&caller_, fiber->at);
#endif
  }
  void leave(Fiber* fiber, [[maybe_unused]] bool for_ever) {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(for_ever ? nullptr : &fiber->fake_stack, caller_stack_, caller_bytes_);
#endif
    starling_switch_fiber(&fiber->at, caller_);
  }
  void arrived([[maybe_unused]] Fiber* fiber) {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(fiber->fake_stack, &caller_stack_, &caller_bytes_);
#endif
  }

  const std::function<void()>& thread_;
  dim3 size_;
  size_t shared_bytes_;
  unsigned total_, started_ = 0, done_ = 0, at_barrier_ = 0, warp_ = 0;
  bool by_warps_ = false;
  std::unique_ptr<unsigned char[]> shared_;
  std::vector<unsigned> order_;
  std::vector<std::vector<std::unique_ptr<Meeting>>> warps_;
  std::vector<Fiber*> ready_, barrier_waits_;
  static thread_local std::vector<std::unique_ptr<Fiber>> fibers_;
  static thread_local std::vector<Fiber*> idle_;
  Fiber* running_ = nullptr;
  void* caller_ = nullptr;
  const void* caller_stack_ = nullptr;
  size_t caller_bytes_ = 0;
  std::exception_ptr failure_;
};

thread_local Block* Block::here = nullptr;
thread_local std::vector<std::unique_ptr<Fiber>> Block::fibers_;
thread_local std::vector<Fiber*> Block::idle_;

}  // namespace

void set_seed(uint64_t s) { seed = s; }
void run_last_blocks(size_t blocks) { last_blocks = blocks; }

bool can_launch(dim3 grid, dim3 block) {
  const size_t threads = size_t{block.x} * block.y * block.z, blocks = size_t{grid.x} * grid.y * grid.z;
  return threads > 0 && threads <= kMostThreads && block.z <= 64 && blocks > 0 && grid.x <= 0x7fffffffu && grid.y <= 65535 &&
         grid.z <= 65535;
}

void run_grid(const std::function<void()>& thread, dim3 grid, dim3 block, size_t shared) {
  CHECK(can_launch(grid, block), "a grid that cannot be launched");
  const size_t blocks = size_t{grid.x} * grid.y * grid.z;
  std::vector<size_t> order(last_blocks > 0 ? std::min(last_blocks, blocks) : blocks);
  std::iota(order.begin(), order.end(), blocks - order.size());
  shuffle(order);
  blockDim = block, gridDim = grid;
  Block one(thread, block, shared);
  Block::here = &one;
  for (const size_t b : order) {
    blockIdx = {static_cast<unsigned>(b % grid.x), static_cast<unsigned>(b / grid.x % grid.y), static_cast<unsigned>(b / grid.x / grid.y)};
    one.run();
  }
  Block::here = nullptr;
}

void* shared_memory() { return Block::here->shared(); }
void __syncthreads() { Block::here->barrier(); }
void __syncwarp(unsigned mask) { Block::here->meet(mask, 0, "__syncwarp"); }
void __trap() { throw starling::Error("emulated kernel: __trap"); }
const uint64_t* exchange(unsigned mask, uint64_t value, const char* kind) { return Block::here->meet(mask, value, kind); }
unsigned __ballot_sync(unsigned mask, int predicate) {
  const uint64_t* all = exchange(mask, predicate != 0, "__ballot_sync");
  unsigned bits = 0;
  for (int lane = 0; lane < 32; ++lane)
    if ((mask >> lane & 1) != 0 && all[lane] != 0) bits |= 1u << lane;
  return bits;
}

__attribute__((noinline)) float __fmul_rn(float a, float b) { return a * b; }
__attribute__((noinline)) float __fadd_rn(float a, float b) { return a + b; }
__attribute__((noinline)) float __fsub_rn(float a, float b) { return a - b; }
__attribute__((noinline)) double __dmul_rn(double a, double b) { return a * b; }
__attribute__((noinline)) double __dadd_rn(double a, double b) { return a + b; }
__attribute__((noinline)) double __dsub_rn(double a, double b) { return a - b; }

}  // namespace emulated_cuda
