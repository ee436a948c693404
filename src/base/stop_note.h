// The line that a command writes when a signal ends it: which work was kept, and how to resume.
#pragma once

#include <string>

namespace starling {

/// While an object of this class exists, SIGINT, SIGTERM and SIGHUP write its line to standard error and then end the process at once, as
/// they would without it (a shell sees status 128 + signal). A signal that was ignored before stays ignored (nohup). At most one may exist.
class StopNote {
 public:
  /// An empty line prints nothing.
  explicit StopNote(std::string line);
  ~StopNote();
  StopNote(const StopNote&) = delete;
  StopNote& operator=(const StopNote&) = delete;
  /// Replaces the line. Only one thread at a time may call it.
  void set(std::string line);
};

/// Defers a signal that a StopNote would handle until this object is destroyed, so that a write in progress completes. A second signal is
/// not deferred.
class WholeWrite {
 public:
  WholeWrite();
  ~WholeWrite();
  WholeWrite(const WholeWrite&) = delete;
  WholeWrite& operator=(const WholeWrite&) = delete;
  /// Says that the write is complete: replaces the line of the StopNote, if there is one.
  void done(std::string line);
};

}  // namespace starling
