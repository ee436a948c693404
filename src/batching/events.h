// What the queue and its workers report while they translate; the server counts it (serve/metrics.h).
#pragma once

#include <string>
#include <string_view>

namespace starling {

// Ignores everything. Called from several threads.
class BatchingEvents {
 public:
  virtual ~BatchingEvents() = default;
  // Something happened `by` times. `labels`: as in Prometheus's text, such as side="source"; "" for none.
  virtual void count(std::string_view /*name*/, const std::string& /*labels*/ = "", double /*by*/ = 1) {}
  // A value was measured.
  virtual void observe(std::string_view /*name*/, const std::string& /*labels*/, double /*value*/) {}
};

}  // namespace starling
