// Whether a run whose ranks have ended is started again, and when.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace starling {

class RestartPolicy {
 public:
  // most: restarts altogether; pause_seconds: before the first restart, twice as long before each further one that comes without progress,
  // at most kLongestPause.
  RestartPolicy(int most, double pause_seconds) : most_(most), pause_seconds_(pause_seconds) {}

  struct Decision {
    bool restart = false;
    double pause_seconds = 0;
    std::string why;  // for people: why it ended, and why it is not started again
  };
  // Decides after an end with this exit status (docs/reference/formats.md). newest: update of the newest checkpoint; -1: none; nullopt: not
  // known here, so that lack of progress cannot be seen. A configuration that the first start refuses is not started again (later ones may
  // find a directory that is still in use), nor is a run of which kFruitless starts in a row have made no newer checkpoint.
  Decision after(int status, std::optional<int64_t> newest);

  // Tells of what there is before the first start.
  void begin(std::optional<int64_t> newest) { newest_ = newest; }
  int restarts() const { return restarts_; }

  static constexpr int kFruitless = 3;
  static constexpr double kLongestPause = 600;

 private:
  const int most_;
  const double pause_seconds_;
  int restarts_ = 0, fruitless_ = 0;
  std::optional<int64_t> newest_;
};

// Returns how many of these ranks can be used by a model that is divided among `of_layout` ranks; all if there are fewer.
int whole_layouts(int ranks, int of_layout);

// Returns the update of the newest checkpoint in a run directory; -1 if it has none, nullopt if there is no such directory here.
std::optional<int64_t> newest_checkpoint(const std::string& run_directory);

}  // namespace starling
