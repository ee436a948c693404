// The pages of cleanings that `starling watch` passes on: of text that was cleaned, and of text that is being cleaned.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "watch/run_files.h"

namespace starling {

// Returns whether a directory is a cleaning: made by `starling clean`, or being made (.tmp-NAME).
bool is_cleaning(const std::filesystem::path& directory);
// Returns where a directory is made until it is complete (aside_path).
std::filesystem::path aside_of(const std::filesystem::path& directory);

class WatchedCleaning {
 public:
  explicit WatchedCleaning(std::string directory) : directory_(std::move(directory)) {}
  const std::string& directory() const { return directory_; }
  bool under_way() const;
  // Reads report.html if it has changed and is within the bytes that may be kept.
  void refresh(Look& look, uint64_t most);
  // Returns the page, as it was read last; null: there is none yet.
  std::shared_ptr<const std::string> page() const { return page_; }

 private:
  std::string directory_;
  std::string mark_;  // of the page
  std::shared_ptr<const std::string> page_;
};

}  // namespace starling
