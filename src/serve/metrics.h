// What happens in the server, counted, in the text format that Prometheus reads. No label is an address, a key or a text.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace starling {

class Metrics {
 public:
  // Adds to a counter. `labels` as they are printed: api="detect",code="200"; "" for none. The name must be one of metrics.cpp's table.
  void count(std::string_view name, const std::string& labels = "", double by = 1);
  // One more value of a histogram.
  void observe(std::string_view name, const std::string& labels, double value);
  // A value that is what it is now; one with other labels stays.
  void set(std::string_view name, const std::string& labels, double value);
  // Forgets all that a gauge was set to.
  void clear(std::string_view name);

  // A counter's or gauge's value; 0 if it never happened.
  double value(std::string_view name, const std::string& labels = "") const;
  // Values that a histogram has had.
  int64_t observed(std::string_view name, const std::string& labels = "") const;

  // All of them, and what the system tells about this process.
  std::string text() const;

 private:
  struct Series {
    double value = 0;             // of a histogram: the sum
    std::vector<int64_t> counts;  // of a histogram, for each bucket, then beyond the last
  };
  mutable std::mutex mutex_;
  std::map<std::string, std::map<std::string, Series>, std::less<>> families_;  // by name, then labels
};

// A value of a label: quotes, backslashes and newlines escaped.
std::string label_value(std::string_view text);

}  // namespace starling
