// Python's objects as the library takes them. Messages name the element that is wrong and are short, however large the argument is.
#pragma once

#include <pybind11/pybind11.h>

#include <string>
#include <vector>

#include "starling/translator.h"

namespace starling_python {

namespace py = pybind11;
using Strings = std::vector<std::string>;
using Tokens = std::vector<Strings>;

// Returns an object in a few words: "nan (float)", "a value of type dict".
std::string shown(py::handle object);

// Return a string, or bytes of UTF-8; a list of them, or anything that can be iterated over, such as an array; a list of such lists. Throw
// TypeError, or ValueError for a string that is not Unicode; `what` is what the message calls the object, or each element.
std::string string_of(py::handle object, const std::string& what);
Strings strings_of(py::handle list, const std::string& what = "element");
Tokens tokens_of(py::handle list, const std::string& what = "element");

// Throws TypeError for an option of another type.
starling::TranslateOptions options_of(const py::dict& given);

}  // namespace starling_python
