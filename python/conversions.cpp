#include "conversions.h"

#include <pybind11/stl.h>

namespace starling_python {
namespace {

constexpr Py_ssize_t kShownCharacters = 40;

py::list list_of(py::handle object, const std::string& of, const std::string& what) {
  if (PyUnicode_Check(object.ptr()) || PyBytes_Check(object.ptr()) || PyDict_Check(object.ptr()))
    throw py::type_error(what + " is " + shown(object) + ", not a list of " + of);
  PyObject* const list = PySequence_List(object.ptr());
  if (list) return py::reinterpret_steal<py::list>(list);
  if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw py::error_already_set();  // raised while it was iterated over
  PyErr_Clear();
  throw py::type_error(what + " is " + shown(object) + ", not a list of " + of);
}

template <class Member>
constexpr const char* kKind = std::is_same_v<Member, bool>          ? "True or False"
                              : std::is_integral_v<Member>          ? "a whole number"
                              : std::is_floating_point_v<Member>    ? "a number"
                              : std::is_same_v<Member, std::string> ? "a string"
                                                                    : "";
template <class Value>
constexpr const char* kKind<std::optional<Value>> = kKind<Value>;

template <class Member>
void take(const py::dict& given, const char* name, Member& member) {
  if (!given.contains(name) || given[name].is_none()) return;
  const py::object value = given[name];
  try {
    member = value.cast<typename std::decay_t<Member>>();
  } catch (const py::cast_error&) {
    const std::string kind = kKind<std::decay_t<Member>>;
    throw py::type_error(std::string(name) + " cannot be " + shown(value) + (kind.empty() ? "" : "; give " + kind));
  }
}

}  // namespace

std::string shown(py::handle object) {
  const std::string type = Py_TYPE(object.ptr())->tp_name;
  if (object.is_none()) return "None";
  py::object brief = py::reinterpret_borrow<py::object>(object);
  if (PyUnicode_Check(object.ptr()))
    brief = py::reinterpret_steal<py::object>(PyUnicode_Substring(object.ptr(), 0, kShownCharacters));
  else if (PyBytes_Check(object.ptr()))
    brief = py::reinterpret_steal<py::object>(PySequence_GetSlice(object.ptr(), 0, kShownCharacters));
  else if (!PyFloat_Check(object.ptr()) && !PyLong_Check(object.ptr()))
    return "a value of type " + type;
  py::object text = py::reinterpret_steal<py::object>(brief ? PyObject_Repr(brief.ptr()) : nullptr);
  const char* utf8 = text ? PyUnicode_AsUTF8(text.ptr()) : nullptr;
  if (!utf8) PyErr_Clear();  // an integer of thousands of digits
  if (!utf8 || PyUnicode_GetLength(text.ptr()) > 4 * kShownCharacters) return "a value of type " + type;
  const bool whole = (!PyUnicode_Check(object.ptr()) && !PyBytes_Check(object.ptr())) || PyObject_Length(object.ptr()) <= kShownCharacters;
  return std::string(utf8) + (whole ? "" : "...") + (PyUnicode_Check(object.ptr()) ? "" : " (" + type + ")");
}

std::string string_of(py::handle object, const std::string& what) {
  Py_ssize_t size = 0;
  if (PyBytes_Check(object.ptr())) return {PyBytes_AS_STRING(object.ptr()), static_cast<size_t>(PyBytes_GET_SIZE(object.ptr()))};
  if (!PyUnicode_Check(object.ptr())) throw py::type_error(what + " is " + shown(object) + ", not a string");
  if (const char* utf8 = PyUnicode_AsUTF8AndSize(object.ptr(), &size)) return {utf8, static_cast<size_t>(size)};
  PyErr_Clear();
  throw py::value_error(what + " is " + shown(object) + ", which has a surrogate and so is not Unicode text");
}

Strings strings_of(py::handle object, const std::string& what) {
  const py::list list = list_of(object, "strings", what == "element" ? "the argument" : what);
  Strings strings;
  strings.reserve(list.size());
  for (size_t i = 0; i < list.size(); ++i) {
    const py::handle item = PyList_GET_ITEM(list.ptr(), static_cast<Py_ssize_t>(i));
    if (PyUnicode_Check(item.ptr())) {  // the usual case, without a text for what is wrong
      Py_ssize_t size = 0;
      if (const char* utf8 = PyUnicode_AsUTF8AndSize(item.ptr(), &size)) {
        strings.emplace_back(utf8, static_cast<size_t>(size));
        continue;
      }
      PyErr_Clear();
    }
    strings.push_back(string_of(item, (what == "element" ? what : what + ", token") + " " + std::to_string(i)));
  }
  return strings;
}

Tokens tokens_of(py::handle object, const std::string& what) {
  const py::list list = list_of(object, "lists of tokens", "the argument");
  Tokens tokens;
  tokens.reserve(list.size());
  for (size_t i = 0; i < list.size(); ++i) tokens.push_back(strings_of(list[i], what + " " + std::to_string(i)));
  return tokens;
}

starling::TranslateOptions options_of(const py::dict& given) {
  starling::TranslateOptions o;
  take(given, "beam", o.beam);
  take(given, "n_best", o.n_best);
  take(given, "length_penalty", o.length_penalty);
  take(given, "length_penalty_form", o.length_penalty_form);
  take(given, "coverage_penalty", o.coverage_penalty);
  take(given, "prune_threshold", o.prune_threshold);
  take(given, "max_length_factor", o.max_length_factor);
  take(given, "max_length_offset", o.max_length_offset);
  take(given, "target_language", o.target_language);
  take(given, "source_prefix", o.source_prefix);
  take(given, "target_prefix", o.target_prefix);
  take(given, "suppress", o.suppress);
  take(given, "no_repeat_ngram", o.no_repeat_ngram);
  take(given, "allow_unknown", o.allow_unknown);
  take(given, "alignment", o.alignment);
  take(given, "confidence", o.confidence);
  take(given, "glossary", o.glossary);
  take(given, "min_length", o.min_length);
  take(given, "patience", o.patience);
  take(given, "repetition_penalty", o.repetition_penalty);
  take(given, "word_penalty", o.word_penalty);
  take(given, "prefix_bias", o.prefix_bias);
  take(given, "end_tokens", o.end_tokens);
  take(given, "max_source_tokens", o.max_source_tokens);
  take(given, "attention", o.attention);
  take(given, "alternatives", o.alternatives);
  take(given, "min_alternative_probability", o.min_alternative_probability);
  bool sample = given.contains("top_k") || given.contains("top_p") || given.contains("temperature");
  take(given, "sample", sample);
  if (sample) {
    o.sampling.emplace();
    take(given, "top_k", o.sampling->top_k);
    take(given, "top_p", o.sampling->top_p);
    take(given, "temperature", o.sampling->temperature);
    take(given, "seed", o.sampling->seed);
  }
  return o;
}

}  // namespace starling_python
