// A cluster in one process and in virtual time: every rank runs the same code as over MPI, on a thread of its own, with a communicator and
// a clock that follow a model of network and machine. Virtual time alone decides the order of everything, so two runs of one scenario are
// equal bit for bit, whatever the real machine does.
#pragma once

#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "comm/world.h"
#include "sim/scenario.h"

namespace starling {

struct RankReport {
  Traffic traffic;                                          // over all communicators of the rank
  int64_t computed_ns = 0, waited_ns = 0, finished_ns = 0;  // virtual
  int64_t longest_wait_ns = 0;                              // virtual, of one wait
  std::string error;                                        // "" = it returned
};

struct SimulationResult {
  int64_t virtual_ns = 0;  // when the last rank ended
  std::vector<RankReport> ranks;
  uint64_t trace_hash = 0;  // FNV-1a over time, rank, kind, peer and bytes of every event, in order
  int64_t messages = 0, events = 0;
  int64_t lost = 0, delayed = 0, doubled = 0;  // what message faults did to messages
  std::exception_ptr error;                    // the first one in virtual time
  std::string failure;                         // its message; "": there was none
};

// Runs rank_main on every rank of the scenario. If ranks throw, the first error in virtual time is rethrown when all have ended; the others
// get a PeerError that names it from whatever they wait for. A rank that the scenario crashes throws nothing: ranks that wait for it get a
// PeerError at their deadline. Throws ConfigError if the scenario is inconsistent. If a path is given, a trace for a browser's trace viewer
// is written there.
SimulationResult simulate(const Scenario& scenario, const std::function<void(World&)>& rank_main,
                          const std::string& chrome_trace_path = "");
// The same, but returns what the ranks did also if some have thrown.
SimulationResult simulate_to_end(const Scenario& scenario, const std::function<void(World&)>& rank_main,
                                 const std::string& chrome_trace_path = "");

// Whether the scenario has crashed the rank of this thread. Its destructors still run, but a process that is killed would do nothing more.
bool crashed_rank();

}  // namespace starling
