// The extension module starling._starling: the library's classes for Python. What is convenient in Python is in python/starling/.
#include <pybind11/functional.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <limits>
#include <mutex>

#include "conversions.h"
#include "interpreter.h"
#include "starling/metrics.h"
#include "starling/model.h"
#include "starling/trainer.h"
#include "starling/translator.h"
#include "starling/version.h"

namespace {

using namespace starling_python;
using starling::TranslateOptions;
using starling::Translator;
using Translations = std::vector<starling::Translation>;

// Returns the words of a translation, each with its confidence.
std::vector<std::pair<py::str, double>> words_of(const starling::Hypothesis& h) {
  std::vector<std::pair<py::str, double>> words;
  for (const starling::Word& w : h.words) {
    PyObject* const text = PyUnicode_DecodeUTF8(h.text.data() + w.begin, static_cast<Py_ssize_t>(w.end - w.begin), "replace");
    if (!text) throw py::error_already_set();
    words.emplace_back(py::reinterpret_steal<py::str>(text), w.confidence);
  }
  return words;
}

// Returns the options of a call. `on_token`, called with each Step, ends a translation if it returns False; what it raises is kept.
TranslateOptions options_with_callbacks(const py::dict& given, const std::shared_ptr<Interrupts>& interrupts) {
  TranslateOptions options = options_of(given);
  options.stop = interrupts->stop();
  if (!given.contains("on_token") || given["on_token"].is_none()) return options;
  options.on_token = [interrupts, callback = shared_object(given["on_token"])](const starling::Step& step) {
    bool goes_on = false;
    interrupts->callback([&] { goes_on = !(*callback)(step).is(py::bool_(false)); });
    return goes_on;
  };
  return options;
}

// Calls f(options) without the interpreter's lock; Ctrl-C gives up what it waits for.
template <class Function>
auto interruptible(const py::dict& given, Function f) {
  const auto interrupts = std::make_shared<Interrupts>();  // a callback may be under way when the call is given up
  TranslateOptions options = options_with_callbacks(given, interrupts);
  return interrupts->call([&] { return f(options); });
}

// Translations that are being computed. They are given up when nobody has them any more.
class Request {
 public:
  // `submit`: Translator::translate_async or translate_tokens_async, with the sentences.
  template <class Submit>
  Request(py::object translator, const py::dict& given, Submit submit)
      : translator_(std::move(translator)), state_(std::make_shared<State>()), interrupts_(std::make_shared<Interrupts>()) {
    const auto& t = translator_.cast<const Translator&>();
    TranslateOptions options = options_with_callbacks(given, interrupts_);
    number_ = interrupts_->call([&] {
      const auto answer = [state = state_](Translations translations, std::exception_ptr error) {
        const std::lock_guard lock(state->mutex);
        state->translations = std::move(translations);
        state->error = std::move(error);
        state->done = true;
        state->changed.notify_all();
      };
      return submit(t, options, answer);
    });
  }
  ~Request() {
    if (done()) return;
    try {
      const auto& t = translator_.cast<const Translator&>();
      const Released released;
      t.cancel(number_);
    } catch (const std::exception&) {  // in a forked process
    }
  }
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  bool done() const {
    const std::lock_guard lock(state_->mutex);
    return state_->done;
  }

  Translations result() const {
    wait();
    return state_->translations;
  }
  starling::Translation result_of(size_t sentence) const {
    wait();
    if (sentence >= state_->translations.size()) throw py::index_error();
    return state_->translations[sentence];
  }

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    bool done = false;
    Translations translations;
    std::exception_ptr error;
  };

  // Raises what went wrong. Afterwards nobody changes the state.
  void wait() const {
    translator_.cast<const Translator&>().model();  // refused in a forked process, where nobody would answer
    Interrupts interrupts;
    const auto stop = interrupts.stop();
    interrupts.call([&] {
      std::unique_lock lock(state_->mutex);
      while (!state_->changed.wait_for(lock, std::chrono::milliseconds(50), [&] { return state_->done; })) {
        lock.unlock();
        if (stop()) throw starling::Error(starling::ErrorKind::cancelled, "the wait was given up");
        lock.lock();
      }
      return true;
    });
    interrupts_->call([] { return true; });  // raises what a callback has raised
    if (state_->error) std::rethrow_exception(state_->error);
  }

