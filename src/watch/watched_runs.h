// The runs that `starling watch` shows: those named, and those in the directories named, such as a race's. One thread reads their files;
// whoever asks gets what they were at its last look.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "watch/cleanings.h"
#include "watch/run_files.h"
#include "watch/run_record.h"

namespace starling {

// The runs at one look; it does not change.
class RunsView {
 public:
  // Returns what has changed since a revision (0: all) as JSON, which docs/reference/watch.md describes.
  std::string changes(int64_t since) const;
  // Returns the state of the runs in Prometheus' text format.
  const std::string& metrics() const { return metrics_; }
  // Returns the page of a cleaning by its number in the JSON; null: there is none.
  std::shared_ptr<const std::string> cleaning(size_t number) const {
    return number < cleanings_.size() ? cleanings_[number].page : nullptr;
  }

 private:
  friend class WatchedRuns;
  struct Run {
    std::string name;  // as JSON
    int64_t revision;
    std::shared_ptr<const std::string> json;
  };
  struct Cleaning {
    std::string json;
    std::shared_ptr<const std::string> page;
  };
  std::vector<Run> runs_;
  std::vector<Cleaning> cleanings_;
  int64_t revision_ = 0;
  std::string now_, metrics_;
};

class WatchedRuns {
 public:
  // Throws ConfigError for a path that does not exist or is no directory, and where no path has a run or a cleaning. A directory without a
  // record of its own stands for the runs and cleanings up to three levels below it; directories that are made later are found too.
  explicit WatchedRuns(std::vector<std::string> paths);

  // Reads what has been added since the last call, as far as the look allows. Each run has its share of the look, so that no run keeps the
  // others waiting; the run that comes first is another one each time.
  void refresh(Look& look);
  // Returns whether the last look ended before everything was read.
  bool more() const;
  // Returns the runs as they were at the last look.
  std::shared_ptr<const RunsView> view() const { return view_; }
  size_t size() const { return runs_.size(); }
  size_t cleanings() const { return cleanings_.size(); }

 private:
  struct Watched {
    std::string name;
    RunRecord record;
    int64_t revision;  // of its last change
    std::string state;
    std::shared_ptr<const std::string> json;  // of that revision
  };
  void find(const Look& look);
  void take_cleanings(const std::vector<std::filesystem::path>& found);
  void make_view(double now);
  std::string metrics() const;

  std::vector<std::string> paths_;
  std::vector<Watched> runs_;  // by path
  std::vector<WatchedCleaning> cleanings_;
  size_t first_ = 0;  // of the next look
  int64_t revision_ = 0;
  double found_at_ = 0;  // seconds of the steady clock
  std::shared_ptr<const RunsView> view_ = std::make_shared<RunsView>();
};

}  // namespace starling
