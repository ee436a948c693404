// Reads and writes what a race keeps of its runs between starts: <race>/records.json, one line per run. People may edit the file and disks
// may damage it, so everything read from it is checked before it is used.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "experiments/times.h"

namespace starling {

struct RaceRecord {
  std::string configuration;  // digest of the configuration
  bool done = false, diverged = false;
  std::vector<std::pair<int64_t, std::map<std::string, double>>> validations;  // update, scores
  std::map<int64_t, RaceTimes::At> times;                                      // by update, unless they are replayed
  std::map<std::string, double> finals;

  // Returns the loss of the last validation, or infinity if the run diverged.
  double loss() const;
};

nlohmann::json to_json(const RaceRecord& record);
// Parses the record of a run of `steps` updates. Throws DataError beginning with `where` (file and run) for updates out of range or order,
// scores that are not numbers or lack cross-entropy, and times that are missing (`timed`), negative or decreasing.
RaceRecord record_from(const nlohmann::json& json, const std::string& where, int64_t steps, bool timed);

nlohmann::json times_to_json(const std::map<int64_t, RaceTimes::At>& times);
// Parses times by update. Throws DataError beginning with `where` if they are malformed, negative or decreasing.
std::map<int64_t, RaceTimes::At> times_from(const nlohmann::json& updates, const std::string& where);

// Returns an integer of at least 0, or throws DataError "`where`: `what` is ...".
int64_t count_from(const nlohmann::json& json, const std::string& where, const std::string& what);
std::vector<int64_t> counts_from(const nlohmann::json& list, const std::string& where, const std::string& what);

// Reads a run's validations by update from its events.jsonl; after a resume, only those that count. Empty if the file does not exist.
std::vector<std::pair<int64_t, std::map<std::string, double>>> validations_of(const std::string& run);

}  // namespace starling
