// What is known of one training run, from the files in its directory: events.jsonl, train.log, config.yml and kept translations. They are
// read as they grow; nothing is written there, and a run may be of another program version, damaged, hostile or still without files: what
// is kept of it is bounded whatever they hold.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "watch/kept_sentences.h"
#include "watch/run_files.h"
#include "watch/series.h"
#include "watch/validations.h"

namespace starling {

// Returns the charts that the page draws of a run's series (docs/reference/watch.md), in their order.
nlohmann::json panels();

class RunRecord {
 public:
  explicit RunRecord(std::string directory);

  // Reads what has been added since the last call, as far as the look allows. Returns whether anything changed.
  bool refresh(Look& look);
  // Returns whether the last look ended before everything was read.
  bool more() const { return more_ || sentences_.more(); }
  // Returns what the page shows of this run, without its name (docs/reference/watch.md). now: seconds since 1970, by which a run counts as
  // silent.
  nlohmann::json json(double now) const;

  const std::string& directory() const { return directory_; }
  // running, silent (running by its records, the last of which is old), finished, stopped, failed, or empty without any record.
  std::string state(double now) const;
  const nlohmann::json& last_report() const { return last_report_; }
  const Validations& validations() const { return validations_; }

 private:
  void take(const nlohmann::json& record);
  void start(const nlohmann::json& record);
  void forget_after(int64_t step);
  void report(const nlohmann::json& record);
  void communication(const nlohmann::json& record);
  bool read_events(Look& look);
  void take_block(std::string_view block);
  void take_line(std::string_view line);

  std::string directory_;
  uint64_t read_ = 0;   // bytes of events.jsonl
  std::string rest_;    // a line that is not complete yet
  bool skips_ = false;  // to the next line: this one is too long
  bool more_ = false;
  uint64_t inode_ = 0;  // of the file that was read, so that another one of that name is noticed
  int64_t events_ = 0, broken_lines_ = 0;
  std::string started_, updated_, stop_reason_;
  bool stopped_ = false;
  double interval_ = 0;  // the longest time between two records, seconds
  nlohmann::json start_ = nlohmann::json::object(), last_report_ = nlohmann::json::object(), checkpoint_ = nlohmann::json::object();
  Validations validations_;
  std::map<std::string, Series> series_;
  nlohmann::json ranks_ = nlohmann::json::object();  // of the last record of communication
  std::map<std::string, std::string> configuration_;
  std::string configuration_read_;  // its size and time of change when it was read
  std::vector<std::string> log_;
  std::string log_read_;
  KeptSentences sentences_;
};

}  // namespace starling
