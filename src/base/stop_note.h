// What a command that is told to end says: in a line, what is kept of its work and how to go on.
#pragma once

#include <string>

namespace starling {

/// While one of these lives, SIGINT, SIGTERM and SIGHUP write its line to standard error and end the process at once, as these signals do
/// without it (status 128 + signal in a shell). A signal that was ignored before stays ignored (nohup). One at a time.
class StopNote {
 public:
  /// An empty line says nothing.
  explicit StopNote(std::string line);
  ~StopNote();
  StopNote(const StopNote&) = delete;
  StopNote& operator=(const StopNote&) = delete;
  /// The line from here on. Of one thread at a time.
  void set(std::string line);
};

/// While one of these lives, a signal that a StopNote would answer waits until its end, as what is being written is to be whole. A second one
/// does not wait.
class WholeWrite {
 public:
  WholeWrite();
  ~WholeWrite();
  WholeWrite(const WholeWrite&) = delete;
  WholeWrite& operator=(const WholeWrite&) = delete;
  /// It is written: the line of the StopNote, if there is one, from here on.
  void done(std::string line);
};

}  // namespace starling
