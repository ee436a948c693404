// Signals that ask a program to end.
#pragma once

namespace starling {

// While an instance exists, the first SIGINT, SIGTERM or SIGHUP is remembered, and asks for a checkpoint and an orderly end; a second one
// kills, except SIGHUP, which a closing terminal sends more than once. A signal that was ignored before stays ignored (nohup).
// Instances may be nested and live in several threads: the first forgets what was received before, the last restores the handlers.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // The number of the signal received, or 0.
  static int received();
};

}  // namespace starling
