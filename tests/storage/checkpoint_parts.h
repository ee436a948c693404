// What tests of checkpoints save, and whether a checkpoint has all of it.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "storage/checkpoint.h"

namespace starling {

inline std::vector<Part> parts(const std::string& content) {
  Part streamed{"weights.bin", [content](ByteSink& sink) {
                  for (int i = 0; i < 3; ++i) sink.write(content);
                }};
  return {text_part("state.json", "{" + content + "}"), streamed, text_part("empty", "")};
}

// The content that was saved; fails the test if the files are not of one save.
inline std::string content_of(FileSystem& files, const Loaded& loaded) {
  const std::string state = files.read_file(loaded.path("state.json"));
  const std::string content = state.substr(1, state.size() - 2);
  EXPECT_EQ(files.read_file(loaded.path("weights.bin")), content + content + content);
  EXPECT_EQ(files.read_file(loaded.path("empty")), "");
  return content;
}

}  // namespace starling
