// What programs print, in lines.
#pragma once
#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

namespace library_test {

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t at = 0, end; at < text.size(); at = end + 1) {
    end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
  }
  return lines;
}

inline std::string output_of(const std::string& command) {
  std::string text;
  std::FILE* pipe = popen(command.c_str(), "r");
  char part[4096];
  for (size_t read; (read = fread(part, 1, sizeof part, pipe)) > 0;) text.append(part, read);
  EXPECT_EQ(pclose(pipe), 0) << command;
  return text;
}

}  // namespace library_test
