// Changes the texts of files without a model, for bench/random_files.py: "same" gives every sentence back, "capitals" puts it in capitals,
// and "hard" adds what formats have to write with care. Reads lines of a format, a file to read, a file to write and a change, with tabs
// between them; says "ok" or why a file is refused, one line for each.
#include <fmt/format.h>

#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>

#include "formats/unit_file.h"
#include "text/unicode.h"

using namespace starling;

namespace {

constexpr const char* kHard[] = {" \"so\" it's", " a < b & c", " # x: y", " \\n \\", " 100%", " [z] *z* _z_ `z`", "\u00E9\u4E2D\U0001F600"};

AlignedText changed(const std::string& sentence, const std::string& change, size_t& number) {
  AlignedText t{sentence, {}};
  if (change == "capitals") t.text = encode_utf8(to_upper(decode_utf8(sentence)));
  if (change == "hard") t.text = sentence + kHard[number++ % std::size(kHard)];
  return t;
}

std::string changed_file(const std::string& format, const std::string& bytes, const std::string& change) {
  const auto file = open_unit_file(format, bytes, {"en", "pl", {}});
  std::string out;
  size_t number = 0;
  const auto translate = [&](std::span<const TextUnit> units) {
    std::vector<std::string> translations;
    for (const TextUnit& unit : units) {
      const Document document(unit.text, unit.format, "en", unit.options);
      std::vector<AlignedText> sentences;
      for (const std::string& s : document.sentences()) sentences.push_back(changed(s, change, number));
      translations.push_back(document.assemble(sentences));
    }
    return translations;
  };
  file->translate(translate, [&](std::string_view piece) { out += piece; });
  return out;
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream fields(line);
    std::string format, from, to, change;
    std::getline(fields, format, '\t'), std::getline(fields, from, '\t'), std::getline(fields, to, '\t'), std::getline(fields, change);
    try {
      std::ifstream in(from, std::ios::binary);
      const std::string bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
      std::ofstream(to, std::ios::binary) << changed_file(format, bytes, change);
      std::cout << "ok" << std::endl;
    } catch (const std::exception& e) {
      std::cout << e.what() << std::endl;
    }
  }
}
