// The program called in this process, with its exit status and what it prints: that takes a tenth of the time of a process.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "cli/starling.h"
#include "laboratory/laboratory.h"
#include "program/help.h"
#include "program/laboratory_verbs.h"
#include "tests/cli/directory_hash.h"
#include "tests/cli/program.h"

namespace starling {

// The standard streams of a program that is called: no input, and both outputs in one file.
class CapturedStreams {
 public:
  CapturedStreams() : file_(memfd_create("captured", 0)) {
    flush();
    for (int fd = 0; fd < 3; ++fd) before_[fd] = dup(fd);
    const int nothing = open("/dev/null", O_RDONLY);
    dup2(nothing, 0), dup2(file_, 1), dup2(file_, 2);
    close(nothing);
  }
  ~CapturedStreams() {
    flush();
    for (int fd = 0; fd < 3; ++fd) dup2(before_[fd], fd), close(before_[fd]);
    close(file_);
  }
  CapturedStreams(const CapturedStreams&) = delete;
  CapturedStreams& operator=(const CapturedStreams&) = delete;
  std::string text() const {
    flush();
    std::string all(static_cast<size_t>(lseek(file_, 0, SEEK_CUR)), '\0');
    all.resize(static_cast<size_t>(std::max<ssize_t>(pread(file_, all.data(), all.size(), 0), 0)));
    return all;
  }

 private:
  static void flush() { std::cout.flush(), fflush(stdout); }
  const int file_;
  int before_[3];
};

// The words of a command line, of which those between single quotes are whole. Without quotes, a backslash is left out.
inline std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words;
  bool inside = false, quoted = false;
  for (const char c : line) {
    if (c == '\\' && !quoted) continue;
    if (c == '\'') quoted = !quoted;
    const bool gap = !quoted && (c == ' ' || c == '\n');
    if (!inside && !gap) words.emplace_back();
    inside = !gap;
    if (!gap && c != '\'') words.back() += c;
  }
  return words;
}

// Calls the program in a directory, as a shell would start it there.
inline ShellOutcome call_in(const std::string& directory, const std::vector<std::string>& arguments) {
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(directory);
  const std::vector<std::string> words = help_as_option(arguments);
  const auto verb = std::find_if(words.begin(), words.end(), [](const std::string& word) { return !word.starts_with('-'); });
  ShellOutcome outcome{};
  {
    const CapturedStreams streams;
    outcome.status = verb != words.end() && is_laboratory_verb(*verb) ? call_laboratory(arguments) : call_starling(arguments);
    outcome.text = streams.text();
  }
  std::filesystem::current_path(before);
  return outcome;
}

// A command that is refused, with its exit status and what the message must name.
struct Refusal {
  std::string arguments;
  int status;
  std::vector<std::string> mentions;
};

// Expects it of each, and that nothing in the directory differs afterwards. What redirects a stream is a process.
inline void expect_refused(const std::string& directory, const std::string& beginning, const std::vector<Refusal>& table) {
  const std::string before = directory_hash(directory);
  for (const Refusal& r : table) {
    const std::string command = beginning + r.arguments;
    const bool redirects = command.find_first_of("<>") != std::string::npos;
    const ShellOutcome o = redirects ? run_shell("cd '" + directory + "' && (timeout 60 '" STARLING_BINARY "' " + command + ")")
                                     : call_in(directory, words_of(command));
    EXPECT_EQ(o.status, r.status) << r.arguments << "\n" << o.text;
    for (const std::string& what : r.mentions)
      EXPECT_NE(o.text.find(what), std::string::npos) << r.arguments << ": " << what << "\n" << o.text;
    ASSERT_EQ(directory_hash(directory), before) << "something on disk differs after: " << r.arguments << "\n"
                                                 << run_shell("cd '" + directory + "' && find . -mmin -1").text;
  }
}

class CalledTest : public ProgramTest {
 protected:
  ShellOutcome call(const std::vector<std::string>& arguments) const { return call_in(directory_, arguments); }
  ShellOutcome call(const std::string& arguments) const { return call(words_of(arguments)); }
};

}  // namespace starling
