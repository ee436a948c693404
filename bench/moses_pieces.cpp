// What the tokenizer of Moses and subword-nmt, as they are built here, make of lines; for bench/peers/moses.py, which holds it against the
// programs themselves.
//
//     bench_moses_pieces split|join LANGUAGE CODES ABBREVIATIONS [perl] [split-hyphens] [plain-asian-marks] < LINES
//
// split writes the pieces of each line with spaces between them, join the text of such pieces. CODES is a file of subword-nmt's; "-": words
// stay whole. ABBREVIATIONS is one of Moses's lists; "-": those that are built in.
#include <fmt/format.h>

#include <fstream>
#include <iostream>
#include <sstream>

#include "text/unicode.h"
#include "text/word_pieces.h"

int main(int argc, char** argv) {
  using namespace starling;
  if (argc < 5) return 2;
  const auto content = [](const std::string& path) {
    std::ostringstream text;
    if (path != "-") text << std::ifstream(path).rdbuf();
    return text.str();
  };
  const std::string mode = argv[1];
  moses::Settings settings{
      .text = {.language = argv[2], .abbreviations = content(argv[4]), .own_abbreviations = argv[4] == std::string("-")},
      .codes = content(argv[3])};
  for (int i = 5; i < argc; ++i) {
    const std::string option = argv[i];
    settings.text.perl |= option == "perl";
    settings.text.split_hyphens |= option == "split-hyphens";
    settings.text.plain_asian_marks |= option == "plain-asian-marks";
  }
  const moses::WordPieces words(settings, argv[3]);
  for (std::string line; std::getline(std::cin, line);) {
    if (mode == "join") {
      std::vector<std::string> pieces;
      for (const std::string_view piece : split_on_space(line)) pieces.emplace_back(piece);
      fmt::print("{}\n", words.join(pieces).text);
      continue;
    }
    std::string text;
    for (const moses::Piece& piece : words.pieces(line)) text += (text.empty() ? "" : " ") + piece.text;
    fmt::print("{}\n", text);
  }
}
