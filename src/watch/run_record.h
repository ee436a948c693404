// What is known of one training run, from the files in its directory: events.jsonl, train.log, config.yml and kept translations. They are
// read as they grow; nothing is written there, and a run may be of another program version, damaged or still without files.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "watch/series.h"

namespace starling {

class RunRecord {
 public:
  explicit RunRecord(std::string directory);

  // Reads what has been added since the last call. Returns whether anything changed.
  bool refresh();
  // Returns what the page shows of this run, without its name (docs/reference/watch.md). now: seconds since 1970, by which a run counts as
  // silent.
  nlohmann::json json(double now) const;

  const std::string& directory() const { return directory_; }
  // running, silent (running by its records, the last of which is old), finished, stopped, failed, or empty without any record.
  std::string state(double now) const;
  const nlohmann::json& last_report() const { return last_report_; }
  const nlohmann::json& validations() const { return validations_; }

 private:
  void take(const nlohmann::json& record);
  void start(const nlohmann::json& record);
  void forget_after(int64_t step);
  void report(const nlohmann::json& record);
  void communication(const nlohmann::json& record);
  bool read_sentences();

  std::string directory_;
  uint64_t read_ = 0;   // bytes of events.jsonl
  std::string rest_;    // a line that is not complete yet
  uint64_t inode_ = 0;  // of the file that was read, so that another one of that name is noticed
  int64_t events_ = 0, broken_lines_ = 0;
  std::string started_, updated_, stop_reason_;
  bool stopped_ = false;
  double interval_ = 0;  // the longest time between two records, seconds
  nlohmann::json start_ = nlohmann::json::object(), last_report_ = nlohmann::json::object(), checkpoint_ = nlohmann::json::object();
  nlohmann::json validations_ = nlohmann::json::array();
  std::string metric_;
  std::map<std::string, Series> series_;
  nlohmann::json ranks_ = nlohmann::json::object();  // of the last record of communication
  std::map<std::string, std::string> configuration_;
  std::string configuration_read_;  // its size and time of change when it was read
  std::vector<std::string> log_;
  uint64_t log_size_ = 0;
  nlohmann::json sentences_ = nlohmann::json::object();
  std::string sentences_read_;
};

}  // namespace starling