  py::object translator_;
  std::shared_ptr<State> state_;
  std::shared_ptr<Interrupts> interrupts_;
  std::int64_t number_ = 0;
};

// Trains without the interpreter's lock; callbacks take it. An exception of a callback, or Ctrl-C, ends the run with a checkpoint and is
// raised then.
starling::TrainResult train(const std::string& configuration, const std::vector<std::pair<std::string, std::string>>& keys,
                            const py::object& on_event, const py::object& on_log) {
  Interrupts interrupts;
  starling::TrainOptions options;
  options.keys = keys;
  if (!on_event.is_none()) options.event = [&](const std::string& json) { interrupts.callback([&] { on_event(json); }); };
  if (!on_log.is_none()) options.log = [&](const std::string& line) { interrupts.callback([&] { on_log(line); }); };
  options.stop = interrupts.stop();
  return interrupts.call([&] { return starling::train(configuration, options); });
}

// What is under way is finished first, without the interpreter's lock.
struct Closes {
  void operator()(Translator* translator) const {
    const Released released;
    closes(translator);
    delete translator;
  }
};

std::unique_ptr<Translator, Closes> open(const py::object& model, const py::object& device, const py::object& precision,
                                         const py::object& threads, const py::object& max_source_tokens, const py::object& rows,
                                         const py::object& log) {
  const auto number = [](const char* name, const py::object& value) {
    const py::object index = py::reinterpret_steal<py::object>(PyNumber_Index(value.ptr()));
    if (!index) {
      PyErr_Clear();
      throw py::type_error(std::string(name) + " cannot be " + shown(value) + "; give a whole number");
    }
    int overflow = 0;
    const long all = PyLong_AsLongAndOverflow(index.ptr(), &overflow);
    constexpr long most = std::numeric_limits<int>::max();
    return static_cast<int>(overflow > 0 ? most : overflow < 0 ? -most : std::clamp(all, -most, most));  // the library refuses these
  };
  starling::TranslatorOptions options{.device = string_of(device, "device"),
                                      .precision = string_of(precision, "precision"),
                                      .threads = number("threads", threads),
                                      .max_source_tokens = number("max_source_tokens", max_source_tokens),
                                      .rows = number("rows", rows)};
  Interrupts interrupts;
  if (!log.is_none()) options.log = [&](const std::string& line) { interrupts.callback([&] { log(line); }); };
  const std::string path = string_of(model, "model");
  std::unique_ptr<Translator, Closes> made =
      interrupts.call([&] { return std::unique_ptr<Translator, Closes>(new Translator(path, options)); });
  opened(made.get());
  return made;
}

void require_main_interpreter() {
  if (PyInterpreterState_Get() != PyInterpreterState_Main())
    throw py::import_error("starling does not work in subinterpreters; import it in the main interpreter");
}

void define(py::module_& m);

}  // namespace

// As PYBIND11_MODULE does, which waits for ever in a subinterpreter.
PYBIND11_PLUGIN_IMPL(_starling) {
  PYBIND11_CHECK_PYTHON_VERSION
  try {
    require_main_interpreter();
    PYBIND11_ENSURE_INTERNALS_READY
    static py::module_::module_def definition;
    auto m = py::module_::create_extension_module("_starling", nullptr, &definition);
    define(m);
    return m.ptr();
  }
  PYBIND11_CATCH_INIT_EXCEPTIONS
}

