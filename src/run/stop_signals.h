// Signals that ask a program to end.
#pragma once

namespace starling {

// While an instance exists, the first SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2 or SIGXCPU is remembered, and asks for a checkpoint and an
// orderly end. A second SIGINT or SIGTERM kills; but one that follows another signal, or SIGTERM, within kOneStop seconds is the same
// request: a batch system signals all processes of a job, of which launch and mpirun pass it on. The others never kill: SIGHUP, which a
// closing terminal sends more than once, SIGUSR1, which mpirun passes on to all ranks, SIGUSR2, by which batch systems announce the end,
// and SIGXCPU, which the system repeats each second when the processor time is used up. A signal that was ignored before stays ignored
// (nohup). Instances may be nested and live in several threads: the first forgets what was received before, the last restores the handlers.
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
