#include "interpreter.h"

#include <pthread.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <new>
#include <set>
#include <thread>

namespace starling_python {
namespace {

constexpr std::chrono::seconds kLongestEnd{10};  // that the end of Python waits for calls, such as a training that writes its checkpoint

struct State {
  std::mutex mutex;
  std::condition_variable changed;
  std::set<const starling::Translator*> translators;
  bool ending = false;
  bool cancelling = false;
  std::thread::id ends_in;  // the thread in which the interpreter ends
  int in_library = 0;       // threads that are in a call
  int taking = 0;           // threads that ask for the interpreter's lock, or call back with it
};

// Never destroyed, since threads may use it while the process ends.
State& state() {
  alignas(State) static unsigned char memory[sizeof(State)];
  static State* const made = new (memory) State;
  return *made;
}

[[noreturn]] void wait_for_the_end() {
  for (;;) pause();
}

void stop_everything() {
  State& s = state();
  std::unique_lock lock(s.mutex);
  s.ending = true;
  s.ends_in = std::this_thread::get_id();
  lock.unlock();
  PyThreadState* const thread = PyEval_SaveThread();
  lock.lock();
  const auto end = std::chrono::steady_clock::now() + kLongestEnd;
  do {
    const std::set<const starling::Translator*> translators = s.translators;
    s.cancelling = true;  // so that none of them is closed meanwhile; their callbacks need the mutex
    lock.unlock();
    for (const starling::Translator* translator : translators) {
      try {
        translator->cancel();
      } catch (const starling::Error&) {
      }
    }
    lock.lock();
    s.cancelling = false;
    s.changed.notify_all();
  } while (!s.changed.wait_for(lock, std::chrono::milliseconds(20), [&] { return s.in_library == 0 && s.taking == 0; }) &&
           std::chrono::steady_clock::now() < end);
  lock.unlock();
  PyEval_RestoreThread(thread);
}

}  // namespace

void watch_process() {
  state();
  pthread_atfork(nullptr, nullptr, [] { new (&state()) State; });  // the other threads are not in the child
  py::module_::import("atexit").attr("register")(py::cpp_function(stop_everything));
}

bool ending() {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  return s.ending && s.ends_in != std::this_thread::get_id();
}

void opened(const starling::Translator* translator) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.translators.insert(translator);
}

void closes(const starling::Translator* translator) {
  State& s = state();
  std::unique_lock lock(s.mutex);
  s.changed.wait(lock, [&] { return !s.cancelling; });
  s.translators.erase(translator);
}

Released::Released() : thread_(PyEval_SaveThread()) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  ++s.in_library;
}

Released::~Released() {
  State& s = state();
  {
    const std::lock_guard lock(s.mutex);
    --s.in_library;
    s.changed.notify_all();
    if (!s.ending || s.ends_in == std::this_thread::get_id())
      ++s.taking, s.changed.notify_all();
    else
      thread_ = nullptr;
  }
  if (!thread_) wait_for_the_end();
  PyEval_RestoreThread(thread_);
  const std::lock_guard lock(s.mutex);
  --s.taking;
  s.changed.notify_all();
}

bool with_interpreter(const std::function<void()>& f) {
  State& s = state();
  {
    const std::lock_guard lock(s.mutex);
    if (s.ending && s.ends_in != std::this_thread::get_id()) return false;
    ++s.taking;
  }
  {
    const py::gil_scoped_acquire acquire;
    f();
  }
  const std::lock_guard lock(s.mutex);
  --s.taking;
  s.changed.notify_all();
  return true;
}

Interrupts::Interrupts()
    : main_(py::module_::import("threading").attr("main_thread")().attr("ident").cast<unsigned long>() == PyThread_get_thread_ident()) {}

std::function<bool()> Interrupts::stop() {
  return [this] {
    if (ending()) return true;
    if (main_) {
      callback([] {
        if (PyErr_CheckSignals() != 0) throw py::error_already_set();
      });
    }
    return has_raised_.load();
  };
}

bool Interrupts::callback(const std::function<void()>& f) {
  bool returned = false;
  with_interpreter([&] {
    if (has_raised_) return;
    try {
      f();
      returned = true;
    } catch (py::error_already_set& e) {
      raised_.emplace(std::move(e));
      has_raised_ = true;
    }
  });
  return returned;
}

std::shared_ptr<const py::object> shared_object(py::object object) {
  return {new py::object(std::move(object)), [](const py::object* o) {
            // At the end of the interpreter, all objects are let go of anyway.
            with_interpreter([&] { delete o; });
          }};
}

}  // namespace starling_python
