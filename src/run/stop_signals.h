// Signals that ask a program to end.
#pragma once

namespace starling {

// While an instance exists, the first SIGINT, SIGTERM, SIGHUP or SIGUSR1 is remembered, and asks for a checkpoint and an orderly end. A
// second SIGINT or SIGTERM kills; but one that follows another signal, or SIGTERM, within kOneStop seconds is the same request: a batch
// system signals all processes of a job, of which launch and mpirun pass it on. SIGUSR1 is what mpirun passes on to all ranks; it and
// SIGHUP, which a closing terminal sends more than once, never kill. A signal that was ignored before stays ignored (nohup). Instances may
// be nested and live in several threads: the first forgets what was received before, the last restores the handlers.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // The number of the signal received, or 0.
  static int received();

  static constexpr double kOneStop = 2;  // s
};

}  // namespace starling
