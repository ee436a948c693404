// The messages between workers and servers of the asynchronous family: small ones of fixed size, which announce the large ones.
#pragma once

#include "comm/communicator.h"
#include "strategies/asynchronous_options.h"
#include "strategies/steps.h"

namespace starling {

constexpr Tag kRequestTag = 101, kPushTag = 102, kAnswerTag = 103, kValuesTag = 104, kWholeTag = 105, kWordTag = 106;

// Whether a server answers each push with a word, one number that is positive when the run ends. If fetches are as frequent as pushes,
// their answers say so.
inline bool words_on_pushes(const AsynchronousOptions& options) { return options.fetch_interval > options.push_interval; }

// A worker's message to a server.
struct Request {
  enum Kind : uint8_t {
    push,   // a gradient follows, the part for this server
    fetch,  // asks for an answer and the parameters
    look,   // asks for the parameters, for validation
    save,   // asks for the parameters, the optimizer's state and the progress
    leave   // the last message; when all have left, the first server sends the first worker a summary
  };
  static constexpr int kNumbers = 4 + kSums;
  Kind kind = push;
  int64_t updates = 0;       // of the worker, summed in the push
  int64_t base_version = 0;  // of the parameters that the worker computed with, in steps of this server
  int64_t base_pushes = 0;   // how many pushes the server had received by then
  StepSums sums;             // of those updates

  Tensor pack() const;
  static Request unpack(const Tensor& numbers);
};

// A server's message to a worker.
struct Answer {
  static constexpr int kNumbers = 6 + kSums;
  int64_t version = 0, pushes = 0;  // as in Request
  bool stop = false, finished = false;
  double rate = 0;      // of the server's last step
  double fraction = 0;  // of the run's updates
  StepTotals totals;    // from the first server to the first worker: of all pushes that steps have taken since its last answer

  Tensor pack() const;
  static Answer unpack(const Tensor& numbers);
};

// How stale pushes were, as counted by the first server.
struct AsynchronousSummary {
  static constexpr int kNumbers = 14;
  struct Delay {
    double mean = 0, median = 0, most = 0, largest = 0;  // most: the bound for 95 % of the pushes
  };
  double pushes = 0, steps = 0;
  Delay in_pushes, in_steps;                                           // between fetch and push: pushes of others; steps of the server
  double fewest_updates = 0, most_updates = 0, updates = 0, held = 0;  // per worker; of all workers; fetches that waited

  Tensor pack() const;
  static AsynchronousSummary unpack(const Tensor& numbers);
  std::string text() const;
};

}  // namespace starling