namespace {

void define(py::module_& m) {
  using namespace starling;
  m.attr("__version__") = version();

  static py::exception<Error> error(m, "StarlingError", PyExc_RuntimeError);
  static py::exception<Error> usage(m, "UsageError", py::make_tuple(error, py::reinterpret_borrow<py::object>(PyExc_ValueError)));
  static py::exception<Error> data(m, "DataError", error);
  static py::exception<Error> io(m, "FileError", py::make_tuple(error, py::reinterpret_borrow<py::object>(PyExc_OSError)));
  static py::exception<Error> memory(m, "MemoryLimitError", py::make_tuple(error, py::reinterpret_borrow<py::object>(PyExc_MemoryError)));
  static py::exception<Error> training(m, "TrainingError", error);
  py::register_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown) std::rethrow_exception(thrown);
    } catch (const Error& e) {
      switch (e.kind()) {
        case ErrorKind::usage:
          return usage(e.what());
        case ErrorKind::data:
          return data(e.what());
        case ErrorKind::io:
          return io(e.what());
        case ErrorKind::memory:
          return memory(e.what());
        case ErrorKind::training:
          return training(e.what());
        case ErrorKind::internal:
        case ErrorKind::cancelled:
          return error(e.what());
      }
    }
  });

  py::class_<Hypothesis>(m, "Hypothesis")
      .def_readonly("text", &Hypothesis::text)
      .def_readonly("tokens", &Hypothesis::tokens)
      .def_readonly("score", &Hypothesis::score)
      .def_readonly("log_probability", &Hypothesis::log_probability)
      .def_readonly("alignment", &Hypothesis::alignment)
      .def_readonly("end", &Hypothesis::end)
      .def_readonly("attention", &Hypothesis::attention)
      .def_readonly("confidence", &Hypothesis::confidence)
      .def_property_readonly("words", words_of)
      .def("__repr__", [](const Hypothesis& h) {
        return "Hypothesis(text=" + py::repr(py::cast(h.text)).cast<std::string>() + ", score=" + std::to_string(h.score) + ")";
      });
  py::class_<Translation>(m, "Translation")
      .def_readonly("hypotheses", &Translation::hypotheses)
      .def_readonly("truncated", &Translation::truncated)
      .def_property_readonly("text", [](const Translation& t) { return t.text(); })
      .def_property_readonly("score", [](const Translation& t) { return t.hypotheses.front().score; })
      .def_property_readonly("tokens", [](const Translation& t) { return t.hypotheses.front().tokens; })
      .def_property_readonly("alignment", [](const Translation& t) { return t.hypotheses.front().alignment; })
      .def_property_readonly("confidence", [](const Translation& t) { return t.hypotheses.front().confidence; })
      .def_property_readonly("words", [](const Translation& t) { return words_of(t.hypotheses.front()); })
      .def("__str__", [](const Translation& t) { return t.text(); })
      .def("__repr__", [](const Translation& t) { return "Translation(text=" + py::repr(py::cast(t.text())).cast<std::string>() + ")"; });
  py::class_<Step>(m, "Step")
      .def_readonly("sentence", &Step::sentence)
      .def_readonly("hypothesis", &Step::hypothesis)
      .def_readonly("token", &Step::token)
      .def_readonly("token_id", &Step::token_id)
      .def_readonly("log_probability", &Step::log_probability)
      .def_readonly("last", &Step::last)
      .def_readonly("text", &Step::text);
  py::class_<Score>(m, "Score")
      .def_readonly("tokens", &Score::tokens)
      .def_readonly("log_probabilities", &Score::log_probabilities)
      .def_readonly("log_probability", &Score::log_probability);
  py::class_<ModelInfo>(m, "ModelInfo")
      .def_readonly("directory", &ModelInfo::directory)
      .def_readonly("architecture", &ModelInfo::architecture)
      .def_readonly("step", &ModelInfo::step)
      .def_readonly("quantized", &ModelInfo::quantized)
      .def_readonly("source_pieces", &ModelInfo::source_pieces)
      .def_readonly("target_pieces", &ModelInfo::target_pieces)
      .def_readonly("reads_source_end", &ModelInfo::reads_source_end)
      .def_readonly("unknown_token", &ModelInfo::unknown_token)
      .def_readonly("end_token", &ModelInfo::end_token)
      .def_property_readonly("directions", [](const ModelInfo& i) {
        std::vector<std::pair<std::string, std::string>> all;
        for (const Direction& d : i.directions) all.emplace_back(d.source, d.target);
        return all;
      });
  py::class_<MetricScore>(m, "MetricScore")
      .def_readonly("name", &MetricScore::name)
      .def_readonly("score", &MetricScore::score)
      .def_readonly("signature", &MetricScore::signature)
      .def("__float__", [](const MetricScore& s) { return s.score; })
      .def("__repr__", [](const MetricScore& s) { return s.signature + " = " + std::to_string(s.score); });
  py::class_<TrainResult>(m, "TrainResult")
      .def_readonly("complete", &TrainResult::complete)
      .def_readonly("directory", &TrainResult::directory);

  py::class_<Request>(m, "Request").def("done", &Request::done).def("result", &Request::result).def("result_of", &Request::result_of);
  py::class_<Translator, std::unique_ptr<Translator, Closes>>(m, "Translator")
      .def(py::init(&open))
      .def("translate",
           [](const Translator& t, const py::object& given, const py::dict& options) {
             Strings sentences = strings_of(given);
             return interruptible(options, [&](TranslateOptions& o) { return t.translate(sentences, o); });
           })
      .def("translate_tokens",
           [](const Translator& t, const py::object& given, const py::dict& options) {
             const Tokens sentences = tokens_of(given);
             return interruptible(options, [&](TranslateOptions& o) { return t.translate_tokens(sentences, o); });
           })
      .def("submit",
           [](py::object translator, const py::object& given, const py::dict& options) {
             Strings sentences = strings_of(given);
             return std::make_unique<Request>(std::move(translator), options, [&](const Translator& t, TranslateOptions& o, auto answer) {
               return t.translate_async(std::move(sentences), o, answer);
             });
           })
      .def("submit_tokens",
           [](py::object translator, const py::object& given, const py::dict& options) {
             const Tokens sentences = tokens_of(given);
             return std::make_unique<Request>(std::move(translator), options, [&](const Translator& t, TranslateOptions& o, auto answer) {
               return t.translate_tokens_async(sentences, o, answer);
             });
           })
      .def("translate_document",
           [](const Translator& t, const py::object& given, bool html, const py::dict& options) {
             const std::string text = string_of(given, "the argument");
             return interruptible(options,
                                  [&](TranslateOptions& o) { return t.translate_document(text, html ? Format::html : Format::text, o); });
           })
      .def("score",
           [](const Translator& t, const py::object& sources, const py::object& targets, const py::dict& options) {
             const Strings from = strings_of(sources), to = strings_of(targets);
             return interruptible(options, [&](TranslateOptions& o) { return t.score(from, to, o); });
           })
      .def("score_tokens",
           [](const Translator& t, const py::object& sources, const py::object& targets, const py::dict& options) {
             const Tokens from = tokens_of(sources, "source"), to = tokens_of(targets, "target");
             return interruptible(options, [&](TranslateOptions& o) { return t.score_tokens(from, to, o); });
           })
      .def("source_tokens",
           [](const Translator& t, const py::object& given) {
             const std::string text = string_of(given, "the argument");
             return interruptible({}, [&](TranslateOptions& o) { return t.source_tokens(text, o.stop); });
           })
      .def("target_tokens",
           [](const Translator& t, const py::object& given) {
             const std::string text = string_of(given, "the argument");
             return interruptible({}, [&](TranslateOptions& o) { return t.target_tokens(text, o.stop); });
           })
      .def("join_target_tokens",
           [](const Translator& t, const py::object& given) {
             const Strings tokens = strings_of(given);
             const Released released;
             return t.join_target_tokens(tokens);
           })
      .def("known_target_tokens", [](const Translator& t, const py::object& given) { return t.known_target_tokens(strings_of(given)); })
      .def_property_readonly("under_way", &Translator::under_way)
      .def_property_readonly("device", &Translator::device)
      .def_property_readonly("precision", &Translator::precision)
      .def("cancel",
           [](const Translator& t) {
             const Released released;
             t.cancel();
           })
      .def_property_readonly("model", &Translator::model)
      .def_property_readonly("machine", &Translator::machine);

  m.def(
      "describe_model",
      [](const std::string& model) {
        const Released released;
        return describe_model(model);
      },
      py::arg("model"));
  m.def(
      "export_model",
      [](const std::string& model, const std::string& format, const std::string& output, bool int8) {
        const Released released;
        export_model(model, format, output, int8);
      },
      py::arg("model"), py::arg("format"), py::arg("output"), py::arg("int8") = false);
  m.def("evaluate", [](const std::string& metric, const py::object& given, const py::object& references_of, const std::string& tokenize,
                       bool lowercase) {
    const Strings hypotheses = strings_of(given);
    const Tokens references = tokens_of(references_of, "reference");
    const Released released;
    return evaluate(metric, hypotheses, references, {.tokenize = tokenize, .lowercase = lowercase});
  });
  m.def("card_count", &card_count);
  m.def("train", &::train);
  m.def("require_main_interpreter", &require_main_interpreter);
  watch_process();
}

}  // namespace
