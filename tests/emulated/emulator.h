// Blocks of CUDA threads on the processor. The threads of a block are fibers; they begin, and go on after barriers, in a random order, so
// that a missing barrier shows. A barrier or an exchange between lanes to which not all come is an error, as is a launch that a card would
// refuse. Shared memory is filled with NaN before each block, and AddressSanitizer sees its ends.
#pragma once

#include <cstdint>
#include <functional>

#include "tests/emulated/include/cuda_runtime.h"

namespace emulated_cuda {

// Whether a card takes a grid of such blocks.
bool can_launch(dim3 grid, dim3 block);
// Runs `thread` for every thread of every block, blocks in a random order. Throws starling::Error.
void run_grid(const std::function<void()>& thread, dim3 grid, dim3 block, size_t shared);

// For libraries that put work on a stream themselves, and check their pointers: at the time when the work is done.
cudaError_t enqueue_host_work(cudaStream_t stream, std::function<void()> body);
bool on_device(const void* at, size_t bytes);

// What the next random orders begin from.
void set_seed(uint64_t seed);
// Of grids with more blocks only the last ones are run, as far as this thread waits for them: for sizes that would take too long. 0: all.
void run_last_blocks(size_t blocks);

// The card's memory, 8 GiB unless another card is asked for; memory that is taken stays taken.
void set_card_memory(size_t bytes);

}  // namespace emulated_cuda
