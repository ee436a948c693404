// A directory of its own for tests that run the program as users start it.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/cli/shell.h"

namespace starling {

class ProgramTest : public testing::Test {
 protected:
  ProgramTest() {
    char name[] = "/tmp/starling_program_XXXXXX";
    if (mkdtemp(name)) directory_ = name;
    EXPECT_NE(directory_, "");
  }
  ~ProgramTest() override { std::filesystem::remove_all(directory_); }

  std::string path(const std::string& name) const { return directory_ + "/" + name; }
  void write(const std::string& name, const std::string& text) const { std::ofstream(path(name), std::ios::binary) << text; }
  ShellOutcome run(const std::string& arguments) const {
    return run_shell("cd '" + directory_ + "' && '" STARLING_BINARY "' " + arguments);
  }
  // Files a and b: counting, and the same backwards.
  void write_counting() const {
    std::string a, b;
    for (int i = 0; i < 300; ++i) a += fmt::format("one two three {}\n", i % 7), b += fmt::format("{} three two one\n", i % 7);
    write("a", a), write("b", b);
  }
  // The first lines of "see xy now" and "siehe yx jetzt".
  static std::string seeing(int lines, bool source) {
    std::string text;
    for (int i = 0; i < lines; ++i) {
      const char x = static_cast<char>('a' + i % 26), y = static_cast<char>('a' + i * 7 % 26);
      text += source ? fmt::format("see {}{} now\n", x, y) : fmt::format("siehe {}{} jetzt\n", y, x);
    }
    return text;
  }

  std::string directory_;
};

}  // namespace starling
