// The server's metrics, in Prometheus's text format. No label is an address, a key or a text.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "batching/events.h"

namespace starling {

class Metrics : public BatchingEvents {
 public:
  // Adds to a counter. `labels` are given as they are printed: api="detect",code="200"; "" for none. The name must be in the table of
  // metrics.cpp.
  void count(std::string_view name, const std::string& labels = "", double by = 1) override;
  // Adds a value to a histogram.
  void observe(std::string_view name, const std::string& labels, double value) override;
  // Sets a gauge; values with other labels are kept.
  void set(std::string_view name, const std::string& labels, double value);
  // Removes all values of a gauge.
  void clear(std::string_view name);

  // Returns a counter's or gauge's value; 0 if it was never set.
  double value(std::string_view name, const std::string& labels = "") const;
  // Returns the number of values that a histogram has received.
  int64_t observed(std::string_view name, const std::string& labels = "") const;

  // Returns all metrics, and the system's figures on this process.
  std::string text() const;

 private:
  struct Series {
    double value = 0;             // histogram: the sum
    std::vector<int64_t> counts;  // histogram: count per bucket, then beyond the last one
  };
  mutable std::mutex mutex_;
  std::map<std::string, std::map<std::string, Series>, std::less<>> families_;  // by name, then labels
};

// Returns a label's value with quotes, backslashes and newlines escaped.
std::string label_value(std::string_view text);

}  // namespace starling
