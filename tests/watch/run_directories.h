// Directories of runs with records that tests write.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "watch/run_files.h"

namespace starling::test {

class RunDirectories : public testing::Test {
 protected:
  void SetUp() override {
    root_ = testing::TempDir() + "/watch." + std::to_string(getpid());
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  std::string path(const std::string& name) const { return root_ + "/" + name; }
  // Appends text to a file of a run, which is made if it is missing.
  void append(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(path(file)).parent_path());
    std::ofstream(path(file), std::ios::app) << text;
  }
  void record(const std::string& run, nlohmann::json event, const std::string& time = "2026-11-27T10:00:00Z") const {
    event["schema"] = 1, event["time"] = time;
    append(run + "/events.jsonl", event.dump() + "\n");
  }
  void report(const std::string& run, int64_t step, double loss, const std::string& time = "2026-11-27T10:00:00Z") const {
    record(run, {{"type", "report"}, {"step", step}, {"loss", loss}, {"learning_rate", 1e-3}, {"noise_scale", nullptr}}, time);
  }

  // Reads everything that there is.
  template <class Runs>
  static bool refresh(Runs& runs) {
    Look look;
    return runs.refresh(look), !runs.more();
  }

  std::string root_;
};

}  // namespace starling::test
