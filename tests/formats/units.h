// The texts of a file of units as lines, and its assembly from lines.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "formats/unit_file.h"
#include "text/unicode.h"

namespace starling {

inline const Languages kLanguages{"en", "de", {}};

template <class File>
std::string texts_of(File&& file) {
  std::string all;
  for (const TextUnit& unit : file.units()) all += unit.text + "\n";
  return all;
}

/// `translations` has a line for each unit.
template <class File>
std::string assembled(File&& file, const std::string& translations) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < translations.size();) {
    const size_t end = translations.find('\n', at);
    lines.push_back(translations.substr(at, end - at));
    at = end + 1;
  }
  return file.assemble(lines);
}

/// The file with its sentences changed by `change`, or in capitals.
template <class File>
std::string with_sentences(
    File&& file, const std::function<std::string(const std::string&)>& change = [](const std::string& s) {
      return encode_utf8(to_upper(decode_utf8(s)));
    }) {
  std::vector<std::string> all;
  for (const TextUnit& unit : file.units()) {
    const Document document(unit.text, unit.format, "en", unit.options);
    std::vector<AlignedText> sentences;
    for (const std::string& s : document.sentences()) sentences.push_back({change(s), {}});
    all.push_back(document.assemble(sentences));
  }
  return file.assemble(all);
}

/// What opening a file of a format says is wrong with it; "" if nothing is.
inline std::string why_refused(const std::string& format, const std::string& bytes, const Languages& languages = {"en", "de", {}}) {
  try {
    open_unit_file(format, bytes, languages);
  } catch (const std::exception& e) {
    return e.what();
  }
  return "";
}

}  // namespace starling
