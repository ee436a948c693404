// The extension module starling._starling: the library's classes for Python. What is convenient in Python is in python/starling/.
#include <pybind11/functional.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <atomic>
#include <chrono>

#include "starling/metrics.h"
#include "starling/model.h"
#include "starling/trainer.h"
#include "starling/translator.h"
#include "starling/version.h"

namespace py = pybind11;

namespace {

using Strings = std::vector<std::string>;
using Tokens = std::vector<Strings>;

// Waits for a result without the interpreter's lock, and looks every tenth of a second whether Ctrl-C was pressed.
std::vector<starling::Translation> waited_for(std::future<std::vector<starling::Translation>> future) {
  for (;;) {
    {
      const py::gil_scoped_release release;
      if (future.wait_for(std::chrono::milliseconds(100)) == std::future_status::ready) return future.get();
    }
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
  }
}

starling::TranslateOptions options_of(const py::dict& given) {
  starling::TranslateOptions o;
  const auto take = [&](const char* name, auto& member) {
    if (!given.contains(name) || given[name].is_none()) return;
    try {
      member = given[name].cast<typename std::decay_t<decltype(member)>>();
    } catch (const py::cast_error&) {
      throw py::type_error(std::string(name) + " cannot be " + py::repr(given[name]).cast<std::string>());
    }
  };
  take("beam", o.beam);
  take("n_best", o.n_best);
  take("length_penalty", o.length_penalty);
  take("length_penalty_form", o.length_penalty_form);
  take("coverage_penalty", o.coverage_penalty);
  take("prune_threshold", o.prune_threshold);
  take("max_length_factor", o.max_length_factor);
  take("max_length_offset", o.max_length_offset);
  take("target_language", o.target_language);
  take("source_prefix", o.source_prefix);
  take("target_prefix", o.target_prefix);
  take("suppress", o.suppress);
  take("no_repeat_ngram", o.no_repeat_ngram);
  take("allow_unknown", o.allow_unknown);
  take("alignment", o.alignment);
  return o;
}

// Trains without the interpreter's lock; callbacks take it. An exception of a callback, or Ctrl-C, ends the run with a checkpoint and is
// raised then.
starling::TrainResult train(const std::string& configuration, const std::vector<std::pair<std::string, std::string>>& keys,
                            const py::object& on_event, const py::object& on_log) {
  std::optional<py::error_already_set> raised;
  const auto call = [&](const py::object& callback, const std::string& text) {
    const py::gil_scoped_acquire acquire;
    if (raised) return;
    try {
      callback(text);
    } catch (py::error_already_set& e) {
      raised.emplace(std::move(e));
    }
  };
  starling::TrainOptions options;
  options.keys = keys;
  if (!on_event.is_none()) options.event = [&](const std::string& json) { call(on_event, json); };
  if (!on_log.is_none()) options.log = [&](const std::string& line) { call(on_log, line); };
  options.stop = [&] {
    const py::gil_scoped_acquire acquire;
    if (!raised && PyErr_CheckSignals() != 0) raised.emplace();
    return raised.has_value();
  };
  starling::TrainResult result;
  {
    const py::gil_scoped_release release;
    result = starling::train(configuration, options);
  }
  if (raised) throw std::move(*raised);
  return result;
}

// What is under way is finished first, without the interpreter's lock.
struct Closes {
  void operator()(starling::Translator* translator) const {
    const py::gil_scoped_release release;
    delete translator;
  }
};

}  // namespace

PYBIND11_MODULE(_starling, m) {
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
      .def("__str__", [](const Translation& t) { return t.text(); })
      .def("__repr__", [](const Translation& t) { return "Translation(text=" + py::repr(py::cast(t.text())).cast<std::string>() + ")"; });
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

  py::class_<Translator, std::unique_ptr<Translator, Closes>>(m, "Translator")
      .def(py::init([](const std::string& model, const std::string& device, const std::string& precision, int threads,
                       int max_source_tokens, int rows, const py::object& log) {
        TranslatorOptions o{
            .device = device, .precision = precision, .threads = threads, .max_source_tokens = max_source_tokens, .rows = rows};
        if (!log.is_none())
          o.log = [&](const std::string& line) {
            const py::gil_scoped_acquire acquire;
            log(line);
          };
        const py::gil_scoped_release release;
        return std::unique_ptr<Translator, Closes>(new Translator(model, o));
      }))
      .def("translate", [](const Translator& t, Strings sentences,
                           const py::dict& options) { return waited_for(t.translate_async(std::move(sentences), options_of(options))); })
      .def("translate_tokens", [](const Translator& t, const Tokens& sentences,
                                  const py::dict& options) { return waited_for(t.translate_tokens_async(sentences, options_of(options))); })
      .def("translate_document",
           [](const Translator& t, const std::string& text, bool html, const py::dict& options) {
             const TranslateOptions o = options_of(options);
             const py::gil_scoped_release release;
             return t.translate_document(text, html ? Format::html : Format::text, o);
           })
      .def("score",
           [](const Translator& t, const Strings& sources, const Strings& targets, const py::dict& options) {
             const TranslateOptions o = options_of(options);
             const py::gil_scoped_release release;
             return t.score(sources, targets, o);
           })
      .def("score_tokens",
           [](const Translator& t, const Tokens& sources, const Tokens& targets, const py::dict& options) {
             const TranslateOptions o = options_of(options);
             const py::gil_scoped_release release;
             return t.score_tokens(sources, targets, o);
           })
      .def("source_tokens", &Translator::source_tokens)
      .def("target_tokens", &Translator::target_tokens)
      .def("join_target_tokens", &Translator::join_target_tokens)
      .def_property_readonly("model", &Translator::model)
      .def_property_readonly("machine", &Translator::machine);

  m.def("describe_model", &describe_model, py::arg("model"), py::call_guard<py::gil_scoped_release>());
  m.def("export_model", &export_model, py::arg("model"), py::arg("format"), py::arg("output"), py::arg("int8") = false,
        py::call_guard<py::gil_scoped_release>());
  m.def("evaluate",
        [](const std::string& metric, const Strings& hypotheses, const Tokens& references, const std::string& tokenize, bool lowercase) {
          const py::gil_scoped_release release;
          return evaluate(metric, hypotheses, references, {.tokenize = tokenize, .lowercase = lowercase});
        });
  m.def("train", &::train);
}
