#include "base/mapping_guard.h"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <mutex>

#include "base/error.h"

namespace starling {
namespace {

// A signal handler serves the whole process and may neither lock nor allocate, hence these globals.
struct Slot {
  std::atomic<uintptr_t> begin{0}, end{0};
  std::atomic<bool> cut{false};
};
constexpr size_t kSlots = 100'000;
std::array<Slot, kSlots> slots;
std::atomic<size_t> used{0};  // slots from here on were never in use
std::mutex taking;
struct sigaction before;

void on_bus_error(int signal, siginfo_t* info, void* context) {
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  for (size_t i = 0, count = used; i < count; ++i) {
    Slot& slot = slots[i];
    if (address < slot.begin || address >= slot.end) continue;
    void* const at = reinterpret_cast<void*>(address / page * page);
    if (mmap(at, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED) break;
    slot.cut = true;
    return;
  }
  if ((before.sa_flags & SA_SIGINFO) && before.sa_sigaction) return before.sa_sigaction(signal, info, context);
  if (!(before.sa_flags & SA_SIGINFO) && before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) return before.sa_handler(signal);
  std::signal(signal, SIG_DFL);  // the read is retried and kills the program
}

void handle_bus_errors() {
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  sigaction(SIGBUS, &action, &before);
}

}  // namespace

MappingGuard::MappingGuard(std::span<const std::byte> bytes, std::string path) : path_(std::move(path)) {
  if (bytes.empty()) return;
  auto mine = std::make_unique<size_t>(0);
  const std::lock_guard lock(taking);
  static const bool handled = (handle_bus_errors(), true);
  (void)handled;
  size_t i = 0;
  while (i < kSlots && slots[i].end != 0) ++i;
  if (i == kSlots) return;
  const auto begin = reinterpret_cast<uintptr_t>(bytes.data());
  slots[i].cut = false;
  slots[i].begin = begin;
  slots[i].end = begin + bytes.size();
  if (i >= used) used = i + 1;
  *mine = i;
  slot_.reset(mine.release());
}

void MappingGuard::Release::operator()(size_t* slot) const {
  {
    const std::lock_guard lock(taking);
    slots[*slot].end = 0;
    slots[*slot].begin = 0;
  }
  delete slot;
}

void MappingGuard::require_whole() const {
  if (!slot_ || !slots[*slot_].cut) return;
  throw IoError(
      fmt::format("{}: was truncated while it was being read, or its disk failed; restore it, and put a new version in its place by "
                  "renaming (mv), not by writing into it",
                  path_));
}

}  // namespace starling
