// A number that a run reports again and again, thinned so that a chart of it stays small however long the run is.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

namespace starling {

class Series {
 public:
  // Adds the value at an update. Where the series is full, pairs of neighbouring buckets are joined, of which the least and the greatest
  // value are kept, so that no peak vanishes. A run that resumed says earlier updates again: see forget_after.
  void add(int64_t step, double value);
  // Forgets values after an update.
  void forget_after(int64_t step);
  bool empty() const { return buckets_.empty(); }
  // Returns {"step": [...], "value": [...]}, at most kMostPoints and the last one, in the order in which they were added.
  nlohmann::json json() const;

  static constexpr size_t kMostPoints = 600;

 private:
  struct Point {
    int64_t step = 0;
    double value = 0;
  };
  struct Bucket {
    Point least, greatest;
    int64_t count;
  };
  int64_t per_bucket_ = 1;  // values, in all buckets but the last
  std::vector<Bucket> buckets_;
  Point last_;  // the very last value
};

}  // namespace starling
