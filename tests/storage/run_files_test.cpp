// What belongs to a run is recognised by whatever name it has; what a user puts beside it is not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "storage/outputs.h"

namespace starling {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class RunFiles : public testing::Test {
 protected:
  RunFiles() {
    char name[] = "/tmp/starling_run_files_XXXXXX";
    root_ = mkdtemp(name);
    for (const char* directory : {"run/checkpoints/step-00000002", "run/best", "run/before-restart/checkpoints/step-00000001", "run/tuned",
                                  "race/runs/one/checkpoints/step-00000003", "project/data", "project/checkpoints"})
      fs::create_directories(path(directory));
    for (const char* file : {"run/config.yml", "run/vocab.spm", "run/events.jsonl", "run/test.translated", "run/best/manifest.json",
                             "run/best/model.safetensors", "race/data.json", "project/config.yml", "project/train.log"})
      std::ofstream(path(file)) << "text\n";
    fs::create_symlink("run", path("link")), fs::create_symlink("run/vocab.spm", path("soft"));
  }
  ~RunFiles() override { fs::remove_all(root_); }
  std::string path(const std::string& name) const { return root_ + "/" + name; }
  std::string refusal(const std::string& name) const {
    try {
      refuse_run_files({"--output", path(name)});
      return "";
    } catch (const ConfigError& e) {
      return e.what();
    }
  }
  std::string root_;
};

TEST_F(RunFiles, WhatTheRunOwnsIsRefusedByAnyName) {
  const std::string run = "belongs to the run in " + path("run") + " and would be damaged; choose another output";
  for (const char* name : {"run/config.yml", "run/vocab.spm", "run/source.spm", "run/lock", "run/train.log", "run/events.jsonl", "run/data",
                           "run/data/new", "run/checkpoints/step-00000009", "run/checkpoints/step-00000002/model.safetensors",
                           "run/best-before-4/x", "run/before-restart", "run/.tmp-config.yml", "run/../run/config.yml"})
    EXPECT_THAT(refusal(name), HasSubstr(run)) << name;
  EXPECT_THAT(refusal("link/vocab.spm"), HasSubstr("belongs to the run in " + path("link")));
  EXPECT_THAT(refusal("soft"), HasSubstr(run));
  EXPECT_THAT(refusal("run/best/new"), HasSubstr("lies in the model directory " + path("run/best")));
  EXPECT_THAT(refusal("race/data.json"), HasSubstr("belongs to the race in " + path("race")));
  EXPECT_THAT(refusal("race/runs/one/config.yml"), HasSubstr("belongs to the run in " + path("race/runs/one")));
}

TEST_F(RunFiles, WhatTheUserPutsThereIsNot) {
  for (const char* name : {"run/test.translated", "run/new", "run/test2016.beam4", "run/tuned/config.yml", "run/tuned", "link/test.de",
                           "run/before-restart/test.de", "race/notes", "race/runs/one/test.de", "race/runs/two", "new/config.yml",
                           "project/config.yml", "project/data/out.de", "project/train.log"})
    EXPECT_EQ(refusal(name), "") << name;
  refuse_run_files({"--output", "/dev/null"});
}

}  // namespace
}  // namespace starling
