// Blocks of CUDA threads on the processor. The threads of a block are fibers; they begin, and go on after barriers, in a random order, so
// that a missing barrier shows. A barrier or an exchange between lanes to which not all come is an error, as is a launch that a card would
// refuse. Shared memory is filled with NaN before each block, and AddressSanitizer sees its ends.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

#include "tests/emulated/include/cuda_runtime.h"

namespace emulated_cuda {

// Whether a card takes a grid of such blocks.
bool can_launch(dim3 grid, dim3 block);
// Runs `thread` for every thread of every block, blocks in a random order. Throws starling::Error.
void run_grid(const std::function<void()>& thread, dim3 grid, dim3 block, size_t shared);

// For libraries that put work on a stream themselves, and check their pointers: at the time when the work is done.
cudaError_t enqueue_host_work(cudaStream_t stream, std::function<void()> body);
bool on_device(const void* at, size_t bytes);
// Where work of several cards meets: `over` is asked, with the runtime's mutex held, each time the stream has come to it, until it says
// yes.
cudaError_t enqueue_meeting(cudaStream_t stream, std::function<bool()> over);
int card_of(const void* at, size_t bytes);  // negative: none
int card_of(cudaStream_t stream);
std::recursive_mutex& runtime_mutex();
void runtime_changed();  // something may go on now
void advance_cards();    // by one piece of work, if there is one that can be done
// Does the work of all cards as far as it goes on, until `reached`, which is asked with the runtime's mutex held.
void work_until(const std::function<bool()>& reached);
uint64_t runtime_random();

// Cards of this machine; one at first. CUDA is as before its first call then.
void set_cards(int cards);
// CUDA_DEVICE_MAX_CONNECTIONS at CUDA's first call, when it is read.
std::string max_connections();
// The card that backends of this thread are made on; the first at first.
int& card_of_thread();
// Nothing that is on this card's streams gets on.
void hang_card(int card, bool hangs);
// Nothing that one card sends comes to another.
void cut_links(bool cut);
// The card cannot be connected to another in its first message or collective; -1: all can.
void refuse_connections(int card);
// From now on, NCCL answers that it is still in progress where communicators are aborted, and may use their streams from then on.
void slow_aborts(bool slow);
// A library may still use the stream, until the process ends.
void hold_stream(cudaStream_t stream);
// NCCL finds that a message of another host has not come.
void report_network_error();

// What this process has asked of the runtime and the library so far.
struct Calls {
  int64_t kernels = 0, products = 0, fills = 0, uploads = 0, downloads = 0, allocations = 0;
  int64_t event_waits = 0;                               // of the host, for work that was not done yet
  int64_t groups = 0;                                    // of NCCL's calls, of all cards
  int64_t held_streams = 0, held_streams_destroyed = 0;  // a library may still use them
  int64_t uneven_products = 0;                           // whose rows, as row-major matrices have them, are not a multiple of 16
};
Calls calls();
Calls& counted();  // with the runtime's mutex held
void count_product(int64_t rows);
void count_group();

// What the next random orders begin from.
void set_seed(uint64_t seed);
// Of grids with more blocks only the last ones are run, as far as this thread waits for them: for sizes that would take too long. 0: all.
void run_last_blocks(size_t blocks);

// The card's memory, 8 GiB unless another card is asked for; memory that is taken stays taken.
void set_card_memory(size_t bytes);

}  // namespace emulated_cuda
