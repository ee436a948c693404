// What a race keeps of its runs between starts: <race>/records.json, a line for each run. People may edit the file and disks may damage it,
// so whatever is read from it is checked before anything is computed from it.
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
  std::string configuration;  // its digest
  bool done = false, diverged = false;
  std::vector<std::pair<int64_t, std::map<std::string, double>>> validations;  // update, scores
  std::map<int64_t, RaceTimes::At> times;                                      // of these updates, where they are not replayed
  std::map<std::string, double> finals;

  // Of the last validation; infinite if the run diverged.
  double loss() const;
};

nlohmann::json to_json(const RaceRecord& record);
// DataError beginning with `where` (file and run) when it is not the record of a run of `steps` updates: updates out of range or order,
// scores that are no numbers or without cross-entropy, times missing (`timed`), negative or running backwards.
RaceRecord record_from(const nlohmann::json& json, const std::string& where, int64_t steps, bool timed);

nlohmann::json times_to_json(const std::map<int64_t, RaceTimes::At>& times);
// DataError beginning with `where` when these are no times by update, neither negative nor running backwards.
std::map<int64_t, RaceTimes::At> times_from(const nlohmann::json& updates, const std::string& where);

// An integer of at least 0; DataError "`where`: `what` is ...".
int64_t count_from(const nlohmann::json& json, const std::string& where, const std::string& what);
std::vector<int64_t> counts_from(const nlohmann::json& list, const std::string& where, const std::string& what);

// The validations of a run by update, from its events.jsonl; of a run that was continued those that count. None if there is no such file.
std::vector<std::pair<int64_t, std::map<std::string, double>>> validations_of(const std::string& run);

}  // namespace starling
