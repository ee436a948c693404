// A collective operation as data: the rounds of messages that one rank sends and receives, and the arithmetic between them. Algorithms
// (comm/algorithms/) are functions that return a schedule; worlds (MPI, NCCL, simulator) execute it without knowing the algorithm. So
// rounds and bytes can be counted without sending anything, and all worlds add in the same order.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "storage/part.h"
#include "tensor/tensor.h"

namespace starling {

// Where bytes lie: in the tensor that the operation was called with, or in scratch memory that lives as long as the operation.
enum class Area : uint8_t { data, scratch };

struct Schedule {
  struct Send {
    int to;
    Area area;
    int64_t offset, bytes;
  };
  struct Receive {
    int from;
    Area area;
    int64_t offset, bytes;
  };
  // Arithmetic on `count` elements; offsets are in bytes. add and maximum work in the tensor's type; the others convert between f32 and
  // bf16.
  struct Local {
    enum Op : uint8_t { add, maximum, copy, narrow, widen, add_widened };
    Op op;
    Area to_area;
    int64_t to;
    Area from_area;
    int64_t from;
    int64_t count;
  };
  // `before` runs when the round begins; then all messages are in transit at once; `after` runs when the last of them has ended. Messages
  // between two ranks within one operation arrive in the order in which the schedule sends them. Empty messages are not sent: both sides
  // skip them.
  struct Round {
    std::vector<Local> before;
    std::vector<Send> sends;
    std::vector<Receive> receives;
    std::vector<Local> after;
  };

  std::vector<Round> rounds;
  int64_t scratch_bytes = 0;

  int64_t bytes_sent() const;
  int64_t bytes_received() const;
  int64_t messages_sent() const;
};

// Executes one step of arithmetic on memory; `type` is the tensor's (f32, f64 or i32).
void apply(const Schedule::Local& local, DType type, std::byte* data, std::byte* scratch);
// The bytes that apply() reads and writes, for models of its time.
int64_t bytes_touched(const Schedule::Local& local, DType type);

}  // namespace starling
