// Translates the lines of standard input: translate_cpp MODEL < source > target
#include <starling/translator.h>

#include <iostream>

int main(int, char** argv) {
  try {
    const starling::Translator translator(argv[1]);
    std::vector<std::string> lines;
    for (std::string line; std::getline(std::cin, line);) lines.push_back(line);
    for (const starling::Translation& t : translator.translate(lines)) std::cout << t.text() << '\n';
  } catch (const starling::Error& e) {
    std::cerr << e.what() << '\n';
    return 1;
  }
}
