// The runs that `starling watch` shows: those named, and those in the directories named, such as a race's. Their files are read again at
// most twice a second, when somebody asks.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "watch/run_record.h"

namespace starling {

class WatchedRuns {
 public:
  // Throws ConfigError for a path that does not exist or is no directory, and where no path has a run. A directory without a record of its
  // own stands for the runs up to three levels below it; directories that are made later are found too.
  explicit WatchedRuns(std::vector<std::string> paths);

  void refresh();
  // Returns what has changed since a revision (0: all), as docs/reference/watch.md says.
  nlohmann::json changes(int64_t since) const;
  // Returns the state of the runs in Prometheus' text format.
  std::string metrics() const;
  size_t size() const { return runs_.size(); }

 private:
  struct Watched {
    std::string name;
    RunRecord record;
    int64_t revision;  // of its last change
    std::string state;
  };
  void find();

  std::vector<std::string> paths_;
  std::vector<Watched> runs_;  // by path
  int64_t revision_ = 0;
  double found_at_ = 0, refreshed_at_ = 0;  // seconds of the steady clock
};

}  // namespace starling
