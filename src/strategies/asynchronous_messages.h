// What workers and servers of the asynchronous family say to each other: small messages of fixed size, before the large ones they announce.
#pragma once

#include "comm/communicator.h"
#include "strategies/asynchronous_options.h"
#include "strategies/steps.h"

namespace starling {

constexpr Tag kRequestTag = 101, kPushTag = 102, kAnswerTag = 103, kValuesTag = 104, kWholeTag = 105, kWordTag = 106;

// Whether a server answers a push with a word: one number, positive when the run ends. Where fetches are as frequent their answers say it.
inline bool words_on_pushes(const AsynchronousOptions& options) { return options.fetch_interval > options.push_interval; }

// From a worker.
struct Request {
  enum Kind : uint8_t {
    push,   // the worker's part of a gradient follows
    fetch,  // asks for an answer and the parameters
    look,   // asks for the parameters, to validate them
    save,   // asks for the parameters, the optimizer's state and the progress
    leave   // nothing comes any more; when all have left, the first server sends the first worker a summary
  };
  static constexpr int kNumbers = 4 + kSums;
  Kind kind = push;
  int64_t updates = 0;       // of the worker, summed up in the push
  int64_t base_version = 0;  // of the parameters that the worker computed with: steps of this server
  int64_t base_pushes = 0;   // and how many pushes it had received
  StepSums sums;             // of those updates

  Tensor pack() const;
  static Request unpack(const Tensor& numbers);
};

// From a server.
struct Answer {
  static constexpr int kNumbers = 6 + kSums;
  int64_t version = 0, pushes = 0;  // as in Request
  bool stop = false, finished = false;
  double rate = 0;      // of the server's last step
  double fraction = 0;  // of the run's updates
  StepTotals totals;    // to the first worker from the first server: of all pushes in steps since its last answer

  Tensor pack() const;
  static Answer unpack(const Tensor& numbers);
};

// How late pushes were, at the first server.
struct AsynchronousSummary {
  static constexpr int kNumbers = 14;
  struct Delay {
    double mean = 0, median = 0, most = 0, largest = 0;  // most: of 95 % of the pushes
  };
  double pushes = 0, steps = 0;
  Delay in_pushes, in_steps;                                           // between fetch and push, of others; steps of the server
  double fewest_updates = 0, most_updates = 0, updates = 0, held = 0;  // of a worker; of all; fetches that waited

  Tensor pack() const;
  static AsynchronousSummary unpack(const Tensor& numbers);
  std::string text() const;
};

}  // namespace starling
