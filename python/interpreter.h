// The interpreter's lock around calls of the library. Python ends threads that ask for its lock while it ends itself, by an exception that
// C++ cannot pass on: the process would be aborted. So a thread that comes back from the library then waits for the end of the process
// instead, and before Python ends, what callers still wait for is given up.
#pragma once

#include <pybind11/pybind11.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>

#include "starling/translator.h"

namespace starling_python {

namespace py = pybind11;

// Registers what must happen before the interpreter ends and after the process forks. Call it once, from the module's initialisation.
void watch_process();
// Whether the interpreter ends, or has begun to.
bool ending();
// Which translators must be stopped before the end.
void opened(const starling::Translator* translator);
void closes(const starling::Translator* translator);

// Releases the interpreter's lock while it lives.
class Released {
 public:
  Released();
  ~Released();
  Released(const Released&) = delete;
  Released& operator=(const Released&) = delete;

 private:
  PyThreadState* thread_;
};

// Calls f with the interpreter's lock, from a thread that does not have it, unless the interpreter ends. Returns whether f was called.
bool with_interpreter(const std::function<void()>& f);

// The signals and the exceptions of callbacks that come while a call is in the library.
class Interrupts {
 public:
  Interrupts();
  // Returns what tells the library whether to give up: Ctrl-C was pressed, a callback raised, or the interpreter ends. Only the main thread
  // handles signals.
  std::function<bool()> stop();
  // Calls f with the interpreter's lock and keeps the exception that it raises; afterwards, nothing is called any more. Returns whether f
  // was called and returned.
  bool callback(const std::function<void()>& f);
  // Returns f(), called without the lock; raises instead what was raised meanwhile.
  template <class Function>
  auto call(Function f) -> decltype(f()) {
    std::optional<decltype(f())> result;
    try {
      const Released released;
      result.emplace(f());
    } catch (const starling::Error&) {
      if (!has_raised_) throw;
    }
    if (has_raised_) throw py::error_already_set(*raised_);
    return std::move(*result);
  }

 private:
  const bool main_;
  std::atomic<bool> has_raised_ = false;
  std::optional<py::error_already_set> raised_;  // set with the lock, once
};

// An object that any thread may let go of, and call with the interpreter's lock.
std::shared_ptr<const py::object> shared_object(py::object object);

}  // namespace starling_python
